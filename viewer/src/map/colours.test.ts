// Contrast as WCAG 2.2 defines it, and colours as people with colour blindness see them: the matrices of
// Machado, Oliveira and Fernandes, "A physiologically-based model for simulation of color vision
// deficiency" (2009), severity 1.

import { expect, test } from "vitest";
import { onRamp, rgb, THEMES, type Rgb } from "./colours";

type Matrix = [Rgb, Rgb, Rgb];
const SIGHTS: Record<string, Matrix> = {
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

const linear = (colour: Rgb): Rgb =>
  colour.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as Rgb;

const times = (matrix: Matrix, colour: Rgb): Rgb =>
  matrix.map((row) =>
    Math.min(
      1,
      Math.max(
        0,
        row.reduce((sum, value, at) => sum + value * colour[at], 0),
      ),
    ),
  ) as Rgb;

function luminance(colour: Rgb): number {
  const [r, g, b] = linear(colour);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: Rgb, b: Rgb): number {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}

/** CIELAB of a linear colour, D65. */
function lab([r, g, b]: Rgb): Rgb {
  const [x, y, z] = [
    (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
    0.2126 * r + 0.7152 * g + 0.0722 * b,
    (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
  ].map((value) => (value > 0.008856 ? Math.cbrt(value) : 7.787 * value + 16 / 116));
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

const distance = (a: Rgb, b: Rgb) => Math.hypot(...a.map((value, at) => value - b[at]));

/** The two colours that differ least for a kind of sight. */
function closest(colours: Rgb[], matrix: Matrix): { away: number; pair: string } {
  const seen = colours.map((colour) => lab(times(matrix, linear(colour))));
  const pairs = seen.flatMap((a, at) =>
    seen.slice(at + 1).map((b, next) => ({ away: distance(a, b), pair: `${at}-${at + 1 + next}` })),
  );
  return pairs.reduce((least, one) => (one.away < least.away ? one : least));
}

for (const [name, theme] of Object.entries(THEMES)) {
  test(`${name}: graphics have a contrast of 3:1 with the page, text of 4.5:1`, () => {
    for (const colour of [...theme.trees, theme.otherTrees, theme.switch, theme.accent]) {
      expect(contrast(colour, theme.page), String(colour)).toBeGreaterThanOrEqual(3);
    }
    for (const colour of [theme.ink, theme.faint]) {
      expect(contrast(colour, theme.page)).toBeGreaterThanOrEqual(4.5);
    }
  });

  test(`${name}: curves have a contrast of 3:1 with the page`, () => {
    for (const colour of theme.lines)
      expect(contrast(rgb(colour), theme.page), colour).toBeGreaterThanOrEqual(3);
  });

  test(`${name}: ramps get darker or lighter steadily, so that they need no hue`, () => {
    for (const ramp of Object.values(theme.ramps)) {
      const all = Array.from({ length: 33 }, (_, step) => luminance(onRamp(ramp, step / 32)));
      const rising = all.slice(1).every((value, at) => value > all[at]);
      const falling = all.slice(1).every((value, at) => value < all[at]);
      expect(rising || falling).toBe(true);
      expect(contrast(ramp[0], ramp[3])).toBeGreaterThan(4.5);
    }
  });

  for (const [sight, matrix] of Object.entries(SIGHTS)) {
    test(`${name}: trees differ by at least 9 in CIELAB with ${sight}`, () => {
      const { away, pair } = closest(theme.trees, matrix);
      expect(away, pair).toBeGreaterThanOrEqual(9);
    });

    test(`${name}: curves differ by at least 9 in CIELAB with ${sight}`, () => {
      const { away, pair } = closest(theme.lines.map(rgb), matrix);
      expect(away, pair).toBeGreaterThanOrEqual(9);
    });
  }
}
