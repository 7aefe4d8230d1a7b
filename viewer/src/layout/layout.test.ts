import { expect, test } from "vitest";
import { boundsOf, columnsOf, curve, Shape, stretched, stretchFor, type Plan } from "./layout";

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

/** Two switches next to each other, a host below each of them. */
const plan: Plan = {
  name: "unfolded",
  senders: new Float32Array([0, 1, 1, 1]),
  receivers: new Float32Array([0, 1, 1, 1]),
  switches: [
    { node: 2, x: 0, y: 0 },
    { node: 3, x: 1, y: 0 },
  ],
  lines: new Float32Array([0, 0, 0, 1, 1, 0, 1, 1]),
  shapes: new Uint8Array([Shape.Straight, Shape.Straight]),
  rows: [{ y: 1, name: "hosts" }],
  apart: 0,
  most: 5,
};

test.each([
  [400, 100],
  [100, 250],
  [100, 100],
  [3000, 100],
])(
  "a map has the shape of a view of %d x %d pixels, as far as it may be stretched",
  (wide, high) => {
    const { bounds, rows, stretch } = stretched(plan, stretchFor(plan, wide, high));
    const shape = (bounds[2] - bounds[0]) / (bounds[3] - bounds[1]);
    const asked = Math.min(plan.most, wide / high);
    expect(shape / asked).toBeGreaterThan(0.95);
    expect(shape / asked).toBeLessThan(1.06);
    expect(rows[0].y).toBeCloseTo(bounds[3]);
    expect(Math.min(...stretch)).toBe(1);
  },
);

test("arcs follow the stretch, too", () => {
  const bent = {
    ...plan,
    lines: new Float32Array([0, 0, 4, 0, 4, 0, 0, 0]),
    shapes: new Uint8Array([Shape.Arc, Shape.Arc]),
  };
  const { bounds } = stretched(bent, stretchFor(bent, 100, 150));
  expect((bounds[2] - bounds[0]) / (bounds[3] - bounds[1])).toBeCloseTo(100 / 150, 1);
});

test("many hosts of few switches have many columns, those of many switches three", () => {
  expect([1, 4, 8].map((most) => columnsOf(most, 1))).toEqual([1, 4, 8]);
  expect(columnsOf(100, 1)).toBe(17);
  expect(columnsOf(18, 36)).toBe(3);
  expect(columnsOf(36, 324)).toBe(3);
});
