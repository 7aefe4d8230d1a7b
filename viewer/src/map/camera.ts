// What the camera sees.

import type { Run } from "../data/run";
import { clipped } from "../data/units";
import type { Layout } from "../layout/layout";
import type { Label } from "./scene";
import { LOOKS, type Look } from "./shapes";

/** Middle of the map and zoom: pixels of a unit are 2 ** zoom. */
export interface Camera {
  x: number;
  y: number;
  zoom: number;
}

// Pixels of a unit from which names fit.
const NAME_SWITCHES = 70;
const NAME_HOSTS = 190;
const MOST_NAMES = 400;
/** Letters of a name on the map. */
export const NAME_LETTERS = 32;
// Pixels below the map for the names of trees.
const NAME_HEIGHT = 18;
/** Pixels at the left of the map for the names of its rows, and the width of a view that has them. */
export const ROW_WIDTH = 125;
const LEAST_WITH_ROWS = 480;

/** Pixels at the left of a view of some width that names of rows take. */
export function rowsWidth(layout: Layout, width: number): number {
  return layout.rows.length && width >= LEAST_WITH_ROWS ? ROW_WIDTH : 0;
}

/** The camera that shows the whole layout. */
export function fit(layout: Layout, width: number, height: number): Camera {
  const [left, top, right, bottom] = layout.bounds;
  const side = rowsWidth(layout, width);
  const fitting = Math.min(
    (width - side) / (right - left),
    (height - NAME_HEIGHT) / (bottom - top),
  );
  const scale = Math.max(fitting, 1e-3);
  const y = (top + bottom) / 2 + NAME_HEIGHT / 2 / scale;
  const x = Math.min((left + right) / 2, left + (width / 2 - side) / scale);
  return { x, y, zoom: Math.log2(scale) };
}

// Zoom levels from that of the whole map down, and the largest one.
const FARTHEST = 1;
const CLOSEST = 10;

/** The least and the largest zoom. */
export function zoomLimits(layout: Layout, width: number, height: number): [number, number] {
  return [Math.min(CLOSEST, fit(layout, width, height).zoom - FARTHEST), CLOSEST];
}

/** The nearest camera that shows something of the map. */
export function limited(camera: Camera, layout: Layout, width: number, height: number): Camera {
  const [left, top, right, bottom] = layout.bounds;
  const [least, most] = zoomLimits(layout, width, height);
  return {
    x: Math.min(right, Math.max(left, camera.x)),
    y: Math.min(bottom, Math.max(top, camera.y)),
    zoom: Math.max(least, Math.min(most, camera.zoom)),
  };
}

/** The camera that shows a place closely, without more room beyond the map than is needed. */
export function closeUp(
  [x, y]: [number, number],
  zoom: number,
  layout: Layout,
  width: number,
  height: number,
): Camera {
  const whole = fit(layout, width, height);
  const [left, top, right, bottom] = layout.bounds;
  const within = (value: number, from: number, to: number, seen: number, middle: number) =>
    to - from <= seen ? middle : Math.min(to - seen / 2, Math.max(from + seen / 2, value));
  const scale = 2 ** zoom;
  const foot = NAME_HEIGHT / scale;
  return {
    x: within(x, left, right, width / scale, whole.x),
    y: within(y, top, bottom + foot, height / scale, whole.y),
    zoom,
  };
}

/** Names of what is on the screen, if there is room for them. */
export function names(
  run: Run,
  layout: Layout,
  camera: Camera,
  width: number,
  height: number,
): Label[] {
  const scale = 2 ** camera.zoom;
  if (scale < NAME_SWITCHES) return [];
  const labels: Label[] = [];
  const add = (x: number, y: number, text: string, of: Look) => {
    const isSeen =
      Math.abs(x - camera.x) * scale < width / 2 && Math.abs(y - camera.y) * scale < height / 2;
    if (isSeen && labels.length < MOST_NAMES)
      labels.push({ x, y, text: clipped(text, NAME_LETTERS), bold: false, of });
  };
  for (const { node, x, y } of layout.switches) add(x, y, run.nodes[node].name, LOOKS.switch);
  if (scale < NAME_HOSTS) return labels;
  for (const places of new Set([layout.senders, layout.receivers])) {
    for (let host = 0; host < run.hosts; host++) {
      add(places[2 * host], places[2 * host + 1], run.nodes[host].name, LOOKS.host);
    }
  }
  return labels;
}
