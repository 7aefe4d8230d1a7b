import { expect, test } from "vitest";
import { LOOKS, radiusOf, STAR_WAIST, starPoints, thickness, TRUNK } from "./shapes";

const VIEWS = [2, 5, 12, 20, 24, 60, 170, 500, 1024].flatMap((scale) =>
  [0.05, 0.26, 0.5, 1].map((room) => [scale, room * scale]),
);

test.each(VIEWS)("a star covers the widest branch: scale %d, room of %d pixels", (scale, room) => {
  const widest = TRUNK * thickness(scale, room);
  const radius = radiusOf(LOOKS.root, room);
  // The corners between its points are those nearest to its middle.
  const nearest = Math.min(...starPoints(0, 0, radius).map(([x, y]) => Math.hypot(x, y)));
  expect(nearest).toBeCloseTo(STAR_WAIST * radius);
  expect(2 * nearest).toBeGreaterThanOrEqual(widest);
  // What is selected has a ring around the star.
  expect(radiusOf(LOOKS.ring, room)).toBeGreaterThan(radius);
});

test("marks are no larger than their room, but never too small to be seen", () => {
  for (const room of [0, 1, 5, 18, 40, 100, 1000]) {
    const largest = radiusOf(LOOKS.victim, room);
    if (room >= 2 * LOOKS.root.least)
      expect(radiusOf(LOOKS.root, room) + largest).toBeLessThanOrEqual(room);
    for (const look of Object.values(LOOKS))
      expect(radiusOf(look, room)).toBeGreaterThanOrEqual(look.least);
  }
});
