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

// Pixels of the room of a node from which names fit.
const NAME_SWITCHES = 35;
const NAME_HOSTS = 44;
const MOST_NAMES = 400;
/** Letters of a name on the map. */
export const NAME_LETTERS = 32;
/** Pixels around the outermost nodes for their marks, and above and below for names, too. */
export const EDGE = { wide: 24, high: 36 };
/** Pixels at the left of the map for the names of its rows, and the width of a view that has them. */
export const ROW_WIDTH = 145;
const LEAST_WITH_ROWS = 480;

/** Pixels at the left of a view of some width that names of rows take. */
export function rowsWidth(plan: Pick<Layout, "rows">, width: number): number {
  return plan.rows.length && width >= LEAST_WITH_ROWS ? ROW_WIDTH : 0;
}

/** Pixels of a view for the nodes of a map, and at its left for the names of rows. */
export function roomFor(
  plan: Pick<Layout, "rows">,
  width: number,
  height: number,
): { side: number; wide: number; high: number } {
  const side = Math.max(EDGE.wide, rowsWidth(plan, width));
  const [wide, high] = [width - side - EDGE.wide, height - 2 * EDGE.high];
  return { side, wide: Math.max(1, wide), high: Math.max(1, high) };
}

export function fit(layout: Layout, width: number, height: number): Camera {
  const [left, top, right, bottom] = layout.bounds;
  const { side, wide, high } = roomFor(layout, width, height);
  const fitting = Math.min(wide / (right - left), high / (bottom - top), 2 ** CLOSEST);
  const scale = Math.max(fitting, 1e-3);
  const x = Math.min((left + right) / 2, left + (width / 2 - side) / scale);
  return { x, y: (top + bottom) / 2, zoom: Math.log2(scale) };
}

/** A camera on the map before it is stretched: this is the same place in any view. */
export function plainCamera({ x, y, zoom }: Camera, { stretch: [sx, sy] }: Layout): Camera {
  return { x: x / sx, y: y / sy, zoom };
}

/** A camera on the map before it is stretched, on the stretched one. */
export function stretchedCamera({ x, y, zoom }: Camera, { stretch: [sx, sy] }: Layout): Camera {
  return { x: x * sx, y: y * sy, zoom };
}

// Zoom levels from that of the whole map down, and the largest one.
const FARTHEST = 1;
export const CLOSEST = 10;

export function zoomLimits(layout: Layout, width: number, height: number): [number, number] {
  return [Math.min(CLOSEST, fit(layout, width, height).zoom - FARTHEST), CLOSEST];
}

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
  const [wide, high] = [EDGE.wide / scale, EDGE.high / scale];
  return {
    x: within(x, left - wide, right + wide, width / scale, whole.x),
    y: within(y, top - high, bottom + high, height / scale, whole.y),
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
  const { room } = layout;
  const labels: Label[] = [];
  const add = (x: number, y: number, node: number, of: Look, isAbove = false) => {
    const isSeen =
      Math.abs(x - camera.x) * scale < width / 2 && Math.abs(y - camera.y) * scale < height / 2;
    if (!isSeen || labels.length >= MOST_NAMES) return;
    const text = clipped(run.nodes[node].name, NAME_LETTERS);
    const own = run.isHost(node) ? room.hosts : room.switches;
    labels.push({ x, y, text, bold: false, of, room: own, isAbove });
  };
  if (room.switches * scale >= NAME_SWITCHES)
    for (const { node, x, y } of layout.switches) add(x, y, node, LOOKS.switch);
  if (room.hosts * scale < NAME_HOSTS) return labels;
  for (const places of new Set([layout.senders, layout.receivers])) {
    const isAbove = places === layout.senders && places !== layout.receivers;
    // A ring can be around any host.
    for (let host = 0; host < run.hosts; host++)
      add(places[2 * host], places[2 * host + 1], host, LOOKS.victim, isAbove);
  }
  return labels;
}
