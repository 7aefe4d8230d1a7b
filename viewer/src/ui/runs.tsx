import { useComputed } from "@preact/signals";
import { isSameFabric, otherKeys } from "../data/compare";
import { curvesOfRuns, type RunCurve } from "../data/parameters";
import { measureName, measureParts } from "../data/headings";
import type { Run } from "../data/run";
import { latencyCdf } from "../data/series";
import { measuredSpan, spanOf, spanWords } from "../data/spans";
import { count, digits } from "../data/units";
import * as state from "../state";
import { Chart, type Line } from "./chart";
import type { Cell } from "./download";
import { Short } from "./short";
import { DataTable, type Column } from "./table";

export function Runs() {
  const runs = state.runs.value;
  return (
    <section class={runs.length === 2 ? "compared wide" : undefined} aria-labelledby="runs-title">
      <h2 id="runs-title">{runs.length === 2 ? "Comparison" : "Runs"}</h2>
      {runs.length === 2 ? (
        <>
          <WhatDiffers />
          <Differences />
          <Keys />
        </>
      ) : (
        <Points />
      )}
    </section>
  );
}

// Keys that a warning names; the table has all of them.
const MOST_NAMED = 6;

/** What besides congestion control and seed tells the runs apart: the changes are the effect of all of it. */
function WhatDiffers() {
  const [first, second] = state.runs.value;
  const keys = otherKeys(first);
  const isOneFabric = useComputed(() => {
    const [one, other] = state.runs.value;
    return isSameFabric(one, other);
  });
  const more = keys.length > MOST_NAMED ? `, and ${keys.length - MOST_NAMED} more` : "";
  const number = keys.length === 1 ? "One key differs" : `${keys.length} keys differ`;
  return (
    <>
      {!isOneFabric.value && (
        <p class="warning">
          <strong>Different fabrics:</strong> <Short text={first.facts.label} /> has {sizeOf(first)}
          , <Short text={second.facts.label} /> has {sizeOf(second)}. Ports are compared only where
          both ends of the cable have the same names in both; the selection is shown in the other
          run only where it has a counterpart.
        </p>
      )}
      {keys.length > 0 && (
        <p class="warning">
          <strong>Different scenarios:</strong> {number} besides congestion control and seed:{" "}
          {keys.slice(0, MOST_NAMED).join(", ") + more}. The changes below are not those of
          congestion control alone.
        </p>
      )}
      {first.facts.version !== second.facts.version && (
        <p class="warning">
          <strong>Different versions:</strong> silvan {first.facts.version} and{" "}
          {second.facts.version} made these runs.
        </p>
      )}
      {isOneFabric.value && keys.length === 0 && (
        <p class="none">
          Same fabric and same traffic
          {first.facts.seed === second.facts.seed
            ? `, seed ${first.facts.seed}.`
            : `; seeds ${first.facts.seed} and ${second.facts.seed}.`}
        </p>
      )}
    </>
  );
}

function sizeOf(run: Run): string {
  const { generator } = run.facts.fabric;
  const switches = run.nodes.length - run.hosts;
  const size = `${counted(run.hosts, "host", "hosts")}, ${counted(switches, "switch", "switches")}`;
  return `${size} (${generator ?? "own cables"})`;
}

const counted = (number: number, one: string, many: string) =>
  `${count(number)} ${number === 1 ? one : many}`;

function Keys() {
  const [first, second] = state.runs.value;
  const keys = Object.keys(first.facts.parameters);
  if (!keys.length) return null;
  const valueOf = (run: Run, key: string) =>
    run.facts.parameters[key] || (key.startsWith("control.") ? "not in effect" : "not set");
  return (
    <DataTable
      title="Keys of the scenario that differ"
      columns={["key", first.facts.label, second.facts.label].map((name) => ({ name }))}
      rows={keys.map((key) => ({
        id: key,
        cells: [key, valueOf(first, key), valueOf(second, key)],
      }))}
    />
  );
}

/** Results of two runs, and the second relative to the first. */
function Differences() {
  const [first, second] = state.runs.value;
  const [before, after] = [measures(first), measures(second)];
  const rows = [...new Set([...before.keys(), ...after.keys()])].map((name) => {
    const [a, b] = [before.get(name) ?? null, after.get(name) ?? null];
    const change = a && b !== null ? (100 * (b - a)) / a : null;
    return { id: name, cells: [name, a, b, change] };
  });
  const columns: Column[] = [
    { name: "measure" },
    ...[first, second].map(({ facts }) => ({ name: facts.label, show: inDigits })),
    { name: "change", unit: "%", show: asChange },
  ];
  return (
    <>
      <DataTable title="Differences" columns={columns} rows={rows} />
      {[first, second].map((run) => (
        <p key={run.facts.label} class="faint">
          <Short text={run.facts.label} />: receive rates (payload) and latencies of{" "}
          {spanWords(measuredSpan(run))}, trees of {spanWords(spanOf(run, null))}.
        </p>
      ))}
    </>
  );
}

const inDigits = (value: Cell) => (value === null ? "" : digits(Number(value)));

/** A number stays next to its unit. */
function asChange(value: Cell): string {
  if (value === null) return "";
  return `${Number(value) > 0 ? "+" : ""}${digits(Number(value), 3)}\u00a0%`;
}

function measures(run: Run): Map<string, number | null> {
  const found = new Map<string, number | null>(
    Object.entries(run.facts.rates_gbps).map(([name, value]) => [measureName(name), value]),
  );
  if (run.treeTimes.length) {
    found.set("trees, mean", meanOfTrees(run, run.treeCount));
    found.set("MB in trees, mean", meanOfTrees(run, run.treeBytes) / 1e6);
  }
  const cdf = latencyCdf(run, null);
  for (const share of cdf ? [50, 99] : []) {
    const at = cdf!.y.findIndex((value) => value >= share);
    found.set(`latency, ${share === 50 ? "median" : "99th percentile"}, µs`, cdf!.x[at] ?? null);
  }
  return found;
}

/** Samples of trees are left out where they would cost much, so that they are not evenly spaced. */
function meanOfTrees(run: Run, values: ArrayLike<number>): number {
  const weights = run.treeWeights(0, values.length - 1);
  return weights.reduce((sum, weight, at) => sum + weight * values[at], 0);
}

function mean(values: ArrayLike<number>): number {
  let sum = 0;
  for (let at = 0; at < values.length; at++) sum += values[at];
  return sum / values.length;
}

/** Curves of a chart of several runs. */
const MOST_LINES = 12;

/** The runs as a table to choose from, and their rates by the first parameter that is a quantity. */
function Points() {
  const runs = state.runs.value;
  const parameters = Object.keys(runs[0].facts.parameters);
  const rates = [...new Set(runs.flatMap((run) => Object.keys(run.facts.rates_gbps)))];
  const found = curvesOfRuns(runs.map((run) => run.facts.parameters));
  const drawn = found ? found.curves.flatMap((curve) => linesOf(runs, curve, rates)) : [];
  const lines = drawn.slice(0, MOST_LINES);
  const isMean = lines.some(({ behind }) => behind.some((all) => all.length > 1));
  const here = found?.curves
    .flatMap(({ x, runs: behind }) => behind.map((all, at) => ({ x: x[at], all })))
    .find(({ all }) => all.includes(state.active.value));
  return (
    <>
      <DataTable
        title="Runs of this page"
        columns={[
          ...["run", ...parameters].map((name) => ({ name })),
          ...rates.map((name) => ({ name: measureName(name), show: inDigits })),
        ]}
        rows={runs.map((run, index) => ({
          id: run.facts.label,
          cells: [
            run.facts.label,
            ...parameters.map((name) => run.facts.parameters[name]),
            ...rates.map((name) => run.facts.rates_gbps[name] ?? null),
          ],
          isSelected: index === state.active.value,
          onSelect: () => {
            state.selection.value = null;
            state.active.value = index;
          },
        }))}
      />
      {found && (
        <Chart
          title={`Rates by ${found.key}${isMean ? ", mean over the seeds" : ""}`}
          xLabel={found.unit ? `${found.key} (${found.unit})` : found.key}
          yLabel="Gbit/s"
          lines={lines.map(({ line }) => line)}
          at={here?.x}
          onPoints={([{ line, at }]) => {
            state.selection.value = null;
            state.active.value = lines[line].behind[at][0];
          }}
        />
      )}
      {drawn.length > lines.length && (
        <p class="faint">
          The first {lines.length} of {drawn.length} curves.
        </p>
      )}
    </>
  );
}

/** Each rate along a curve: means over the runs of each point. */
function linesOf(
  runs: Run[],
  curve: RunCurve,
  rates: string[],
): { line: Line; behind: number[][] }[] {
  return rates.flatMap((rate) => {
    const points = curve.runs.map((all) =>
      all.map((run) => runs[run].facts.rates_gbps[rate]).filter((value) => value !== undefined),
    );
    const known = [...points.keys()].filter((at) => points[at].length > 0);
    if (!known.length) return [];
    const name = measureParts(rate)[0];
    const line: Line = {
      label: curve.label ? `${name}, ${curve.label}` : name,
      x: known.map((at) => curve.x[at]),
      y: known.map((at) => mean(points[at])),
      points: "on",
    };
    return [{ line, behind: known.map((at) => curve.runs[at]) }];
  });
}
