import { useComputed, type ReadonlySignal } from "@preact/signals";
import { ANY_HOST, courseOf, strictest, type FlowLimits, type LimitedFlow } from "../data/limits";
import { partOf } from "../data/cut";
import type { Run } from "../data/run";
import type { Selection } from "../data/selection";
import { spanOf, spanWords, whyEmpty } from "../data/spans";
import { clock } from "../data/units";
import * as state from "../state";
import { flowName } from "./facts";
import { timed } from "./panels";
import type { Line } from "./chart";
import { Short } from "./short";
import { DataTable, firstRows, ofPart, type Column } from "./table";

const MOST_LINES = 6;
const MOST_LETTERS = 160;

/** Which flows a selection is about, and how a title says so. */
function wantedBy(
  run: Run,
  chosen: Selection | null,
): [words: string, wanted: (flow: LimitedFlow) => boolean] {
  if (chosen?.kind === "flow") {
    const { source, destination } = chosen;
    return [
      `of ${flowName(run, source, destination)}`,
      (flow) =>
        flow.source === source &&
        (flow.destination === destination || flow.destination === ANY_HOST),
    ];
  }
  if (chosen?.kind === "tree") {
    const to = run.findNode(run.lifetimes[chosen.tree]?.destination ?? "");
    if (to !== undefined)
      return [`of flows to ${run.nodes[to].name}`, (flow) => flow.destination === to];
  }
  const node =
    chosen?.kind === "node" ? chosen.node : chosen?.kind === "port" ? run.node[chosen.row] : -1;
  if (node >= 0 && run.isHost(node)) {
    const [name, isSender] = [
      run.nodes[node].name,
      limitsOf(run).flows.some((flow) => flow.source === node),
    ];
    return isSender
      ? [`of flows from ${name}`, (flow) => flow.source === node]
      : [`of flows to ${name}`, (flow) => flow.destination === node];
  }
  return ["of all flows", () => true];
}

function limitsOf(run: Run): FlowLimits {
  return run.limits ?? { kind: "CCTI", flows: [] };
}

function nameOf(run: Run, flow: LimitedFlow): string {
  const name = flowName(run, flow.source, flow.destination);
  return flow.sl ? `${name}, SL ${flow.sl}` : name;
}

interface Shown {
  what: string;
  words: string;
  unit: string;
  lines: Line[];
  table: ReturnType<typeof firstRows>;
}

/** The strictest limits among the flows that the selection is about, whatever the instant. */
function shownLimits(): Shown {
  const run = state.run.value;
  const limits = limitsOf(run);
  const chosen = state.selection.value;
  const [words, wanted] = wantedBy(run, chosen);
  const flows = strictest(limits, run.times, state.span.value, wanted);
  const x = run.times.map((ps) => ps / clock.ps);
  return {
    what: limits.kind === "CCTI" ? "CCTI" : "Rate limit",
    words,
    unit: limits.kind,
    lines: flows.slice(0, MOST_LINES).map(({ flow }, colour) => ({
      label: nameOf(run, flow),
      x,
      y: courseOf(limits, flow, run.times.length),
      colour,
      steps: true,
    })),
    table: firstRows(
      flows,
      ({ flow, mean, strictest: most }) => [
        run.nodes[flow.source].name,
        flow.destination === ANY_HOST ? "all" : run.nodes[flow.destination].name,
        flow.sl,
        mean,
        most,
      ],
      ({ flow }) => ({
        id: nameOf(run, flow),
        isSelected:
          chosen?.kind === "flow" &&
          chosen.source === flow.source &&
          chosen.destination === flow.destination,
        onSelect: () => select(flow),
      }),
    ),
  };
}

/** Why no limit is shown: a scheme may hold packets back without limits that it could state. */
function noLimits(run: Run): string {
  const { scheme } = run.facts;
  const empty = whyEmpty(run, run.times, state.marked.value);
  if (empty) return empty;
  if (scheme === "none") return "The run has no congestion control, so no flow is limited.";
  if (partOf(run, "limited_flows", limitsOf(run).flows.length) !== null)
    return "The page has none of their limits in this stretch of time.";
  if (limitsOf(run).flows.length) return "None of them is limited in this stretch of time.";
  if (scheme.startsWith("ib-cc")) return "No flow is throttled at any sample of this run.";
  return (
    `The scheme ${scheme} has stated no limit of a flow in this run. Schemes state limits if they ` +
    "set a window, a rate or a CCTI; half, pft and schemes in Python decide when a packet may " +
    "leave, and state none. Receive rates and queues show what they do."
  );
}

export function Limits() {
  const shown = useComputed(shownLimits);
  // A real subnet does not show the limits of its flows.
  if (!state.run.value.limits || state.run.value.facts.diagnosis) return null;
  const { what, words, table } = shown.value;
  const part = partOf(state.run.value, "limited_flows", limitsOf(state.run.value).flows.length);
  return (
    <section aria-labelledby="limits-title">
      <h2 id="limits-title">
        <Short text={`${what} ${words}`} most={MOST_LETTERS} />
      </h2>
      {part !== null && (
        <p class="none">
          This page has the limits of {part} flows, by their limits over the whole run; those of the
          others are not in this page.
        </p>
      )}
      {table.rows.length === 0 ? (
        <p class="none">{noLimits(state.run.value)}</p>
      ) : (
        <>
          <LimitChart shown={shown} />
          <LimitTable shown={shown} />
        </>
      )}
    </section>
  );
}

// The chart follows the instant; the table does not, and is not made again for it.
function LimitChart({ shown }: { shown: ReadonlySignal<Shown> }) {
  const { what, unit, lines } = shown.value;
  return timed(lines, `${what} of the most limited flows`, unit);
}

function LimitTable({ shown }: { shown: ReadonlySignal<Shown> }) {
  const { what, unit, table } = shown.value;
  const run = state.run.value;
  const part = partOf(run, "limited_flows", limitsOf(run).flows.length);
  const columns: Column[] = ["from", "to", "SL", `mean ${what}`, "strictest"].map((name, at) => ({
    name,
    // The name of the mean says that it is of CCTI.
    unit: at > 3 || (at === 3 && unit !== what) ? unit : undefined,
    isName: at < 2,
    show: at > 2 ? (value) => String(Number(Number(value).toFixed(2))) : undefined,
  }));
  const span = spanWords(spanOf(run, state.marked.value));
  return (
    <DataTable
      title={`Limited flows, ${span}${part === null ? "" : `, of ${part}`}`}
      columns={part === null ? columns : ofPart(columns, `${part} flows`)}
      sortBy={3}
      {...table}
    />
  );
}

function select({ source, destination }: LimitedFlow): void {
  state.selection.value =
    destination === ANY_HOST
      ? { kind: "node", node: source }
      : { kind: "flow", source, destination };
}
