import { expect, test } from "vitest";
import { boundsOf, curve, Shape } from "./layout";

const NONE = new Float32Array();
const arc = {
  lines: new Float32Array([0, 0, 8, 0, 8, 0, 0, 0]),
  shapes: new Uint8Array([Shape.Arc, Shape.Arc]),
  senders: NONE,
  receivers: NONE,
};

test("curves begin and end at the ends of their cable", () => {
  for (const shape of [Shape.Straight, Shape.Upright, Shape.Arc]) {
    const layout = { lines: new Float32Array([1, 2, 4, 8]), shapes: new Uint8Array([shape]) };
    const points = curve(layout, 0, 12);
    expect(points[0]).toEqual([1, 2]);
    expect(points.at(-1)).toEqual([4, 8]);
    expect(points.length).toBe(shape === Shape.Straight ? 2 : 13);
  }
});

test("both ways of a cable bend to different sides", () => {
  const [there, back] = [0, 1].map((row) => curve(arc, row, 12)[6][1]);
  expect(there).toBeCloseTo(-back, 6);
  expect(Math.abs(there)).toBeGreaterThan(1);
});

test("the box around a map holds its curves", () => {
  const [left, top, right, bottom] = boundsOf(arc);
  for (const [x, y] of [...curve(arc, 0, 100), ...curve(arc, 1, 100)]) {
    expect(x).toBeGreaterThanOrEqual(left);
    expect(x).toBeLessThanOrEqual(right);
    expect(y).toBeGreaterThanOrEqual(top);
    expect(y).toBeLessThanOrEqual(bottom);
  }
});
