const STEPS: [number, string][] = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/** A time in picoseconds, in the largest unit that leaves at least 1. */
export function time(ps: number): string {
  const units: [number, string][] = [
    [1e12, "s"],
    [1e9, "ms"],
    [1e6, "µs"],
    [1e3, "ns"],
  ];
  for (const [unit, name] of units) {
    if (Math.abs(ps) >= unit) return `${digits(ps / unit)} ${name}`;
  }
  return ps === 0 ? "0" : `${digits(ps)} ps`;
}

/** The unit of instants: milliseconds of simulated time, or seconds of a live fabric. */
export const clock = { ps: 1e9, name: "ms" };

/** An instant in the unit of the clock, as fields and tables have it: to 0.1 or to 10 µs. */
export function plainInstant(value: number): string {
  return String(Number(value.toFixed(clock.name === "s" ? 5 : 4)));
}

/** An instant in the unit of the clock, to the picosecond, without an exponent. */
export function exactInstant(ps: number): string {
  const text = (Math.round(ps) / clock.ps).toFixed(Math.log10(clock.ps));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** An instant, with no more digits than a sample needs. */
export function instant(ps: number): string {
  return `${digits(ps / clock.ps, 6)} ${clock.name}`;
}

export function inClock([from, to]: [number, number]): [number, number] {
  return [from / clock.ps, to / clock.ps];
}

/** A text of at most so many letters: of a longer one its beginning and its end. NodeDescriptions have at most 64. */
export function clipped(text: string, most = 80): string {
  const letters = text.length > most ? [...text] : [];
  if (letters.length <= most) return text;
  const end = Math.floor(most / 3);
  return `${letters.slice(0, most - end - 1).join("")}…${letters.slice(-end).join("")}`;
}

/** Characters that change the direction of the text around them. */
const DIRECTIONS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const RIGHT_TO_LEFT =
  /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
/** A word, the number of a port behind it, and the punctuation behind both. */
const WORD = /(\S+?)((?::\d+)?[,;:.]*)(?!\S)/g;

/** Isolates words from right to left (Unicode Standard Annex 9: FSI and PDI), and replaces their controls. */
export function isolated(text: string): string {
  const plain = text.replace(DIRECTIONS, "\ufffd");
  if (!RIGHT_TO_LEFT.test(plain)) return plain;
  return plain.replace(WORD, (word, name: string, end: string) =>
    RIGHT_TO_LEFT.test(word) ? `\u2068${name}\u2069${end}` : word,
  );
}

export const NAME = 40;

/** A text whose single words have at most as many letters as a name. */
export function wordsClipped(text: string): string {
  return text.replace(/\S+/g, (word) => clipped(word, NAME));
}

export function bytes(value: number): string {
  for (const [unit, name] of STEPS) {
    if (value >= unit) return `${digits(value / unit)} ${name}B`;
  }
  return `${digits(value)} B`;
}

export function gbps(value: number): string {
  return `${digits(value)} Gbit/s`;
}

export function percent(share: number): string {
  return `${digits(100 * share, 3)} %`;
}

export function count(value: number): string {
  return Math.round(value).toLocaleString("en-GB");
}

export function digits(value: number, places = 4): string {
  return String(Number(value.toPrecision(places)));
}
