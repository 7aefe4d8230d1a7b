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
