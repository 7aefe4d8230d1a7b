// Where the parts of a fabric are on the map.

import type { Run } from "../data/run";

export type LayoutName = "unfolded" | "cabled";

/** How a port's cable is drawn from its own end to the far one. */
export const enum Shape {
  Straight,
  /** Leaves and arrives upright. */
  Upright,
  /** Leaves sideways, so that it passes what is between its ends. */
  Arc,
}

/** x grows to the right and y downwards; the unit is the distance of two leaf switches. */
export interface Layout {
  name: LayoutName;
  /** Place of each host where it sends: x and y by turns. */
  senders: Float32Array;
  /** Place of each host where it receives; the same array if there is one place. */
  receivers: Float32Array;
  switches: { node: number; x: number; y: number }[];
  /** Ends of each port's cable: x0, y0, x1, y1. */
  lines: Float32Array;
  shapes: Uint8Array;
  /** Left, top, right, bottom. */
  bounds: [number, number, number, number];
  /** Names of rows, at their height. */
  rows: { y: number; name: string }[];
}

// Points of a curve that are looked at for the box around it.
const BENDS = 4;

/** Points of a port's cable: `steps` + 1 of them, or 2 if it is straight. */
export function curve(
  layout: Pick<Layout, "lines" | "shapes">,
  row: number,
  steps: number,
): [number, number][] {
  const [x0, y0, x1, y1] = layout.lines.subarray(4 * row, 4 * row + 4);
  const shape = layout.shapes[row] as Shape;
  if (shape === Shape.Straight || steps <= 1) {
    return [
      [x0, y0],
      [x1, y1],
    ];
  }
  let [cx0, cy0, cx1, cy1] = [x0, y0 + 0.45 * (y1 - y0), x1, y1 - 0.45 * (y1 - y0)];
  if (shape === Shape.Arc) {
    // To the right of its way, so that the two ways of a cable are apart.
    const [nx, ny] = [-(y1 - y0), x1 - x0];
    [cx0, cy0] = [x0 + 0.2 * (x1 - x0) + 0.25 * nx, y0 + 0.2 * (y1 - y0) + 0.25 * ny];
    [cx1, cy1] = [x1 - 0.2 * (x1 - x0) + 0.25 * nx, y1 - 0.2 * (y1 - y0) + 0.25 * ny];
  }
  return Array.from({ length: steps + 1 }, (_, step) => {
    const u = step / steps;
    const v = 1 - u;
    const [a, b, c, d] = [v * v * v, 3 * u * v * v, 3 * u * u * v, u * u * u];
    return [a * x0 + b * cx0 + c * cx1 + d * x1, a * y0 + b * cy0 + c * cy1 + d * y1];
  });
}

/** Distance of every node from its nearest host, -1 for hosts: 0 for a leaf switch. */
export function levels(run: Run): Int32Array {
  const level = new Int32Array(run.nodes.length).fill(-2);
  let front: number[] = [];
  for (let host = 0; host < run.hosts; host++) {
    level[host] = -1;
    front.push(host);
  }
  for (let next = 0; front.length; next++) {
    const reached: number[] = [];
    for (const node of front) {
      for (const row of run.portsOf(node)) {
        const peer = run.peerNode(row);
        if (peer >= 0 && level[peer] === -2) {
          level[peer] = next;
          reached.push(peer);
        }
      }
    }
    front = reached;
  }
  // Switches that no host reaches are drawn next to the leaves.
  return level.map((one) => (one === -2 ? 0 : one));
}

/** The switch of each host, or -1. */
export function leaves(run: Run): Int32Array {
  return Int32Array.from({ length: run.hosts }, (_, host) => {
    const row = run.portsOf(host)[0];
    return row === undefined ? -1 : run.peerNode(row);
  });
}

/** Hosts by switch. */
export function hostsOf(run: Run): Map<number, number[]> {
  const groups = new Map<number, number[]>();
  leaves(run).forEach((leaf, host) => {
    const group = groups.get(leaf);
    if (group) group.push(host);
    else groups.set(leaf, [host]);
  });
  return groups;
}

/** The box around all places and curves, with a margin. */
export function boundsOf(
  layout: Pick<Layout, "lines" | "shapes" | "senders" | "receivers">,
): [number, number, number, number] {
  const places = [...pairs(layout.senders), ...pairs(layout.receivers)];
  for (let row = 0; row < layout.shapes.length; row++) places.push(...curve(layout, row, BENDS));
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [x, y] of places) {
    left = Math.min(left, x);
    right = Math.max(right, x);
    top = Math.min(top, y);
    bottom = Math.max(bottom, y);
  }
  return [left - 0.6, top - 0.6, right + 0.6, bottom + 0.6];
}

function* pairs(values: Float32Array): Iterable<[number, number]> {
  for (let index = 0; index < values.length; index += 2) yield [values[index], values[index + 1]];
}
