import type { Lifetime } from "./trees";

/** Colours of trees; see `Theme.trees`. */
export const MOST_COLOURS = 8;

/** Colours of lineages, the largest first; none that stand together share one, and the longest free one is next. */
export function colourPlaces(
  lineages: readonly number[],
  lifetimes: readonly Lifetime[],
): Map<number, number> {
  const spans = new Map<number, [number, number]>();
  for (const { lineage, birth, death } of lifetimes) {
    const [from, to] = spans.get(lineage) ?? [birth, death];
    spans.set(lineage, [Math.min(from, birth), Math.max(to, death)]);
  }
  const chosen: [lineage: number, from: number, to: number][] = [];
  for (const lineage of lineages) {
    const [from, to] = spans.get(lineage)!;
    const others = chosen.filter((one) => one[1] <= to && one[2] >= from);
    // The most that stand at one time do so at the birth of one of them.
    const births = [from, ...others.map((one) => Math.max(from, one[1]))];
    const most = Math.max(
      ...births.map((at) => others.filter((one) => one[1] <= at && one[2] >= at).length),
    );
    if (most < MOST_COLOURS) chosen.push([lineage, from, to]);
  }
  const freeSince = Array.from({ length: MOST_COLOURS }, (_, place) => place - MOST_COLOURS);
  const places = new Map<number, number>();
  for (const [lineage, from, to] of chosen.sort((a, b) => a[1] - b[1] || a[0] - b[0])) {
    const free = freeSince.indexOf(Math.min(...freeSince));
    if (freeSince[free] >= from) continue;
    places.set(lineage, free);
    freeSince[free] = to;
  }
  return places;
}
