import { expect, test } from "vitest";
import { apart, areWhole } from "./lines";

const line = (...y: number[]) => ({ label: y.join(), x: [0, 1, 2], y });

test("lines of the same values are dashed, each with other gaps", () => {
  const [first, second, third, fourth] = apart([
    line(1, 2, 3),
    line(1, 2, 4),
    line(1, 2, 3),
    line(1, 2, 3),
  ]);
  expect(first.dash).toBeUndefined();
  expect(second.dash).toBeUndefined();
  expect(third.dash).toEqual([6, 6]);
  expect(fourth.dash).toEqual([6, 12]);
});

test("only few points at whole numbers have whole ticks", () => {
  expect(areWhole([1, 2, 5])).toBe(true);
  expect(areWhole([1, 2.5])).toBe(false);
  // A live page begins without samples.
  expect(areWhole([])).toBe(false);
  expect(areWhole(Array.from({ length: 50 }, (_, at) => at))).toBe(false);
});
