import { partOf } from "../data/cut";
import { ANY_HOST, courseOf, unlimited } from "../data/limits";
import type { Run } from "../data/run";
import { destinationsOf } from "../data/paths";
import type { Forest } from "../data/trees";
import type { Selection } from "../data/selection";
import type { Cell } from "./download";
import {
  bytes,
  clipped,
  clock,
  digits,
  gbps,
  instant,
  isolated,
  percent,
  time as showTime,
} from "../data/units";

/** A name and a text; of a quantity, its value and the unit of that, too; of a list, all of it. */
export type Fact = [
  name: string,
  text: string,
  value?: number | string,
  unit?: string,
  /** Further quantities that the text has. */
  more?: readonly [name: string, value: number, unit: string][],
];

/** Facts as rows of a table: quantities are not rounded, and have their units next to them. */
export function plainFacts(facts: readonly Fact[]): Cell[][] {
  return facts.flatMap(([name, text, value, unit, more]) => [
    [name, value ?? text, unit ?? ""],
    ...(more ?? []).map(([what, amount, of]) => [`${name}, ${what}`, amount, of]),
  ]);
}

export const FACT_COLUMNS = ["name", "value", "unit"];

/** A few lines for the tooltip: the name first. */
export function describe(run: Run, chosen: Selection, time: number): string[] {
  const facts = factsOf(run, chosen, time);
  const lines = facts.slice(0, 6).map(([name, value]) => `${name}: ${value}`);
  return [nameOf(run, chosen), ...lines].map((line) => isolated(clipped(line)));
}

export function nameOf(run: Run, chosen: Selection): string {
  if (chosen.kind === "node") return run.nodes[chosen.node].name;
  if (chosen.kind === "port") return run.portName(chosen.row);
  if (chosen.kind === "flow") return flowName(run, chosen.source, chosen.destination);
  return `tree ${chosen.tree}`;
}

function kindOf(run: Run, chosen: Selection): string {
  if (chosen.kind === "node") return run.isHost(chosen.node) ? "host" : "switch";
  return chosen.kind;
}

export function titleOf(run: Run, chosen: Selection): string {
  const name = nameOf(run, chosen);
  return chosen.kind === "tree" ? name : `${kindOf(run, chosen)} ${name}`;
}

/** Names and values, the most telling first. */
export function factsOf(run: Run, chosen: Selection, time: number): Fact[] {
  const forest = run.treeTimes.length ? run.forest(run.treeSampleAt(time)) : null;
  if (chosen.kind === "port") return portFacts(run, chosen.row, time, forest);
  if (chosen.kind === "tree") return treeFacts(run, chosen.tree, time, forest);
  if (chosen.kind === "flow") return flowFacts(run, chosen, time);
  return nodeFacts(run, chosen.node, time, forest);
}

/** When queues and trees were sampled that are shown at an instant, if that was not at the same time. */
function instants(run: Run, time: number): [queues: string, trees: string] {
  const queues = run.times[run.sampleAt(time)] ?? time;
  const trees = run.treeTimes[run.treeSampleAt(time)];
  if (queues === trees || trees === undefined) return ["", ""];
  return [` at ${instant(queues)}`, ` at ${instant(trees)}`];
}

export function unitOf(run: Run): string {
  return run.facts.diagnosis ? "Gbit/s" : "bytes";
}

function portFacts(run: Run, row: number, time: number, forest: Forest | null): Fact[] {
  const peer = run.peerNode(row);
  const facts: Fact[] = [
    ["to", peer < 0 ? "nothing" : run.portName(run.peer[row])],
    ...(Array.from(run.downRows(time)).includes(row) ? [["cable", "down"] as Fact] : []),
    ...sampled(run, row, time),
  ];
  if (run.egress && !run.isHost(run.node[row])) {
    const to = destinationsOf(run, row).map((host) => run.nodes[host].name);
    const some = to.slice(0, 3).join(", ");
    facts.push([
      "leads to",
      to.length > 3 ? `${to.length} hosts: ${some}, ...` : some || "no host",
      to.join(", ") || undefined,
    ]);
  }
  const place = forest ? forest.rows.indexOf(row) : -1;
  if (forest && place >= 0) {
    const [, at] = instants(run, time);
    const queued = forest.queued[place];
    facts.push([`in a tree${at}`, `tree ${forest.tree[place]}, ${roleOf(run, forest, place)}`]);
    facts.push([
      (run.facts.diagnosis ? "lost by waiting" : "queued in the tree") + at,
      run.amount(queued),
      queued,
      unitOf(run),
    ]);
  }
  return facts;
}

function flowFacts(
  run: Run,
  { source, destination }: Selection & { kind: "flow" },
  time: number,
): Fact[] {
  const facts: Fact[] = [
    ["from", run.nodes[source].name],
    ["to", run.nodes[destination].name],
  ];
  if (!run.limits || !run.times.length) return facts;
  const { kind, flows } = run.limits;
  const sample = run.sampleAt(time);
  const own = flows.filter(
    (flow) =>
      flow.source === source && (flow.destination === destination || flow.destination === ANY_HOST),
  );
  const name = kind === "CCTI" ? "CCTI" : "rate limit, % of link";
  const part = partOf(run, "limited_flows", flows.length);
  if (!own.length)
    facts.push([
      name,
      part === null ? String(unlimited(kind)) : `not in this page, which has ${part}`,
    ]);
  for (const flow of own) {
    const value = courseOf(run.limits, flow, run.times.length)[sample];
    facts.push([own.length > 1 ? `${name}, SL ${flow.sl}` : name, digits(value, 4), value]);
  }
  return facts;
}

export function flowName(run: Run, source: number, destination: number): string {
  const to = destination === ANY_HOST ? "all" : run.nodes[destination].name;
  return `${run.nodes[source].name} > ${to}`;
}

/** Values of the port series in the interval around an instant. */
function sampled(run: Run, row: number, time: number): Fact[] {
  // A live page has no samples at first.
  if (!run.series || !run.times.length) return [];
  const sample = run.sampleAt(time);
  const at = row * run.times.length + sample;
  const interval = run.interval(sample);
  const rate = (run.series.xmit_bytes[at] * 8e3) / interval;
  const wait = (run.series.xmit_wait_ns[at] * 1e3) / interval;
  const link = run.rate[row];
  const share: Fact[4] = [["of the link", rate / link, "share"]];
  if (run.facts.diagnosis)
    return [
      known("transmits with headers", rate, "Gbit/s", ofShare(rate, link), share),
      known("waits", wait, "share", `${percent(wait)}, loses ${gbps(wait * link)}`, [
        ["loses", wait * link, "Gbit/s"],
      ]),
    ];
  const [queued, marked] = [run.series.queued_bytes[at], run.series.fecn_marked[at]];
  return [
    ["transmits with headers", ofLink(rate, link), rate, "Gbit/s", share],
    ["waits", percent(wait), wait, "share"],
    [`queue${instants(run, time)[0]}`, bytes(queued), queued, "bytes"],
    ["marked", `${marked} packets`, marked, "packets"],
  ];
}

/** A rate and its share of a link. Packets are counted whole, so a short interval can count one too many. */
function ofLink(rate: number, link: number): string {
  if (rate <= link) return ofShare(rate, link);
  return `${gbps(rate)} (100 %; packets are counted whole)`;
}

function ofShare(rate: number, link: number): string {
  return `${gbps(rate)} (${percent(rate / link)})`;
}

/** A fact about a value, if a diagnosis knows that value. */
function known(name: string, value: number, unit: string, text: string, more: Fact[4]): Fact {
  return Number.isNaN(value) ? [name, "not known"] : [name, text, value, unit, more];
}

export function roleOf(run: Run, forest: Forest, place: number): string {
  if (forest.depth[place] === 0) return "root";
  return run.isHost(run.node[forest.rows[place]])
    ? "source"
    : `branch of depth ${forest.depth[place]}`;
}

/** The first sample of a tree that does not exist at an instant, if the page has that sample; of others null. */
export function startOf(run: Run, chosen: Selection, time: number): number | null {
  if (chosen.kind !== "tree" || !run.treeTimes.length) return null;
  const { birth } = run.lifetimes[chosen.tree];
  const isTree = ({ tree }: { tree: number }) => tree === chosen.tree;
  const existsAt = (when: number) => run.treesAt(run.treeSampleAt(when)).some(isTree);
  return !existsAt(time) && existsAt(birth) ? birth : null;
}

function treeFacts(run: Run, tree: number, time: number, forest: Forest | null): Fact[] {
  const life = run.lifetimes[tree];
  const now = forest?.trees.find((one) => one.tree === tree);
  const unit = unitOf(run);
  const at = instants(run, time)[1] || " now";
  const facts: Fact[] = [
    ["root", run.portName(life.rootRow) + (life.destination && `, to ${life.destination}`)],
    ["first seen", showTime(life.birth), life.birth / clock.ps, clock.name],
    ["last seen", showTime(life.death), life.death / clock.ps, clock.name],
  ];
  if (now) {
    facts.push(
      [(run.facts.diagnosis ? "lost" : "bytes") + at, run.amount(now.queued), now.queued, unit],
      [`ports${at}`, String(now.ports)],
      [`contributors${at}`, String(now.contributors)],
      [`hosts with victims${at}`, String(now.victims)],
    );
  } else {
    facts.push(["at this instant", "does not exist"]);
  }
  facts.push(["peak", run.amount(life.peakQueued), life.peakQueued, unit]);
  facts.push(["peak ports", String(life.peakPorts)]);
  return facts;
}

function nodeFacts(run: Run, node: number, time: number, forest: Forest | null): Fact[] {
  const one = run.nodes[node];
  const lid: Fact[] = one.lid === null ? [] : [["LID", String(one.lid)]];
  const facts: Fact[] = [];
  if (!run.isHost(node)) {
    const members = run.portsOf(node).filter((row) => forest?.rows.includes(row));
    return [
      ...lid,
      ["ports", String(run.portsOf(node).length)],
      ["ports in trees", String(members.length)],
    ];
  }
  facts.push(...lid);
  if (one.role) facts.push(["role", one.role]);
  const uplink = run.portsOf(node)[0];
  if (uplink !== undefined) facts.push(...sampled(run, uplink, time));
  const down = uplink === undefined ? undefined : run.peer[uplink];
  const received = down !== undefined && down < run.ports ? sampled(run, down, time)[0] : undefined;
  if (received) facts.push(["receives with headers", ...received.slice(1)] as Fact);
  forest?.hosts.forEach((host, place) => {
    if (host !== node) return;
    const tree = `tree ${forest.hostTree[place]}${instants(run, time)[1]}`;
    const add = (what: string, amount: number) =>
      amount > 0 && facts.push([`${tree}, ${what}`, run.amount(amount), amount, unitOf(run)]);
    add("contributes", forest.contributing[place]);
    add(run.facts.diagnosis ? "victim, sends" : "held up", forest.victim[place]);
  });
  return facts;
}
