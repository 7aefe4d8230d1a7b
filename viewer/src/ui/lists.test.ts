import { expect, test } from "vitest";
import type { Run } from "../data/run";
import type { Forest } from "../data/trees";
import { listsOf, plainLists } from "./lists";

// a:1 - sw:1, b:1 - sw:2; a sends to b, and sw:2 is the root of tree 3.
const forest: Forest = {
  sample: 0,
  trees: [
    {
      tree: 3,
      rootRow: 3,
      destination: "b",
      depth: 1,
      ports: 2,
      sources: 1,
      queued: 3000.5,
      contributors: 1,
      victims: 1,
    },
  ],
  rows: Uint32Array.of(0, 3),
  tree: Uint32Array.of(3, 3),
  depth: Uint32Array.of(1, 0),
  parent: Uint32Array.of(3, 3),
  queued: Float64Array.of(1000.25, 2000.25),
  hosts: Uint32Array.of(0),
  hostTree: Uint32Array.of(3),
  contributing: Float64Array.of(900.125),
  victim: Float64Array.of(100.125),
};

function runOf(trees: Forest | null, down: number[] = []): Run {
  const names = ["a", "b", "sw"];
  const node = [0, 1, 2, 2];
  const number = [1, 1, 1, 2];
  return {
    facts: { path_choice: "table" },
    hosts: 2,
    nodes: names.map((name) => ({ name })),
    node,
    number,
    peer: [2, 3, 0, 1],
    egress: [1, 2],
    treeTimes: trees ? [0] : [],
    lifetimes: [{}, {}, {}, { rootRow: 3, destination: "b" }],
    forest: () => trees,
    treeSampleAt: () => 0,
    downRows: () => down,
    isHost: (one: number) => one < 2,
    peerNode: (row: number) => node[[2, 3, 0, 1][row]],
    portsOf: (one: number) => [[0], [1], [2, 3]][one],
    portName: (row: number) => `${names[node[row]]}:${number[row]}`,
    findNode: (name: string) => names.indexOf(name),
    amount: (value: number) => `${value} B`,
  } as unknown as Run;
}

const tableOf = (run: Run, ...chosen: Parameters<typeof listsOf>[1][]) =>
  chosen.flatMap((one) => plainLists(listsOf(run, one, 0))).map((row) => row.join("; "));

test("the table of a host has its ways, and what holds its packets up, with bytes", () => {
  expect(tableOf(runOf(forest), { kind: "node", node: 0 })).toEqual([
    "way 1; tree 3; ",
    "way 1, port 1; a:1; ",
    "way 1, port 2; sw:2; ",
    "way 1, to; b; ",
    "holds up 1; a:1; ",
    "holds up 1, state; waits for credits; ",
    "holds up 1, queued in the tree; 1000.25; bytes",
    "holds up 2; sw:2; ",
    "holds up 2, state; root; ",
    "holds up 2, queued in the tree; 2000.25; bytes",
    "holds up, to; b; ",
  ]);
});

test("the table of a flow says which cable is down", () => {
  const rows = tableOf(runOf(null, [3]), { kind: "flow", source: 0, destination: 1 });
  expect(rows).toContain("way 1, port 2, cable; down; ");
  expect(rows).toContain("What holds its packets up; The cable at sw:2 is down.; ");
});

test("the table of a flow says in which tree its packets wait beyond the port of its host", () => {
  const alone: Forest = {
    ...forest,
    rows: Uint32Array.of(3),
    tree: Uint32Array.of(3),
    depth: Uint32Array.of(0),
    parent: Uint32Array.of(3),
    queued: Float64Array.of(2000.25),
  };
  expect(tableOf(runOf(alone), { kind: "flow", source: 0, destination: 1 }).slice(-5)).toEqual([
    "holds up; tree 3; ",
    "holds up 1; sw:2; ",
    "holds up 1, state; root; ",
    "holds up 1, queued in the tree; 2000.25; bytes",
    "holds up, to; b; ",
  ]);
  // Packets of the other direction leave by sw:1.
  const [last] = tableOf(runOf(alone), { kind: "flow", source: 1, destination: 0 }).slice(-1);
  expect(last).toContain("No port on its path is in a congestion tree at this instant.");
});

test("the table of a tree has its root, branches, sources, contributors and hosts with victims", () => {
  expect(tableOf(runOf(forest), { kind: "tree", tree: 3 })).toEqual([
    "port 1; sw:2; ",
    "port 1, state; root; ",
    "port 1, queued in the tree; 2000.25; bytes",
    "source 1; a:1; ",
    "source 1, state; source; ",
    "source 1, queued in the tree; 1000.25; bytes",
    "contributor 1; a; ",
    "contributor 1, contributes; 900.125; bytes",
    "host with victims 1; a; ",
    "host with victims 1, held up; 100.125; bytes",
  ]);
});

test("the table of a switch says which of its ports are in trees", () => {
  expect(tableOf(runOf(forest), { kind: "node", node: 2 })).toEqual([
    "port in a tree 1; sw:2; ",
    "port in a tree 1, state; tree 3, root; ",
    "port in a tree 1, queued in the tree; 2000.25; bytes",
  ]);
});
