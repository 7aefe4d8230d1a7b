// How lines of a chart are told apart, and where its ticks are.

import type { Line } from "./chart";

// Pixels of a dash.
const DASH = 6;

/** Dash lines that would hide earlier ones of the same values, so that all of them are seen. */
export function apart(lines: Line[]): Line[] {
  return lines.map((line, index) => {
    const before = lines.slice(0, index).filter((other) => isSame(line, other)).length;
    return before ? { ...line, dash: [DASH, DASH * before] } : line;
  });
}

function isSame(one: Line, other: Line): boolean {
  const equal = (a: ArrayLike<number | null>, b: ArrayLike<number | null>) =>
    a.length === b.length && Array.from(a).every((value, at) => value === b[at]);
  return one.points !== "discs" && equal(one.x, other.x) && equal(one.y, other.y);
}

/** Distances of ticks where there is nothing between whole numbers, as between seeds. */
export const STEPS = [1, 2, 5].flatMap((step) =>
  [0, 1, 2, 3, 4, 5].map((power) => step * 10 ** power),
);
STEPS.sort((a, b) => a - b);
// Points up to which ticks are at whole numbers.
const FEW = 20;

/** Whether a chart has few points, all of them at whole numbers. */
export function areWhole(x: (number | null)[]): boolean {
  // A live page has no samples at first.
  return x.length > 1 && x.length <= FEW && x.every(Number.isInteger);
}
