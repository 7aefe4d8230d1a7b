// The fabric as it is cabled: fat trees in layers, grids as grids, rings as circles, anything else by
// forces. Both ways of a cable are drawn side by side.

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
import { boundsOf, hostsOf, levels, Shape, type Layout } from "./layout";

const COORDINATES = /-(\d+)-(\d+)(?:-(\d+))?$/;
// Forces take a second for some hundred switches; beyond that their places are in rings.
const MOST_BY_FORCE = 600;
const TICKS = 200;
const APART = 0.035;

type Position = [number, number];

export function cabled(run: Run): Layout {
  const level = levels(run);
  const switches = run.nodes.map((_, node) => node).slice(run.hosts);
  const isLayered =
    switches.length > 1 &&
    switches.every((node) =>
      run.portsOf(node).every((row) => {
        const peer = run.peerNode(row);
        return peer < 0 || level[peer] !== level[node];
      }),
    );
  const places = new Map<number, Position>();
  let rows: Layout["rows"] = [];
  if (isLayered) rows = layers(run, switches, level, places);
  else spread(run, switches, places);
  const hosts = new Float32Array(2 * run.hosts);
  for (const [leaf, group] of hostsOf(run)) {
    const [x, y] = places.get(leaf) ?? [0, 0];
    group.forEach((host, index) => {
      hosts.set(
        isLayered ? below(x, y, index, group.length) : around(x, y, index, group.length),
        2 * host,
      );
    });
  }
  const placeOf = (node: number): Position =>
    run.isHost(node) ? [hosts[2 * node], hosts[2 * node + 1]] : places.get(node)!;
  const lines = new Float32Array(4 * run.ports);
  const shapes = new Uint8Array(run.ports);
  const isGrid = !isLayered && gridOf(run, switches) !== null;
  for (let row = 0; row < run.ports; row++) {
    const peer = run.peerNode(row);
    const [[x0, y0], [x1, y1]] = [placeOf(run.node[row]), placeOf(peer < 0 ? run.node[row] : peer)];
    const length = Math.hypot(x1 - x0, y1 - y0) || 1;
    const [nx, ny] = [(-(y1 - y0) / length) * APART, ((x1 - x0) / length) * APART];
    lines.set([x0 + nx, y0 + ny, x1 + nx, y1 + ny], 4 * row);
    // In a grid a long cable joins the ends of a row, past all that is between them.
    shapes[row] = isGrid && length > 1.5 * GRID ? Shape.Arc : Shape.Straight;
  }
  return {
    name: "cabled",
    senders: hosts,
    receivers: hosts,
    switches: switches.map((node) => ({ node, x: placeOf(node)[0], y: placeOf(node)[1] })),
    lines,
    shapes,
    bounds: boundsOf({ lines, shapes, senders: hosts, receivers: hosts }),
    rows,
  };
}

/** Switches by their distance from a host: leaves below, the highest on top. */
function layers(
  run: Run,
  switches: number[],
  level: Int32Array,
  places: Map<number, Position>,
): Layout["rows"] {
  const top = Math.max(...switches.map((node) => level[node]));
  const leafCount = switches.filter((node) => level[node] === 0).length;
  const gap = 1.5 + 0.13 * leafCount;
  const rows: Layout["rows"] = [];
  for (let one = 0; one <= top; one++) {
    const members = switches.filter((node) => level[node] === one);
    const width = leafCount / Math.max(1, members.length);
    members.forEach((node, place) => places.set(node, [(place + 0.5) * width - 0.5, -one * gap]));
    rows.push({
      y: -one * gap,
      name: one === top ? "highest switches" : `switches, level ${one + 1}`,
    });
  }
  if (run.hosts) rows.push({ y: 0.8, name: "hosts" });
  return rows;
}

const GRID = 3;

function spread(run: Run, switches: number[], places: Map<number, Position>): void {
  const grid = gridOf(run, switches);
  if (grid) {
    switches.forEach((node, index) => places.set(node, grid[index]));
    return;
  }
  if (run.facts.fabric.generator === "chain") {
    switches.forEach((node, index) => places.set(node, [index * GRID, 0]));
    return;
  }
  const radius = Math.max(1.2, (switches.length * GRID) / (2 * Math.PI));
  const circle = switches.map((_, index): Position => {
    const angle = (2 * Math.PI * index) / switches.length - Math.PI / 2;
    return switches.length === 1 ? [0, 0] : [radius * Math.cos(angle), radius * Math.sin(angle)];
  });
  const byForce = switches.length > 2 && switches.length <= MOST_BY_FORCE;
  const found =
    byForce && run.facts.fabric.generator !== "ring" ? forced(run, switches, circle) : circle;
  switches.forEach((node, index) => places.set(node, found[index]));
}

/** Coordinates in the names of switches, if the generator is one that writes them. */
function gridOf(run: Run, switches: number[]): Position[] | null {
  if (!["mesh", "torus"].includes(run.facts.fabric.generator ?? "")) return null;
  const found = switches.map((node) => COORDINATES.exec(run.nodes[node].name));
  if (found.some((match) => match === null)) return null;
  return found.map((match) => {
    const [x, y, z] = match!.slice(1, 4).map((text) => Number(text ?? 0));
    // The third dimension leads into the page.
    return [GRID * x + 0.9 * z, GRID * y + 0.7 * z];
  });
}

function forced(run: Run, switches: number[], start: Position[]): Position[] {
  const nodes = switches.map((node, index): SimulationNodeDatum & { node: number } => ({
    node,
    x: start[index][0],
    y: start[index][1],
  }));
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
        .distance(GRID)
        .strength(0.6),
    )
    .force("charge", forceManyBody().strength(-6))
    .force("collide", forceCollide(1.3))
    .force("x", forceX(0).strength(0.04))
    .force("y", forceY(0).strength(0.04))
    .stop()
    .tick(TICKS);
  return nodes.map((node) => [node.x!, node.y!]);
}

/** Position of a host in a block below its switch. */
function below(x: number, y: number, index: number, count: number): Position {
  const columns = count <= 8 ? count : 3;
  const apart = 0.78 / columns;
  return [
    x + ((index % columns) - (columns - 1) / 2) * apart,
    y + 0.5 + Math.floor(index / columns) * 0.26,
  ];
}

/** Position of a host on a circle around its switch. */
function around(x: number, y: number, index: number, count: number): Position {
  const angle = (2 * Math.PI * (index + 0.5)) / count - Math.PI / 3;
  const radius = 0.75 + 0.05 * Math.max(0, count - 12);
  return [x + radius * Math.cos(angle), y + radius * Math.sin(angle)];
}
