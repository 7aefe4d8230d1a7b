/** Heading and unit by name; the unit of counts and ratios is empty. */
export type Measures = Record<string, [heading: string, unit: string]>;

const known = new Map<string, [heading: string, unit: string]>();

export function readMeasures(measures: Measures): void {
  for (const [name, parts] of Object.entries(measures)) known.set(name, parts);
}

/** Units that are shown as others, with what a number is divided by for them. */
const SHOWN: Record<string, [unit: string, divisor: number]> = {
  ps: ["ms", 1e9],
  ns: ["µs", 1e3],
  bytes: ["MB", 1e6],
};

/** Units of numbers that are no measures, by the end of their names. */
const UNITS: [end: string, unit: string][] = [
  ["_ps", "ps"],
  ["_ns", "ns"],
  ["_s", "s"],
  ["_bytes", "bytes"],
  ["_gbps", "Gbit/s"],
];

function stated(name: string): [words: string, unit: string] {
  const parts = known.get(name);
  if (parts) return parts;
  const found = UNITS.find(([end]) => name.endsWith(end));
  const words = found ? name.slice(0, -found[0].length) : name;
  return [words.replaceAll("_", " "), found ? found[1] : ""];
}

export function isRate(name: string): boolean {
  return known.get(name)?.[1] === "Gbit/s";
}

/** Name of a number without its unit, and the unit; that of counts is empty. */
export function measureParts(name: string): [name: string, unit: string] {
  const [words, unit] = stated(name);
  return [words, SHOWN[unit]?.[0] ?? unit];
}

export function measureName(name: string): string {
  const [words, unit] = measureParts(name);
  return unit ? `${words}, ${unit}` : words;
}

/** What a number is divided by for the unit of its name; products would be rounded twice. */
export function divisorOf(name: string): number {
  return SHOWN[stated(name)[1]]?.[1] ?? 1;
}
