import { expect, test } from "vitest";
import { escaped } from "../map/svg";
import { lookWidth, strokeLook } from "../map/webgl";
import { csv, fileName } from "../ui/download";
import type { Run } from "./run";
import { countingOrder, upperBound } from "./search";
import { portSums } from "./series";
import { bytes, clipped, clock, instant, time } from "./units";

test("upper bound is the number of values up to the limit", () => {
  const values = [1, 3, 3, 7];
  for (const limit of [0, 1, 2, 3, 6, 7, 9]) {
    expect(upperBound(values, limit)).toBe(values.filter((value) => value <= limit).length);
  }
});

test("counting order is a stable sort", () => {
  const keys = [2, 0, 2, 1, 0, 2];
  const { order, starts } = countingOrder(keys, 4);
  const sorted = keys.map((_, row) => row).sort((a, b) => keys[a] - keys[b] || a - b);
  expect(Array.from(order)).toEqual(sorted);
  expect(Array.from(starts)).toEqual([0, 2, 3, 6, 6]);
});

test("a live page that begins late has the rates of what it has seen", () => {
  // Two samples of 10 us each, from 90 us on, at 8 Gbit/s: 10 kB are the whole of a sample.
  const run = {
    series: {
      xmit_bytes: [10_000, 5_000],
      xmit_wait_ns: [0, 5_000],
      fecn_marked: [1, 2],
      queued_bytes: [7, 3],
    },
    times: [100e6, 110e6],
    rate: [8],
    ports: 1,
    interval: () => 10e6,
  } as unknown as Run;
  const [sum] = portSums(run, [90e6, 110e6]);
  expect(sum).toEqual({ row: 0, utilisation: 0.75, waiting: 0.25, marked: 3, largestQueue: 7 });
  expect(portSums(run, [100e6, 110e6])[0].utilisation).toBe(0.5);
});

test("what is not known of a port is left out of its means", () => {
  // The counter of waiting stands at its end in the second sample; of another port nothing is read.
  const run = {
    series: {
      xmit_bytes: [10_000, 5_000, NaN, NaN],
      xmit_wait_ns: [4_000, NaN, NaN, NaN],
      fecn_marked: [0, 0, 0, 0],
      queued_bytes: [0, 0, 0, 0],
    },
    times: [10e6, 40e6],
    rate: [8, 8],
    ports: 2,
    interval: (sample: number) => [10e6, 30e6][sample],
  } as unknown as Run;
  const shares = portSums(run, [0, 40e6]).map((sum) => [sum.utilisation, sum.waiting]);
  expect(shares).toEqual([
    [15_000 / 40_000, 0.4],
    [null, null],
  ]);
});

test("times and sizes have the unit that leaves at least 1", () => {
  expect([time(0), time(999), time(1500), time(2e9), time(1e12)]).toEqual([
    "0",
    "999 ps",
    "1.5 ns",
    "2 ms",
    "1 s",
  ]);
  expect([bytes(12), bytes(65536), bytes(2.5e6)]).toEqual(["12 B", "65.54 kB", "2.5 MB"]);
  expect(instant(1_234_500_000)).toBe("1.2345 ms");
  Object.assign(clock, { ps: 1e12, name: "s" });
  expect(instant(90e12)).toBe("90 s");
  Object.assign(clock, { ps: 1e9, name: "ms" });
});

test("CSV quotes what RFC 4180 wants quoted", () => {
  expect(
    csv(
      ["a", "b"],
      [
        ['say "x"', 1],
        ["x,y", null],
      ],
    ),
  ).toBe('a,b\r\n"say ""x""",1\r\n"x,y",\r\n');
});

test("CSV has nothing where there is no finite number, and formulas as they are", () => {
  const cells = [NaN, Infinity, -Infinity, 0.1 + 0.2, "=cmd()", "a\nb"];
  expect(csv(["a"], [cells])).toBe('a\r\n,,,0.30000000000000004,=cmd(),"a\nb"\r\n');
});

test("names of files have nothing that a path could be made of", () => {
  expect(fileName("../a b", "5 ms")).toBe("..-a-b-5-ms");
});

test("names of files fit into 255 bytes with their suffix", () => {
  for (const letter of ["x", "ä", "漢", "𝔸"]) {
    const name = fileName(letter.repeat(300), "0.1 ms");
    expect(new TextEncoder().encode(`${name}.csv`).length).toBeLessThanOrEqual(255);
    expect(name.endsWith("0.1-ms")).toBe(true);
    expect(name).not.toContain("…");
  }
});

test("a clipped text keeps its ends and breaks no letter", () => {
  expect(clipped("x".repeat(80))).toBe("x".repeat(80));
  expect(clipped("abcdefghij", 6)).toBe("abc…ij");
  expect(clipped("😀".repeat(10), 6)).toBe("😀😀😀…😀😀");
});

test("text in an SVG holds no tag and no control character", () => {
  expect(escaped('<script>"\u0001&\uffff')).toBe("&#60;script&#62;&#34;\ufffd&#38;\ufffd");
});

test("a stroke's look keeps its width to 1/16 of a pixel", () => {
  for (const width of [0.5, 0.9, 3, 7]) {
    expect(lookWidth(strokeLook([255, 1, 254], width))).toBeCloseTo(width, 1);
  }
  expect(strokeLook([255, 1, 254], 16)).toBe(0xfffe01ff);
});
