import { expect, test } from "vitest";
import type { Run } from "./run";
import { latencyCdf, latencyCdfWithin } from "./series";

const run = {
  facts: { warm_up_ps: 10, latency_max_ns: 1030 },
  times: [10, 20],
  latencySeries: { sample: [0, 1, 1], from: [1024, 512, 1024], packets: [1, 3, 1] },
  latencies: { host: [0, 1], from: [1024, 1024], to: [1027, 1030], packets: [1, 1] },
} as unknown as Run;

test("no packet takes longer than the slowest one that was measured", () => {
  expect(latencyCdf(run, null)!.x.at(-1)).toBe(1.03);
  expect(latencyCdf(run, 0)!.x.at(-1)).toBe(1.027);
  expect(latencyCdf({ ...run, latencySeries: null } as Run, null)!.x.at(-1)).toBe(1.03);
});

test("the largest latency has parts of a nanosecond, but its interval ends with a whole one", () => {
  const slower = { ...run, facts: { ...run.facts, latency_max_ns: 1031.4 } } as Run;
  expect(latencyCdf(slower, null)!.x).toEqual([0.511, 0.515, 1.0314]);
});

test("packets of the warm-up can be slower, up to the end of their interval", () => {
  expect(latencyCdfWithin(run, [0, 20])!.x.at(-1)).toBe(1.031);
});
