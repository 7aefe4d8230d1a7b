// Names of receive rates, as the command line prints them.

const NAMES: Record<string, string> = {
  hotspots_gbps: "hotspot receive rate",
  other_receivers_gbps: "mean of other receivers",
  total_gbps: "total delivered",
};

/** Name of a rate. Where no rate of hotspots is known, the receivers are not the other ones. */
export function rateName(rate: string, known: readonly string[]): string {
  if (rate === "other_receivers_gbps" && !known.includes("hotspots_gbps"))
    return "mean of receivers";
  return NAMES[rate] ?? rate.replaceAll("_", " ");
}

export function isRate(name: string): boolean {
  return name in NAMES;
}

/** Units of measures by the end of their names, with what a number is divided by for them. */
const UNITS: [string, string, number][] = [
  ["_ps", "ms", 1e9],
  ["_ns", "µs", 1e3],
  ["_s", "s", 1],
  ["_bytes", "MB", 1e6],
  ["_gbps", "Gbit/s", 1],
];

/** Name of a measure without its unit, and the unit; that of counts is empty. */
export function measureParts(
  name: string,
  measures: readonly string[],
): [name: string, unit: string] {
  if (isRate(name)) return [rateName(name, measures), "Gbit/s"];
  const unit = UNITS.find(([end]) => name.endsWith(end));
  if (!unit) return [rateName(name, measures), ""];
  return [rateName(name.slice(0, -unit[0].length), measures), unit[1]];
}

/** Name of a measure and its unit. */
export function measureName(name: string, measures: readonly string[]): string {
  const [words, unit] = measureParts(name, measures);
  return unit ? `${words}, ${unit}` : words;
}

/** What a number of a measure is divided by for the unit of its name; products would be rounded twice. */
export function divisorOf(name: string): number {
  return UNITS.find(([end]) => name.endsWith(end))?.[2] ?? 1;
}
