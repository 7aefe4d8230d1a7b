import { countingOrder } from "../data/search";
import type { Forest } from "../data/trees";

/** Number of members behind each member of a tree, itself included, of a run with so many ports. */
export function membersBehind(forest: Forest, ports: number): Float64Array {
  const { rows, parent, depth } = forest;
  const count = new Float64Array(rows.length).fill(1);
  const places = new Int32Array(ports).fill(-1);
  let deepest = 0;
  for (let place = 0; place < rows.length; place++) {
    places[rows[place]] = place;
    deepest = Math.max(deepest, depth[place]);
  }
  const { order } = countingOrder(depth, deepest + 1);
  for (let at = order.length - 1; at >= 0; at--) {
    const place = order[at];
    const before = places[parent[place]];
    if (before >= 0 && before !== place) count[before] += count[place];
  }
  return count;
}

/** Places of members, those with most behind them last; a port in several trees has one place, its last. */
export function trunksLast(
  forest: Forest,
  behind: Float64Array,
  ports: number,
  isShown: (row: number) => boolean,
): Uint32Array {
  // Both are exact in one number: members are fewer than 2^26.
  const keys = new Float64Array(behind.length);
  let shown = 0;
  for (let place = 0; place < behind.length; place++)
    if (isShown(forest.rows[place])) keys[shown++] = behind[place] * 2 ** 26 + place;
  const order = keys.subarray(0, shown).sort();
  const places = new Uint32Array(shown);
  const taken = new Uint8Array(ports);
  let first = shown;
  for (let at = shown - 1; at >= 0; at--) {
    const place = order[at] % 2 ** 26;
    if (taken[forest.rows[place]]) continue;
    taken[forest.rows[place]] = 1;
    places[--first] = place;
  }
  return places.subarray(first);
}
