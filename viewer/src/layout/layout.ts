import type { Run } from "../data/run";
import { roomOf, type Room } from "./room";

export type LayoutName = "unfolded" | "cabled";

export const enum Shape {
  Straight,
  /** Leaves and arrives upright. */
  Upright,
  /** Leaves sideways, so that it passes what is between its ends. */
  Arc,
}

export type Stretch = [number, number];

/** What a layout is made of before it is stretched to the shape of the view. */
export interface Plan {
  name: LayoutName;
  senders: Float32Array;
  receivers: Float32Array;
  switches: { node: number; x: number; y: number }[];
  /** Ends of each port's cable. */
  lines: Float32Array;
  shapes: Uint8Array;
  rows: { y: number; name: string }[];
  /** How far a cable is to the right of its way, so that the two ways are side by side. */
  apart: number;
  /** The largest stretch: rows can be as long as one likes, circles stay nearly round. */
  most: number;
}

/** x grows to the right and y downwards; the unit is the distance of two leaf switches, before they are stretched. */
export interface Layout {
  name: LayoutName;
  stretch: Stretch;
  /** Distance from a host, and from a switch, to the nearest other node. */
  room: Room;
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

// Hosts of one switch are in one row if they are few, else in a block of some columns.
const ONE_ROW = 8;
const COLUMNS = 3;
// Where there are few switches, blocks have up to so many columns together, to have few rows.
const MOST_COLUMNS = 48;
const FEW_ROWS = 6;

/** Columns of the hosts of each switch, of which one has at most so many hosts. */
export function columnsOf(most: number, leaves: number): number {
  if (most <= ONE_ROW) return Math.max(1, most);
  const wide = Math.min(Math.ceil(most / FEW_ROWS), Math.floor(MOST_COLUMNS / leaves));
  return Math.max(COLUMNS, wide);
}

export function hostsOf(run: Run): Map<number, number[]> {
  const groups = new Map<number, number[]>();
  leaves(run).forEach((leaf, host) => {
    const group = groups.get(leaf);
    if (group) group.push(host);
    else groups.set(leaf, [host]);
  });
  return groups;
}

// Part of the size of a small map that its cables are beside their way: they still lead to the marks of their nodes.
const APART = 0.006;

/** A plan in the shape of a view. */
export function stretched(plan: Plan, stretch: Stretch = [1, 1]): Layout {
  const [sx, sy] = stretch;
  const middles = scaledBy(plan, stretch);
  const { senders, receivers } = middles;
  const [left, top, right, bottom] = boundsOf(middles);
  const apart = Math.min(plan.apart, APART * Math.max(right - left, bottom - top));
  const lines = besides(middles.lines, apart);
  const switches = plan.switches.map(({ node, x, y }) => ({ node, x: x * sx, y: y * sy }));
  const { name, shapes } = plan;
  return {
    name,
    stretch,
    senders,
    receivers,
    switches,
    lines,
    shapes,
    rows: plan.rows.map((row) => ({ ...row, y: row.y * sy })),
    bounds: boundsOf({ lines, shapes, senders, receivers }),
    room: roomOf(switches, new Set([senders, receivers])),
  };
}

type Outline = Pick<Plan, "lines" | "shapes" | "senders" | "receivers">;

function scaledBy(plan: Plan, [sx, sy]: Stretch): Outline {
  const scaled = (values: Float32Array) =>
    values.map((value, at) => value * (at % 2 === 0 ? sx : sy));
  const senders = scaled(plan.senders);
  const receivers = plan.receivers === plan.senders ? senders : scaled(plan.receivers);
  return { senders, receivers, lines: scaled(plan.lines), shapes: plan.shapes };
}

/** Lines moved to the right of their way. */
function besides(lines: Float32Array, apart: number): Float32Array {
  if (!apart) return lines;
  for (let at = 0; at < lines.length; at += 4) {
    const [x0, y0, x1, y1] = lines.subarray(at, at + 4);
    const length = Math.hypot(x1 - x0, y1 - y0) || 1;
    const [nx, ny] = [(-(y1 - y0) / length) * apart, ((x1 - x0) / length) * apart];
    lines.set([x0 + nx, y0 + ny, x1 + nx, y1 + ny], at);
  }
  return lines;
}

// The narrowest map: that of a single host has no width.
const LEAST_SIDE = 0.4;
// Steps of the stretch in a doubling: while a window changes its size, the map is made again at each of them.
const STEPS = 16;

// Arcs are as high as they are long, so the shape of a map that has some does not follow its stretch at once.
const TRIES = 4;

/** The stretch with which a map fills most of a view of so many pixels. */
export function stretchFor(plan: Plan, width: number, height: number): Stretch {
  if (!(width > 0 && height > 0)) return [1, 1];
  const within = (factor: number) => Math.min(plan.most, Math.max(1 / plan.most, factor));
  let factor = 1;
  for (let left = plan.shapes.includes(Shape.Arc) ? TRIES : 1; left > 0; left--)
    factor = within((factor * (width / height)) / shapeOf(plan, stretchOf(factor)));
  const steps = STEPS * Math.abs(Math.log2(factor));
  return stretchOf(2 ** ((Math.sign(factor - 1) * Math.floor(steps)) / STEPS));
}

/** The stretch that makes a map so many times as wide, or as high, as it is: nothing gets smaller. */
const stretchOf = (factor: number): Stretch => (factor > 1 ? [factor, 1] : [1, 1 / factor]);

function shapeOf(plan: Plan, stretch: Stretch): number {
  const [left, top, right, bottom] = boundsOf(scaledBy(plan, stretch));
  return Math.max(LEAST_SIDE, right - left) / Math.max(LEAST_SIDE, bottom - top);
}

export function boundsOf({
  lines,
  shapes,
  senders,
  receivers,
}: Outline): [number, number, number, number] {
  const box: [number, number, number, number] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const places of [senders, receivers, lines])
    for (let at = 0; at < places.length; at += 2) widen(box, places[at], places[at + 1]);
  // Other curves stay in the box of their ends.
  for (let row = 0; row < shapes.length; row++)
    if (shapes[row] === Shape.Arc)
      for (const [x, y] of curve({ lines, shapes }, row, BENDS)) widen(box, x, y);
  return box[0] > box[2] ? [0, 0, 0, 0] : box;
}

function widen(box: [number, number, number, number], x: number, y: number): void {
  box[0] = Math.min(box[0], x);
  box[1] = Math.min(box[1], y);
  box[2] = Math.max(box[2], x);
  box[3] = Math.max(box[3], y);
}
