// Fat trees in layers, other topologies by their names, anything else by forces; both ways of a cable are apart.

import type { Run } from "../data/run";
import { columnsOf, hostsOf, levels, Shape, type Plan } from "./layout";
import { placesByForce, placesOf, type Places, type Position } from "./places";

const APART = 0.035;
// Hosts of one ring around a switch, or beside it.
const RING = 8;
// Of layers, and of circles and grids.
const MOST_STRETCH = { layers: 6, others: 1.6 };

export function cabled(run: Run): Plan {
  const level = levels(run);
  const switches = run.nodes.map((_, node) => node).slice(run.hosts);
  const known = placesOf(run, switches);
  const isLayered =
    !known &&
    switches.length > 1 &&
    switches.every((node) =>
      run.portsOf(node).every((row) => {
        const peer = run.peerNode(row);
        return peer < 0 || run.isHost(peer) || level[peer] !== level[node];
      }),
    );
  let rows: Plan["rows"] = [];
  let places: Places = { at: new Map() };
  if (isLayered) rows = layers(run, switches, level, places.at);
  else places = known ?? placesByForce(run, switches);
  const hosts = new Float32Array(2 * run.hosts);
  const groups = hostsOf(run);
  const columns = columnsOf(most(groups), groups.size);
  for (const [leaf, group] of groups) {
    const [x, y] = places.at.get(leaf) ?? [0, 0];
    const outward = places.outward?.get(leaf);
    group.forEach((host, index) => {
      const place = isLayered
        ? below(x, y, index, Math.min(columns, group.length))
        : outward === undefined
          ? around(x, y, index, group.length)
          : outside(x, y, outward, index, group.length);
      hosts.set(place, 2 * host);
    });
  }
  const placeOf = (node: number): Position =>
    run.isHost(node) ? [hosts[2 * node], hosts[2 * node + 1]] : places.at.get(node)!;
  const lines = new Float32Array(4 * run.ports);
  const shapes = new Uint8Array(run.ports);
  for (let row = 0; row < run.ports; row++) {
    const peer = run.peerNode(row);
    lines.set([...placeOf(run.node[row]), ...placeOf(peer < 0 ? run.node[row] : peer)], 4 * row);
    // In a grid a cable to any but the next switch passes those between them.
    shapes[row] =
      places.grid && isFar(places.grid.get(run.node[row]), places.grid.get(peer))
        ? Shape.Arc
        : Shape.Straight;
  }
  return {
    name: "cabled",
    senders: hosts,
    receivers: hosts,
    switches: switches.map((node) => ({ node, x: placeOf(node)[0], y: placeOf(node)[1] })),
    lines,
    shapes,
    rows,
    apart: APART,
    most: isLayered ? MOST_STRETCH.layers : MOST_STRETCH.others,
  };
}

/** Switches by their distance from a host: leaves below, the highest on top. */
function layers(
  run: Run,
  switches: number[],
  level: Int32Array,
  places: Map<number, Position>,
): Plan["rows"] {
  const top = Math.max(...switches.map((node) => level[node]));
  const leafCount = switches.filter((node) => level[node] === 0).length;
  const gap = 1.5 + 0.13 * leafCount;
  const rows: Plan["rows"] = [];
  for (let one = 0; one <= top; one++) {
    const members = switches.filter((node) => level[node] === one);
    const width = leafCount / Math.max(1, members.length);
    members.forEach((node, place) => places.set(node, [(place + 0.5) * width - 0.5, -one * gap]));
    rows.push({
      y: -one * gap,
      name: one === top ? "highest switches" : `switches, level ${one + 1}`,
    });
  }
  const groups = hostsOf(run);
  const count = most(groups);
  const columns = columnsOf(count, groups.size);
  // The middle between the first and the last host of the largest block.
  const ends = [0, count - 1].map((index) => below(0, 0, index, columns)[1]);
  if (count) rows.push({ y: (ends[0] + ends[1]) / 2, name: "hosts" });
  return rows;
}

function isFar(one: number[] | undefined, other: number[] | undefined): boolean {
  return !!one && !!other && one.some((value, place) => Math.abs(value - other[place]) > 1);
}

function most(groups: Map<number, number[]>): number {
  return Math.max(0, ...[...groups.values()].map((group) => group.length));
}

/** Position of a host in a block below its switch. */
function below(x: number, y: number, index: number, columns: number): Position {
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

/** Position of a host beside its switch, in a direction. */
function outside(x: number, y: number, outward: number, index: number, count: number): Position {
  const inRing = Math.min(RING, count);
  const [ring, place] = [Math.floor(index / RING), index % RING];
  const angle = outward + (place - (inRing - 1) / 2) * 0.3;
  const radius = 0.75 + 0.3 * ring;
  return [x + radius * Math.cos(angle), y + radius * Math.sin(angle)];
}
