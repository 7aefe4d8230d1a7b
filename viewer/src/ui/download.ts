export type Cell = string | number | null;

export function saveText(name: string, text: string, type: string): void {
  saveBlob(name, new Blob([text], { type }));
}

export function saveBlob(name: string, blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Rows as comma-separated values (RFC 4180). What is not known, or no finite number, is empty. */
export function csv(header: readonly string[], rows: readonly (readonly Cell[])[]): string {
  return [header, ...rows].map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n";
}

function quoted(cell: Cell): string {
  const isKnown = cell !== null && (typeof cell !== "number" || Number.isFinite(cell));
  const text = isKnown ? String(cell) : "";
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Draw an SVG into a PNG of so many pixels per unit. */
export async function savePng(name: string, svg: string, scale: number): Promise<void> {
  const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = image.naturalWidth * scale;
    canvas.height = image.naturalHeight * scale;
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
    if (blob) saveBlob(name, blob);
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** Letters of a name of a file: file systems take 255 bytes, and a letter can have four. */
const MOST_LETTERS = 60;
const FIRST = 39;

/** A name of a file without what file systems refuse. */
export function fileName(...words: string[]): string {
  const letters = [...words.join("-").replace(/[^\p{L}\p{N}._-]+/gu, "-")];
  if (letters.length <= MOST_LETTERS) return letters.join("");
  // The end tells files apart, too.
  return `${letters.slice(0, FIRST).join("")}-${letters.slice(FIRST + 1 - MOST_LETTERS).join("")}`;
}
