import { expect, test } from "vitest";
import { curvesOfRuns } from "./parameters";
import { quantities } from "./quantity";

test("quantities of one dimension are in the unit of the first", () => {
  expect(quantities(["32 KiB", "800 kB", "1 MiB"])).toEqual({
    unit: "KiB",
    numbers: [32, 781.25, 1024],
  });
  expect(quantities(["1 GB/s", "8 Gbit/s"])!.numbers).toEqual([1, 1]);
  expect(quantities(["1 ms", "1 m"])).toBeNull();
  expect(quantities(["1 ms", "1"])).toBeNull();
});

test("runs over a key have its unit, and thresholds that follow it need no curves of their own", () => {
  const runs = ["1 MiB", "32 KiB", "800 kB"].map((buffer, at) => ({
    "switch.buffer": buffer,
    "control.recn.detection": ["512 KiB", "16 KiB", "400 kB"][at],
  }));
  expect(curvesOfRuns(runs)).toEqual({
    key: "switch.buffer",
    unit: "MiB",
    curves: [{ label: "", x: [0.03125, 800e3 / 1024 ** 2, 1], runs: [[1], [2], [0]] }],
  });
});

test("each value of the other keys has a curve of its own, and seeds are averaged", () => {
  const run = (load: string, scheme: string, seed: string) => ({
    load,
    "control.scheme": scheme,
    "run.seed": seed,
  });
  const found = curvesOfRuns([
    run("0.1", "none", "1"),
    run("0.2", "none", "1"),
    run("0.1", "ib-cc", "1"),
    run("0.1", "none", "2"),
  ]);
  expect(found!.curves).toEqual([
    { label: "control.scheme = none", x: [0.1, 0.2], runs: [[0, 3], [1]] },
    { label: "control.scheme = ib-cc", x: [0.1], runs: [[2]] },
  ]);
});

test("runs that no key connects have no curves", () => {
  const runs = ["none", "ib-cc", "dcqcn"].map((scheme, at) => ({
    "control.scheme": scheme,
    load: String(at / 10),
  }));
  expect(curvesOfRuns(runs)).toBeNull();
  const schemes = runs.map((run) => ({ "control.scheme": run["control.scheme"] }));
  expect(curvesOfRuns(schemes)).toBeNull();
});

test("runs that differ in the seed alone are drawn over it", () => {
  const found = curvesOfRuns([{ "run.seed": "1" }, { "run.seed": "2" }]);
  expect(found).toMatchObject({ key: "run.seed", curves: [{ x: [1, 2] }] });
});
