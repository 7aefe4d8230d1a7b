// Places of switches by topology: groups of dragonflies, grids, columns of a Slim Fly, rings, rows; any
// other graph by forces.

import {
  forceCollide,
  forceLink,
  forceManyBody,
  forceSimulation,
  forceX,
  forceY,
  type SimulationNodeDatum,
} from "d3-force";
import type { Run } from "../data/run";

export type Position = [number, number];

export interface Places {
  at: Map<number, Position>;
  /** Direction in which the hosts of a switch are, as an angle; without it they are all around it. */
  outward?: Map<number, number>;
  /** Coordinates of switches in a grid. */
  grid?: Map<number, number[]>;
}

/** Distance of switches in a grid; their hosts are around them. */
const PITCH = 3;
/** Distance of the planes of a grid with three dimensions. */
const DEPTH: Position = [1.8, 1.4];
// Forces take a second for some hundred switches; beyond that they are on a circle.
const MOST_BY_FORCE = 600;
const TICKS = 200;

const TAU = 2 * Math.PI;

/** Places that suit the generator of a fabric, or null if it is none of these topologies. */
export function placesOf(run: Run, switches: number[]): Places | null {
  const numbers = new Map(switches.map((node) => [node, numbersIn(run.nodes[node].name)]));
  const has = (count: number) => [...numbers.values()].every((one) => one.length >= count);
  switch (run.facts.fabric.generator) {
    case "dragonfly":
      return has(2) ? dragonfly(numbers) : null;
    case "dragonfly-plus":
      return has(2) ? dragonflyPlus(run, numbers) : null;
    case "slim-fly":
      return has(3) ? slimFly(numbers) : null;
    case "mesh":
    case "torus":
    case "hyper-x":
      return has(1) ? grid(numbers) : null;
    case "chain":
      return { at: new Map(switches.map((node, index) => [node, [index * PITCH, 0]])) };
    case "ring":
      return { at: circle(switches) };
    default:
      return null;
  }
}

export function placesByForce(run: Run, switches: number[]): Places {
  const start = circle(switches);
  if (switches.length < 3 || switches.length > MOST_BY_FORCE) return { at: start };
  return { at: forced(run, switches, start) };
}

function numbersIn(name: string): number[] {
  return name.split("-").flatMap((part) => (/^\d+$/.test(part) ? [Number(part)] : []));
}

function onCircle(index: number, count: number, radius: number, [x, y]: Position): Position {
  const angle = (TAU * index) / count;
  return [x + radius * Math.sin(angle), y - radius * Math.cos(angle)];
}

function radiusFor(count: number, apart: number, least = 0): number {
  return count === 1 ? 0 : Math.max(least, (count * apart) / TAU);
}

function angleFrom([x0, y0]: Position, [x1, y1]: Position): number {
  return Math.atan2(y1 - y0, x1 - x0);
}

function circle(switches: number[]): Map<number, Position> {
  if (switches.length === 2) return new Map(switches.map((node, at) => [node, [at * PITCH, 0]]));
  const radius = radiusFor(switches.length, PITCH, 1.2);
  return new Map(
    switches.map((node, index) => [node, onCircle(index, switches.length, radius, [0, 0])]),
  );
}

function most(numbers: Map<number, number[]>, place: number): number {
  let largest = 0;
  for (const one of numbers.values()) largest = Math.max(largest, one[place]);
  return 1 + largest;
}

/** Each group on a circle of its own, the hosts outside of it. */
function dragonfly(numbers: Map<number, number[]>): Places {
  const [groups, size] = [most(numbers, 0), most(numbers, 1)];
  const inner = radiusFor(size, 2, 1.2);
  const outer = radiusFor(groups, 2 * inner + 3.2, 2 * inner);
  const places: Places = { at: new Map(), outward: new Map() };
  for (const [node, [group, index]] of numbers) {
    const centre = onCircle(group, groups, outer, [0, 0]);
    const place = onCircle(index, size, inner, centre);
    places.at.set(node, place);
    places.outward!.set(node, angleFrom(size > 1 ? centre : [0, 0], place));
  }
  return places;
}

/** In each group the spines inside, next to the other groups, and the leaves with hosts outside. */
function dragonflyPlus(run: Run, numbers: Map<number, number[]>): Places {
  const groups = most(numbers, 0);
  const isLeaf = (node: number) => run.nodes[node].name.includes("leaf");
  const counts = [true, false].map((kind) =>
    most(new Map([...numbers].filter(([node]) => isLeaf(node) === kind)), 1),
  );
  const width = 2 * Math.max(...counts);
  const radius = radiusFor(groups, width + 1.5, width);
  const gap = 1.5 + 0.25 * width;
  const places: Places = { at: new Map(), outward: new Map() };
  for (const [node, [group, index]] of numbers) {
    const count = counts[isLeaf(node) ? 0 : 1];
    const [sin, cos] = [Math.sin((TAU * group) / groups), Math.cos((TAU * group) / groups)];
    const along = (index - (count - 1) / 2) * (width / count);
    const away = radius + (isLeaf(node) ? gap : 0);
    places.at.set(node, [away * sin + along * cos, -away * cos + along * sin]);
    places.outward!.set(node, Math.atan2(-cos, sin));
  }
  return places;
}

/** The columns of both halves on circles, and the switches of a column on a small one. */
function slimFly(numbers: Map<number, number[]>): Places {
  const [columns, rows] = [most(numbers, 1), most(numbers, 2)];
  const inner = radiusFor(rows, 1.9, 1.2);
  const outer = radiusFor(columns, 2 * inner + 3, 2 * inner);
  const places: Places = { at: new Map(), outward: new Map() };
  for (const [node, [half, column, row]] of numbers) {
    const middle: Position = [half * 2 * (outer + inner + 2), 0];
    const centre = onCircle(column, columns, outer, middle);
    const place = onCircle(row, rows, inner, centre);
    places.at.set(node, place);
    places.outward!.set(node, angleFrom(centre, place));
  }
  return places;
}

/** Coordinates of a mesh, torus or HyperX; the third dimension leads into the page, others repeat it. */
function grid(numbers: Map<number, number[]>): Places {
  const dimensions = Math.min(...[...numbers.values()].map((one) => one.length));
  const sizes = Array.from({ length: dimensions }, (_, place) => most(numbers, place));
  if (dimensions === 1) return { at: circle([...numbers.keys()]), grid: numbers };
  const deep = sizes[2] ?? 1;
  const pitch = DEPTH.map((apart) => Math.max(PITCH, apart * deep + 1.2));
  const wide = (sizes[0] + 1) * pitch[0] + deep * DEPTH[0];
  const high = (sizes[1] + 1) * pitch[1] + deep * DEPTH[1];
  const at = new Map<number, Position>();
  for (const [node, [x, y, z = 0, u = 0, v = 0]] of numbers) {
    at.set(node, [x * pitch[0] + z * DEPTH[0] + u * wide, y * pitch[1] + z * DEPTH[1] + v * high]);
  }
  return { at, grid: numbers };
}

function forced(run: Run, switches: number[], start: Map<number, Position>): Map<number, Position> {
  const nodes = switches.map((node): SimulationNodeDatum => {
    const [x, y] = start.get(node)!;
    return { x, y };
  });
  const index = new Map(switches.map((node, place) => [node, place]));
  const links = new Map<string, { source: number; target: number }>();
  for (const node of switches) {
    for (const row of run.portsOf(node)) {
      const [source, target] = [index.get(node)!, index.get(run.peerNode(row))];
      if (target !== undefined && source < target)
        links.set(`${source} ${target}`, { source, target });
    }
  }
  forceSimulation(nodes)
    .force(
      "link",
      forceLink([...links.values()])
        .distance(PITCH)
        .strength(0.6),
    )
    .force("charge", forceManyBody().strength(-6))
    .force("collide", forceCollide(1.3))
    .force("x", forceX(0).strength(0.04))
    .force("y", forceY(0).strength(0.04))
    .stop()
    .tick(TICKS);
  return new Map(switches.map((node, place) => [node, [nodes[place].x!, nodes[place].y!]]));
}
