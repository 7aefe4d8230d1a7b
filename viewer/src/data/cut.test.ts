import { expect, test } from "vitest";
import { partOf } from "./cut";
import type { Run } from "./run";

test("a part of a table is said with what it is a part of, and a whole table is not", () => {
  const cut = { flows: 494_154, ranks: 200_000, limited_flows: 127 };
  const run = { facts: { cut } } as unknown as Run;
  expect(partOf(run, "flows", 100_000)).toBe("the 100,000 slowest of 494,154");
  expect(partOf(run, "limited_flows", 50)).toBe("the 50 most limited of 127");
  expect(partOf(run, "ranks", 100_000)).toBe("the first 100,000 of 200,000");
  expect(partOf(run, "programs", 3)).toBeNull();
  // A live page has no such facts.
  expect(partOf({ facts: {} } as unknown as Run, "flows", 3)).toBeNull();
});
