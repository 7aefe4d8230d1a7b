// The fabric unfolded: packets travel downwards, from the senders through the switches on the way up,
// the highest ones and those on the way down to the receivers. Every output port has a place of its
// own, and congestion trees have their roots at the bottom.

import type { Run } from "../data/run";
import { columnsOf, hostsOf, levels, Shape, type Plan } from "./layout";

// Distance of two rows of hosts, and width of the hosts of a switch.
const STEP = 0.26;
const BLOCK = 0.78;
const MOST_STRETCH = 6;

export function unfolded(run: Run): Plan {
  const level = levels(run);
  const groups = hostsOf(run);
  const switches = run.nodes.map((_, node) => node).slice(run.hosts);
  const leafCount = switches.filter((node) => level[node] === 0).length;
  const top = Math.max(0, ...switches.map((node) => level[node]));
  const most = Math.max(1, ...[...groups.values()].map((group) => group.length));
  const columns = columnsOf(most, groups.size);
  const apart = BLOCK / columns;
  const gap = 1.5 + 0.13 * leafCount;
  const x = new Float32Array(run.nodes.length);
  for (let one = 0; one <= top; one++) {
    const members = switches.filter((node) => level[node] === one);
    const width = leafCount / Math.max(1, members.length);
    members.forEach((node, place) => (x[node] = (place + 0.5) * width - 0.5));
  }
  // Down the page: the way up is above the middle.
  const heightOf = (node: number, up: boolean) => (up ? -1 : 1) * gap * (top - level[node]);
  const senders = new Float32Array(2 * run.hosts);
  const receivers = new Float32Array(2 * run.hosts);
  for (const [leaf, group] of groups) {
    group.forEach((host, place) => {
      const dx = ((place % columns) - (columns - 1) / 2) * apart;
      const dy = 0.5 + Math.floor(place / columns) * STEP;
      const [at, up, down] =
        leaf < 0 ? [0, 0, 0] : [x[leaf], heightOf(leaf, true), heightOf(leaf, false)];
      senders.set([at + dx, up - dy], 2 * host);
      receivers.set([at + dx, down + dy], 2 * host);
    });
  }
  const lines = new Float32Array(4 * run.ports);
  const shapes = new Uint8Array(run.ports);
  for (let row = 0; row < run.ports; row++) {
    const [node, peer] = [run.node[row], run.peerNode(row)];
    const far = peer < 0 ? node : peer;
    const sends = run.isHost(node);
    const lasts = run.isHost(far);
    const level_way = !sends && !lasts && level[far] === level[node];
    const up = sends || level_way || level[far] > level[node];
    const from = sends
      ? [senders[2 * node], senders[2 * node + 1]]
      : [x[node], heightOf(node, up && !lasts)];
    const to = lasts ? [receivers[2 * far], receivers[2 * far + 1]] : [x[far], heightOf(far, up)];
    lines.set([...from, ...to], 4 * row);
    shapes[row] = level_way ? Shape.Arc : Shape.Upright;
  }
  const places = new Map<string, { node: number; x: number; y: number }>();
  for (const node of switches) {
    for (const up of [true, false]) {
      const y = heightOf(node, up);
      places.set(`${node} ${y}`, { node, x: x[node], y });
    }
  }
  // The middle of the largest block of hosts.
  const middle = 0.5 + (Math.floor((most - 1) / columns) * STEP) / 2;
  const rows = [
    { y: -gap * top - middle, name: "senders" },
    ...Array.from({ length: 2 * top + 1 }, (_, index) => ({
      y: (index - top) * gap,
      name:
        top === 0
          ? "switches"
          : index === top
            ? "highest switches"
            : `switches, way ${index < top ? "up" : "down"}`,
    })),
    { y: gap * top + middle, name: "receivers" },
  ];
  return {
    name: "unfolded",
    senders,
    receivers,
    switches: [...places.values()],
    lines,
    shapes,
    rows,
    apart: 0,
    most: MOST_STRETCH,
  };
}
