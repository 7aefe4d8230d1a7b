import { useComputed, useSignal } from "@preact/signals";
import { useState } from "preact/hooks";
import type { Run } from "../data/run";
import { nodeIn, portIn } from "../data/compare";
import { hasMeasure } from "../data/measures";
import type { Lifetime } from "../data/trees";
import { latencyCdf, latencyCdfWithin, portSums, rates, samplesWithin } from "../data/series";
import { isAfter, measuredSpan, spanOf, spanWords, whyEmpty } from "../data/spans";
import { bytes, clock, count, gbps, inClock, percent, plainInstant } from "../data/units";
import * as state from "../state";
import { Chart, type Line } from "./chart";
import type { Cell } from "./download";
import { Short } from "./short";
import { DataTable, firstRows, type Column, type Row, type Whole } from "./table";

const MOST_CLASSES = 8;

const asPercent = (value: Cell) => (value === null ? "" : percent(Number(value)));
/** Packets are counted whole, so a short interval can count more than a link carries. */
const asUtilisation = (value: Cell) =>
  asPercent(value === null ? null : Math.min(1, Number(value)));
const asBytes = (value: Cell) => (value === null ? "" : bytes(Number(value)));
const asInstant = (value: Cell) => plainInstant(Number(value));
const asGbps = (value: Cell) => (value === null ? "" : gbps(Number(value)));
const asCount = (value: Cell) => (value === null ? "" : count(Number(value)));

export function timed(lines: Line[], title: string, unit: string) {
  const marked = state.marked.value;
  return (
    <Chart
      title={title}
      xLabel={clock.name}
      yLabel={unit}
      lines={lines}
      at={state.panelTime.value / clock.ps}
      range={inClock(state.whole.value)}
      shaded={marked && [marked[0] / clock.ps, marked[1] / clock.ps]}
      onPick={(x) => (state.time.value = x * clock.ps)}
      onRange={([from, to]) => state.mark(from * clock.ps, to * clock.ps)}
    />
  );
}

function shownRuns(): Run[] {
  return state.runs.value.length === 2 ? state.runs.value : [state.run.value];
}

/** Lines of both runs that are compared, those of the second dashed, or of the one that is shown. */
function ofRuns(make: (run: Run) => Line[]): Line[] {
  const compared = state.runs.value.length === 2;
  return shownRuns().flatMap((run, index) =>
    make(run).map((line, place) => ({
      ...line,
      label: compared ? `${line.label}, ${run.facts.label}` : line.label,
      colour: line.colour ?? place,
      dash: index > 0 ? [5, 4] : undefined,
    })),
  );
}

export function ReceiveRates() {
  const byClass = useSignal(false);
  const hasClasses = state.runs.value.some((run) => run.classSeries);
  const lines = useComputed(() =>
    ofRuns((run) => {
      const [series, names] = byClass.value
        ? [run.classSeries, run.classes]
        : [run.groupSeries, run.facts.groups];
      if (!series) return [];
      const x = run.times.map((ps) => ps / clock.ps);
      return names.slice(0, MOST_CLASSES).map((label, index) => ({
        label,
        x,
        y: rates(run, series, index * run.times.length),
      }));
    }),
  );
  // Counters of a real subnet hold headers.
  const counted = state.run.value.facts.diagnosis ? "with headers" : "payload";
  return (
    <section aria-labelledby="rates-title">
      <h2 id="rates-title">Receive rates</h2>
      {hasClasses && (
        <label class="choice">
          <input
            type="checkbox"
            checked={byClass.value}
            onChange={(event) => (byClass.value = event.currentTarget.checked)}
          />
          by traffic class (sum), not mean per host
        </label>
      )}
      {timed(
        lines.value,
        `${byClass.value ? "Receive rate by class" : "Mean receive rate"}, ${counted}`,
        "Gbit/s",
      )}
    </section>
  );
}

/** The port that is selected, the root of the selected tree, or the uplink of the selected host. */
function chosenPort(run: Run): number | undefined {
  const chosen = state.selection.value;
  if (chosen?.kind === "port") return chosen.row;
  if (chosen?.kind === "tree") return run.lifetimes[chosen.tree]?.rootRow;
  if (chosen?.kind === "flow") return run.portsOf(chosen.source)[0];
  if (chosen?.kind === "node" && run.isHost(chosen.node)) return run.portsOf(chosen.node)[0];
  return undefined;
}

export function PortCharts() {
  const chosen = useComputed(() => {
    const row = chosenPort(state.run.value);
    return row === undefined ? null : state.run.value.portName(row);
  });
  const rowIn = (run: Run) => {
    const row = chosenPort(state.run.value);
    return row === undefined ? undefined : portIn(run, state.run.value, row);
  };
  const charts = useComputed(() => {
    const name = chosen.value;
    const column = (pick: (run: Run, at: number, sample: number) => number) =>
      ofRuns((run) => {
        const row = rowIn(run);
        if (!run.series || row === undefined) return [];
        const start = row * run.times.length;
        return [
          {
            label: name!,
            x: run.times.map((ps) => ps / clock.ps),
            y: Array.from(run.times, (_, sample) => pick(run, start + sample, sample)),
          },
        ];
      });
    return {
      queue: column((run, at) => run.series!.queued_bytes[at] / 1e3),
      rate: column((run, at, sample) => (run.series!.xmit_bytes[at] * 8e3) / run.interval(sample)),
      wait: column(
        (run, at, sample) => (run.series!.xmit_wait_ns[at] * 1e5) / run.interval(sample),
      ),
    };
  });
  const lacking = useComputed(() =>
    state.runs.value.length === 2 && chosen.value !== null
      ? state.runs.value.filter((run) => rowIn(run) === undefined)
      : [],
  );
  const name = chosen.value;
  return (
    <section aria-labelledby="port-title">
      <h2 id="port-title">
        <span>Port {name !== null && <Short text={name} />}</span>
      </h2>
      {name === null ? (
        <p class="none">Select a port, a host or a tree.</p>
      ) : (
        <>
          {lacking.value.map(({ facts }) => (
            <p key={facts.label} class="none">
              <Short text={facts.label} /> has no such port with the same port at the far end, so
              nothing is compared.
            </p>
          ))}
          {hasMeasure(state.run.value, "queue") && timed(charts.value.queue, "Queue", "kB")}
          {timed(charts.value.rate, "Transmit rate, with headers", "Gbit/s")}
          {timed(charts.value.wait, "Waiting for credits", "% of time")}
        </>
      )}
    </section>
  );
}

/** The stretch of time that the latencies of all runs are of, for the title; null if they differ. */
function latencySpan(): string | null {
  const [runs, window] = [shownRuns(), state.marked.value];
  if (window && runs.some((run) => run.latencySeries)) return spanWords(window);
  const [first, ...others] = runs.map((run) => spanWords(measuredSpan(run)));
  return others.every((words) => words === first) ? first : null;
}

export function Latencies() {
  const span = useComputed(latencySpan);
  const lines = useComputed(() => {
    const chosen = state.selection.value;
    const isHost = chosen?.kind === "node" && state.run.value.isHost(chosen.node);
    const name = isHost ? state.run.value.nodes[chosen.node].name : null;
    const window = state.marked.value;
    return ofRuns((run) => {
      const host = isHost ? nodeIn(run, state.run.value, chosen.node) : null;
      if (host === undefined) return [];
      // Latencies by host are not sampled over time.
      const follows = window !== null && run.latencySeries !== null;
      const within = follows && latencyCdfWithin(run, window);
      const lines: Line[] = within ? [{ label: "all hosts", ...within, steps: true }] : [];
      if (name === null && follows) return lines;
      const cdf = latencyCdf(run, host);
      const words = spanWords(measuredSpan(run));
      const own = name ?? "all hosts";
      const label = words === span.value ? own : `${own}, ${words}`;
      return cdf ? [{ label, ...cdf, steps: true }, ...lines] : lines;
    });
  });
  const empty = useComputed(() =>
    shownRuns().flatMap((run) =>
      run.latencySeries ? (whyEmpty(run, run.times, state.marked.value) ?? []) : [],
    ),
  );
  const isRecorded = shownRuns().some((run) => run.latencies || run.latencySeries);
  const nothing =
    state.isLive.value || state.run.value.facts.diagnosis
      ? "A live fabric and a real subnet have no latencies of packets."
      : undefined;
  return (
    <section aria-labelledby="latency-title">
      <h2 id="latency-title">Latency of packets</h2>
      {empty.value.map((text) => (
        <p key={text} class="none">
          {text}
        </p>
      ))}
      <Chart
        title={span.value === null ? "Latency" : `Latency, ${span.value}`}
        xLabel="µs"
        yLabel="% of packets"
        lines={lines.value}
        none={isRecorded ? "No packet was received." : nothing}
        cumulated="packets"
        holds
        logX
      />
    </section>
  );
}

const RANKINGS = { ports: "Ports", trees: "Trees", victims: "Victims", culprits: "Culprits" };
type Ranking = keyof typeof RANKINGS;

export function Rankings() {
  const [shown, setShown] = useState<Ranking>("ports");
  const names = Object.keys(RANKINGS) as Ranking[];
  const move = (to: number) => {
    const next = names[(to + names.length) % names.length];
    setShown(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  const ranked = useComputed(() => rankings(state.run.value));
  const { columns, rows, whole, sortBy } = ranked.value[shown];
  const none = whyNone(shown);
  return (
    <section class="wide" aria-labelledby="rankings-title">
      <h2 id="rankings-title">Rankings</h2>
      <div role="tablist" aria-label="Rankings" class="tabs">
        {names.map((name) => (
          <button
            key={name}
            id={`tab-${name}`}
            type="button"
            role="tab"
            aria-selected={shown === name}
            aria-controls="ranking"
            tabIndex={shown === name ? 0 : -1}
            onClick={() => setShown(name)}
            onKeyDown={(event) => {
              if (event.key === "ArrowRight") move(names.indexOf(shown) + 1);
              else if (event.key === "ArrowLeft") move(names.indexOf(shown) - 1);
              else if (event.key === "Home") move(0);
              else if (event.key === "End") move(-1);
              else return;
              event.preventDefault();
            }}
          >
            {RANKINGS[name]}
          </button>
        ))}
      </div>
      <div id="ranking" role="tabpanel" aria-labelledby={`tab-${shown}`}>
        {none !== null && <p class="none">{none}</p>}
        <DataTable
          key={shown}
          title={titleOf(shown)}
          columns={columns}
          rows={rows}
          whole={whole}
          sortBy={sortBy}
        />
      </div>
    </section>
  );
}

function titleOf(ranking: Ranking): string {
  const run = state.run.value;
  // Without samples, the totals of the ports are those after the warm-up.
  const isTotal = ranking === "ports" && !run.series;
  const span = isTotal ? measuredSpan(run) : spanOf(run, state.marked.value);
  return `${RANKINGS[ranking]}, ${spanWords(span)}`;
}

/** Why a ranking is empty in the marked window. Trees stand between their samples. */
function whyNone(ranking: Ranking): string | null {
  const [run, window] = [state.run.value, state.marked.value];
  if (ranking === "ports") return run.series && whyEmpty(run, run.times, window);
  return window && isAfter(run, window) ? whyEmpty(run, run.treeTimes, window) : null;
}

interface Ranked {
  columns: Column[];
  rows: Row[];
  whole: Whole;
  sortBy: number;
}

function rankings(run: Run): Record<Ranking, Ranked> {
  return { ports: topPorts(run), trees: topTrees(run), ...topHosts(run) };
}

/** What is not known comes last. */
const least = (share: number | null) => share ?? -1;

function topPorts(run: Run): Ranked {
  const sums = portSums(run, state.span.value).sort(
    (a, b) => least(b.waiting) - least(a.waiting) || least(b.utilisation) - least(a.utilisation),
  );
  const chosen = state.selection.value;
  return {
    columns: [
      { name: "port", isName: true },
      { name: "waiting", unit: "share", show: asPercent },
      {
        name: "utilisation",
        // Packets are counted whole, when they are sent.
        unit: run.facts.diagnosis ? "share" : "share, at most one packet above 1",
        show: asUtilisation,
      },
      ...(run.facts.diagnosis
        ? [{ name: "lost", unit: "Gbit/s", show: asGbps }]
        : [
            ...(run.series ? [{ name: "longest queue", unit: "bytes", show: asBytes }] : []),
            { name: "marked packets", show: asCount },
          ]),
    ],
    sortBy: run.facts.diagnosis ? 3 : 1,
    ...firstRows(
      sums,
      (sum) => [
        run.portName(sum.row),
        sum.waiting,
        sum.utilisation,
        ...(run.facts.diagnosis
          ? [sum.waiting === null ? null : sum.waiting * run.rate[sum.row]]
          : [...(run.series ? [sum.largestQueue] : []), sum.marked]),
      ],
      (sum) => ({
        id: run.portName(sum.row),
        isSelected: chosen?.kind === "port" && chosen.row === sum.row,
        onSelect: () => (state.selection.value = { kind: "port", row: sum.row }),
      }),
    ),
  };
}

function topTrees(run: Run): Ranked {
  const [from, to] = state.span.value;
  const chosen = state.selection.value;
  const peaks = peaksWithin(run);
  const lives = run.lifetimes
    .filter((life) => life.death >= from && life.birth <= to)
    .map((life) => ({ ...life, ...peaks?.get(life.tree) }))
    .sort((a, b) => b.peakQueued - a.peakQueued);
  return {
    columns: [
      { name: "tree" },
      { name: "root", isName: true },
      { name: "to", isSpare: true, isName: true },
      { name: `from, ${clock.name}`, show: asInstant },
      { name: `until, ${clock.name}`, show: asInstant },
      run.facts.diagnosis
        ? { name: "peak lost", unit: "Gbit/s", show: asGbps }
        : { name: "peak bytes", show: asBytes },
      { name: "peak ports", show: asCount },
      { name: "contributors", show: asCount },
      { name: "victims", show: asCount },
    ],
    sortBy: 5,
    ...firstRows(
      lives,
      (life) => [
        `T${life.tree}`,
        run.portName(life.rootRow),
        life.destination,
        life.birth / clock.ps,
        life.death / clock.ps,
        life.peakQueued,
        life.peakPorts,
        life.peakContributors,
        life.peakVictims,
      ],
      (life) => ({
        id: String(life.tree),
        isSelected: chosen?.kind === "tree" && chosen.tree === life.tree,
        onSelect: () => (state.selection.value = { kind: "tree", tree: life.tree }),
      }),
    ),
  };
}

/** The samples of trees in the window; of a short one, the sample before it, if there is one. */
function treeSamples(run: Run): [number, number] {
  if (isAfter(run, state.span.value)) return [0, -1];
  const [first, last] = samplesWithin(run.treeTimes, state.span.value);
  if (first <= last || last < 0) return [first, last];
  const held = run.treeSampleAt(state.span.value[1]);
  return [held, held];
}

/** The largest values of each tree in the marked window; those of the whole run are known. */
function peaksWithin(run: Run): Map<number, Partial<Lifetime>> | null {
  if (!state.marked.value) return null;
  const peaks = new Map<number, Partial<Lifetime>>();
  const [first, last] = treeSamples(run);
  for (let sample = first; sample <= last; sample++)
    for (const { tree, queued, ports, contributors, victims } of run.treesAt(sample)) {
      const peak = peaks.get(tree);
      peaks.set(tree, {
        peakQueued: Math.max(queued, peak?.peakQueued ?? 0),
        peakPorts: Math.max(ports, peak?.peakPorts ?? 0),
        peakContributors: Math.max(contributors, peak?.peakContributors ?? 0),
        peakVictims: Math.max(victims, peak?.peakVictims ?? 0),
      });
    }
  return peaks;
}

function topHosts(run: Run): { victims: Ranked; culprits: Ranked } {
  const [first, last] = treeSamples(run);
  const means = run.hostMeans(first, last);
  const chosen = state.selection.value;
  const ranked = (of: Float64Array, label: string): Ranked => ({
    columns: [
      { name: "host", isName: true },
      { name: "role" },
      run.facts.diagnosis
        ? { name: label, unit: "Gbit/s", show: asGbps }
        : { name: label, show: asBytes },
    ],
    sortBy: 2,
    ...firstRows(
      Array.from(of.keys())
        .filter((host) => of[host] > 0)
        .sort((a, b) => of[b] - of[a]),
      (host) => [run.nodes[host].name, run.nodes[host].role ?? "", of[host]],
      (host) => ({
        id: run.nodes[host].name,
        isSelected: chosen?.kind === "node" && chosen.node === host,
        onSelect: () => (state.selection.value = { kind: "node", node: host }),
      }),
    ),
  });
  return {
    victims: ranked(
      means.victim,
      run.facts.diagnosis ? "sends past roots, mean" : "held up, mean bytes",
    ),
    culprits: ranked(
      means.contributing,
      run.facts.diagnosis ? "towards roots, mean" : "towards roots, mean bytes",
    ),
  };
}
