import { expect, test } from "vitest";
import { LOOKS, radiusOf, STAR_WAIST, starPoints, thickness, TRUNK } from "./shapes";

test.each([5, 20, 24, 60, 170, 500, 1024])(
  "a star covers the widest branch at scale %d",
  (scale) => {
    const widest = TRUNK * thickness(scale);
    const radius = radiusOf(LOOKS.root, scale);
    // The corners between its points are those nearest to its middle.
    const nearest = Math.min(...starPoints(0, 0, radius).map(([x, y]) => Math.hypot(x, y)));
    expect(nearest).toBeCloseTo(STAR_WAIST * radius);
    expect(2 * nearest).toBeGreaterThanOrEqual(widest);
    // What is selected has a ring around the star.
    expect(radiusOf(LOOKS.ring, scale)).toBeGreaterThan(radius);
  },
);
