import { expect, test } from "vitest";
import { History } from "./history";
import type { Message } from "./message";

const PORTS = 3;
const NAMES = {
  host: (host: number) => `host-${host}`,
  port: (row: number) => `port-${row}`,
  isHostPort: () => false,
};
const NOTHING = new Uint32Array();

/** A sample without traffic, with a tree at a port that holds some bytes, or with the trees of before. */
function sample(time: number, trees?: { root: number; bytes: number }): Message {
  const one = (value: number) => Uint32Array.of(value);
  const forest = trees && {
    root_row: one(trees.root),
    root_vl: one(0),
    destination: one(0),
    contributors: one(1),
    victims: one(0),
    port_tree: one(0),
    port_row: one(trees.root),
    port_depth: one(0),
    port_parent: one(trees.root),
    port_queued: Float64Array.of(trees.bytes),
    host_tree: NOTHING,
    host: NOTHING,
    contributing: new Float64Array(),
    victim: new Float64Array(),
  };
  const names = ["rows", "xmit_bytes", "xmit_wait_ns", "xmit_cong_ns", "fecn_marked"];
  const empty = [...names, "queued_bytes", "down_rows", "class_bytes"];
  const limits = ["source", "destination", "sl", "ccti"].map((name) => `limit_${name}`);
  return {
    from_ps: time - 1,
    time_ps: time,
    classes: [],
    dcms: [],
    columns: {
      ...Object.fromEntries([...empty, ...limits].map((name) => [name, NOTHING])),
      ...forest,
    },
    version: "1",
  };
}

test("a sample without trees has those of the search before", () => {
  const history = new History(PORTS, 1, NAMES);
  history.add(sample(10));
  expect(history.treeTimes).toHaveLength(0);
  history.add({ ...sample(20, { root: 1, bytes: 5 }), trees_ps: 15 });
  history.add(sample(30));
  history.add(sample(40, { root: 1, bytes: 7 }));
  expect(Array.from(history.times)).toEqual([10, 20, 30, 40]);
  expect(Array.from(history.treeTimes)).toEqual([15, 40]);
  expect(Array.from(history.treeBytes)).toEqual([5, 7]);
  const lives = history.lifetimes.map(({ birth, death, died }) => ({ birth, death, died }));
  expect(lives).toEqual([{ birth: 15, death: 40, died: false }]);
});

test("trees of samples that are kept are kept", () => {
  const history = new History(PORTS, 1, NAMES);
  const every = 7;
  const samples = 2 * history.capacity;
  for (let at = 1; at <= samples; at++)
    history.add(sample(at, at % every === 1 ? { root: 2, bytes: at } : undefined));
  const first = history.times[0];
  expect(history.times).toHaveLength(history.capacity);
  // The first sample has trees; those of earlier ones, but for the last of them, may go.
  const kept = Array.from(history.treeTimes).filter((time) => time <= first);
  expect(kept.length).toBeGreaterThan(0);
  expect(kept.length).toBeLessThanOrEqual(2);
  expect(kept.at(-1)).toBe(first - ((first - 1) % every));
  expect(history.forests).toHaveLength(history.treeTimes.length);
  history.forests.forEach((forest, at) => expect(forest.queued[0]).toBe(history.treeTimes[at]));
});

test("a cable that is down at first has been so since before", () => {
  const history = new History(PORTS, 1, NAMES);
  const down = (time: number, ...rows: number[]) => {
    const { columns, ...rest } = sample(time);
    history.add({ ...rest, columns: { ...columns, down_rows: Uint32Array.from(rows) } });
  };
  down(10, 1);
  down(20, 1, 2);
  down(30, 2);
  expect(history.events.map(({ time, text }) => [time, text])).toEqual([
    [10, "link port-1 down, since before the first sample of this page"],
    [20, "link port-2 down"],
    [30, "link port-1 up"],
  ]);
});
