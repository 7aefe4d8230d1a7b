import { makeTable } from "apache-arrow";
import { expect, test } from "vitest";
import { SampledRows } from "./tables";

const table = () =>
  makeTable({
    sample: Uint16Array.of(1, 0, 2, 1),
    host: Uint32Array.of(10, 11, 12, 13),
    bytes: Uint16Array.of(5, 6, 7, 8),
  });

/** The buffers that can be reached from a value. */
function buffersOf(value: unknown, seen = new Set<unknown>()): Set<ArrayBufferLike> {
  if (typeof value !== "object" || value === null || seen.has(value)) return new Set();
  seen.add(value);
  if (ArrayBuffer.isView(value)) return new Set([value.buffer]);
  const parts = value instanceof Map ? [...value.values()] : Object.values(value);
  return new Set(parts.flatMap((part) => [...buffersOf(part, seen)]));
}

test("rows are by sample, in their order", () => {
  const rows = new SampledRows(table(), 3);
  expect(Array.from(rows.values("host", 1))).toEqual([10, 13]);
  expect(Array.from(rows.values("bytes", 0))).toEqual([6]);
  expect(Array.from(rows.all("bytes"))).toEqual([6, 5, 8, 7]);
});

test("a column that was used is held once", () => {
  const made = table();
  const rows = new SampledRows(made, 3);
  const [hosts, bytes] = (["host", "bytes"] as const).map(
    (name) => (made.getChild(name)!.toArray() as Uint32Array).buffer,
  );
  rows.values("host", 0);
  expect(buffersOf(rows).has(hosts)).toBe(false);
  expect(buffersOf(rows).has(bytes)).toBe(true);
});
