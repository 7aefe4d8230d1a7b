import { expect, test } from "vitest";
import type { Forest } from "../data/trees";
import { membersBehind, trunksLast } from "./branches";

const PORTS = 400;

/** A tree of members, each behind one that came before it; `of` gives the rows. */
function forest(parents: readonly number[], of: (place: number) => number): Forest {
  const depth = [0];
  for (let place = 1; place < parents.length; place++) depth[place] = depth[parents[place]] + 1;
  return {
    rows: Uint32Array.from(parents, (_, place) => of(place)),
    parent: Uint32Array.from(parents, (parent) => of(parent)),
    depth: Uint32Array.from(depth),
  } as Forest;
}

/** Numbers below some limits, always the same. */
const drawn = (limits: number[]) => {
  let state = 7;
  return limits.map((limit) => (state = (state * 48271) % 2147483647) % limit);
};

test("a member has those behind it whose way to the root passes it", () => {
  const parents = [0, ...drawn(Array.from({ length: 149 }, (_, at) => at + 1))];
  const of = (place: number) => (place * 37 + 11) % PORTS;
  const passed = parents.map(() => 0);
  for (let from = 0; from < parents.length; from++) {
    for (let at = from; ; at = parents[at]) {
      passed[at]++;
      if (at === 0) break;
    }
  }
  expect(Array.from(membersBehind(forest(parents, of), PORTS))).toEqual(passed);
});

test("those with most behind them come last, and each port once", () => {
  const members = { rows: Uint32Array.of(5, 3, 9, 3, 7) } as Forest;
  const behind = Float64Array.of(2, 8, 1, 4, 2);
  const places = trunksLast(members, behind, 10, (row) => row !== 9);
  expect(Array.from(places)).toEqual([0, 4, 1]);
});
