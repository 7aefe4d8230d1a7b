import { expect, test } from "vitest";
import type { Layout } from "../layout/layout";
import {
  closeUp,
  EDGE,
  fit,
  limited,
  plainCamera,
  ROW_WIDTH,
  stretchedCamera,
  zoomLimits,
} from "./camera";

const layout = { bounds: [0, 0, 100, 20], rows: [] } as unknown as Layout;
const [WIDTH, HEIGHT] = [1000, 418];

test("a camera far off or far away shows the map all the same", () => {
  const whole = fit(layout, WIDTH, HEIGHT);
  const camera = limited({ x: -500, y: 300, zoom: -30 }, layout, WIDTH, HEIGHT);
  expect(camera).toEqual({ x: 0, y: 20, zoom: whole.zoom - 1 });
  expect(limited({ x: 40, y: 9, zoom: 99 }, layout, WIDTH, HEIGHT)).toEqual({
    x: 40,
    y: 9,
    zoom: 10,
  });
  const fine = { x: 40, y: 9, zoom: 6 };
  expect(limited(fine, layout, WIDTH, HEIGHT)).toEqual(fine);
});

test("a close view of the edge has no room beyond the map, where the map is larger than the view", () => {
  const zoom = 6;
  const [wide, high] = [WIDTH / 2 ** zoom, HEIGHT / 2 ** zoom];
  const corner = closeUp([0, 0], zoom, layout, WIDTH, HEIGHT);
  // But for the marks of the outermost nodes, and names above and below.
  expect(corner.x - wide / 2).toBeCloseTo(-EDGE.wide / 2 ** zoom);
  expect(corner.y - high / 2).toBeCloseTo(-EDGE.high / 2 ** zoom);
  const bottom = closeUp([50, 20], zoom, layout, WIDTH, HEIGHT);
  expect(bottom.x).toBe(50);
  expect(bottom.y + high / 2).toBeCloseTo(20 + EDGE.high / 2 ** zoom);
});

test("a view that is higher than the map has its middle there", () => {
  const camera = closeUp([50, 20], 4, layout, WIDTH, HEIGHT);
  expect(camera.y).toBe(fit(layout, WIDTH, HEIGHT).y);
});

test("the limits of the zoom are those of the nearest camera", () => {
  const [least, most] = zoomLimits(layout, WIDTH, HEIGHT);
  for (const [asked, got] of [
    [-99, least],
    [99, most],
  ])
    expect(limited({ x: 5, y: 5, zoom: asked }, layout, WIDTH, HEIGHT).zoom).toBe(got);
});

test("names of rows have room at the left of a map that is as wide as the view", () => {
  const rows = [{ y: 0, name: "senders" }];
  const named = { ...layout, rows } as Layout;
  const { x, zoom } = fit(named, WIDTH, HEIGHT);
  const scale = 2 ** zoom;
  expect((0 - x) * scale + WIDTH / 2).toBeCloseTo(ROW_WIDTH);
  expect((100 - x) * scale + WIDTH / 2).toBeCloseTo(WIDTH - EDGE.wide);
  const narrow = { ...named, bounds: [0, 0, 10, 20] } as Layout;
  expect(fit(narrow, WIDTH, HEIGHT).x).toBeCloseTo(5);
  expect(fit(named, 320, HEIGHT)).toEqual(fit(layout, 320, HEIGHT));
});

test("a camera shows the same place of a map that is stretched otherwise", () => {
  const wide = { ...layout, stretch: [3, 1] } as Layout;
  const high = { ...layout, stretch: [1, 2] } as Layout;
  const seen = { x: 30, y: 8, zoom: 5 };
  const plain = plainCamera(seen, wide);
  expect(plain).toEqual({ x: 10, y: 8, zoom: 5 });
  expect(stretchedCamera(plain, wide)).toEqual(seen);
  expect(stretchedCamera(plain, high)).toEqual({ x: 10, y: 16, zoom: 5 });
});
