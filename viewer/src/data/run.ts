// A run as the page sees it: fabric, samples of ports, congestion trees, latencies, events.

import type { Table } from "apache-arrow";
import { readLimits, type FlowLimits } from "./limits";
import type { RunFacts } from "./page";
import type { Diagnosis } from "./diagnosis";
import { bytes, gbps } from "./units";
import type { Selection } from "./selection";
import { countingOrder, upperBound } from "./search";
import { colourPlaces } from "./colouring";

export type Numbers = Float64Array | Float32Array | Uint32Array | Uint16Array | Uint8Array;

/** Hosts up to which the paths from a port are highlighted. */
const MOST_PATHS = 64;

/** The peer of a port that is not connected. */
export const NO_ROW = 0xffffffff;

export interface Node {
  name: string;
  /** Only hosts have one. */
  lid: number | null;
  role: string | null;
  receives: boolean;
  delivered: number;
}

export interface Event {
  time: number;
  kind: string;
  text: string;
}

/** A tree at one sample. */
export interface Tree {
  tree: number;
  rootRow: number;
  destination: string;
  depth: number;
  ports: number;
  sources: number;
  queued: number;
  contributors: number;
  victims: number;
}

/** The members of all trees at one sample, by row of the table of ports, and their hosts. */
export interface Forest {
  sample: number;
  trees: Tree[];
  /** Row, tree, depth, parent row and bytes of each Port VL in a tree. */
  rows: Uint32Array;
  tree: Uint32Array;
  depth: Uint32Array;
  parent: Uint32Array;
  queued: Float64Array;
  /** Host, tree, bytes towards the root and bytes that go elsewhere. */
  hosts: Uint32Array;
  hostTree: Uint32Array;
  contributing: Float64Array;
  victim: Float64Array;
}

export interface Lifetime {
  tree: number;
  rootRow: number;
  destination: string;
  birth: number;
  death: number;
  died: boolean;
  lineage: number;
  peakPorts: number;
  peakQueued: number;
  peakContributors: number;
  peakVictims: number;
}

/** Port counters by sample, port by port: value of port p at sample s is at p * samples + s. */
export interface PortSeries {
  xmit_bytes: Numbers;
  xmit_wait_ns: Numbers;
  xmit_cong_ns: Numbers;
  fecn_marked: Numbers;
  queued_bytes: Numbers;
}

type Load = (name: string) => Table;

export class Run {
  readonly nodes: Node[];
  readonly hosts: number;
  /** Node, port number, peer and rate of each port. */
  readonly node: Numbers;
  readonly number: Numbers;
  readonly peer: Numbers;
  readonly rate: Numbers;
  readonly totals: Record<"xmit_bytes" | "xmit_wait_ps" | "fecn_marked", Numbers>;
  /** Ends of the intervals of all time series but the trees', in picoseconds. */
  readonly times: Float64Array;
  readonly series: PortSeries | null;
  /** The longest queue of any port at any sample, in bytes; at least 1. */
  readonly largestQueue: number;
  readonly groupSeries: Numbers | null;
  readonly classSeries: Numbers | null;
  readonly classes: string[];
  /** When the trees were sampled, in picoseconds. */
  readonly treeTimes: Float64Array;
  readonly treeCount: Numbers;
  readonly treeBytes: Numbers;
  readonly lifetimes: Lifetime[];
  readonly events: Event[];
  readonly limits: FlowLimits | null;
  /** Port by which each switch sends packets for each host, switch by switch; null if that is not known. */
  protected egress: Numbers | null;
  /** Of the packets that arrived in each sample: smallest latency of an interval, and packets. */
  readonly latencySeries: { sample: Numbers; from: Numbers; packets: Numbers } | null;
  readonly latencies: { host: Numbers; from: Numbers; to: Numbers; packets: Numbers } | null;
  /** Further tables as they are: flows, programs, ranks, sequences. */
  readonly extras: Map<string, Table>;
  /** The diagnosis at each sample, as JSON; none of a simulated run. */
  readonly reports: ArrayLike<string>;
  private parsed: { text: string; diagnosis: Diagnosis } | null = null;
  private readonly byName = new Map<string, number>();
  private readonly rowsOfNode: number[][];
  private readonly rowByName = new Map<string, number>();
  private readonly trees: SampledRows | null;
  private readonly treePorts: SampledRows | null;
  private readonly treeHosts: SampledRows | null;
  private cached: Forest | null = null;
  private places: Map<number, number> | null = null;

  constructor(
    readonly facts: RunFacts,
    load: Load,
  ) {
    const has = (name: string) => facts.tables.includes(name);
    const nodes = load("nodes");
    const column = (table: Table, name: string) => table.getChild(name)!;
    const [names, lids, roles, receives, delivered] = [
      "name",
      "lid",
      "role",
      "receives",
      "delivered_bytes",
    ].map((name) => column(nodes, name));
    this.nodes = Array.from({ length: nodes.numRows }, (_, row) => ({
      name: names.get(row) as string,
      lid: lids.get(row) as number | null,
      role: roles.get(row) as string | null,
      receives: receives.get(row) as boolean,
      delivered: (delivered.get(row) as number | null) ?? 0,
    }));
    this.hosts = facts.hosts;
    this.nodes.forEach((node, index) => this.byName.set(node.name, index));
    const ports = load("ports");
    this.node = numbers(ports, "node");
    this.number = numbers(ports, "number");
    this.peer = numbers(ports, "peer");
    this.rate = numbers(ports, "rate_gbps");
    this.totals = {
      xmit_bytes: numbers(ports, "xmit_bytes"),
      xmit_wait_ps: numbers(ports, "xmit_wait_ps"),
      fecn_marked: numbers(ports, "fecn_marked"),
    };
    this.rowsOfNode = this.nodes.map(() => []);
    for (let row = 0; row < this.node.length; row++) {
      this.rowsOfNode[this.node[row]].push(row);
      this.rowByName.set(this.portName(row), row);
    }
    this.times = has("samples") ? floats(load("samples"), "time_ps") : new Float64Array();
    this.series = null;
    if (has("port_series")) {
      const table = load("port_series");
      this.series = {
        xmit_bytes: numbers(table, "xmit_bytes"),
        xmit_wait_ns: numbers(table, "xmit_wait_ns"),
        xmit_cong_ns: numbers(table, "xmit_cong_ns"),
        fecn_marked: numbers(table, "fecn_marked"),
        queued_bytes: numbers(table, "queued_bytes"),
      };
    }
    this.largestQueue = largest(this.series?.queued_bytes ?? []);
    this.groupSeries = has("group_series")
      ? numbers(load("group_series"), "delivered_bytes")
      : null;
    this.classSeries = has("class_series")
      ? numbers(load("class_series"), "delivered_bytes")
      : null;
    const classNames = has("classes") ? column(load("classes"), "name") : null;
    this.classes = classNames ? Array.from(classNames as Iterable<string>) : [];
    this.lifetimes = [];
    this.trees = this.treePorts = this.treeHosts = null;
    this.treeTimes = new Float64Array();
    this.treeCount = this.treeBytes = new Float64Array();
    if (has("forest")) {
      const forest = load("forest");
      this.treeTimes = floats(forest, "time_ps");
      this.treeCount = numbers(forest, "trees");
      this.treeBytes = numbers(forest, "queued_bytes");
      this.lifetimes = lifetimes(load("tree_lifetimes"));
      const samples = this.treeTimes.length;
      this.trees = new SampledRows(load("trees"), samples);
      this.treePorts = new SampledRows(load("tree_ports"), samples);
      this.treeHosts = new SampledRows(load("tree_hosts"), samples);
    }
    this.egress = has("routes") ? numbers(load("routes"), "port") : null;
    this.limits = has("flow_limits")
      ? readLimits(load("limited_flows"), load("flow_limits"), numbers)
      : null;
    this.latencies = null;
    if (has("latencies")) {
      const table = load("latencies");
      this.latencies = {
        host: numbers(table, "host"),
        from: numbers(table, "from_ns"),
        to: numbers(table, "to_ns"),
        packets: numbers(table, "packets"),
      };
    }
    this.latencySeries = null;
    if (has("latency_series")) {
      const table = load("latency_series");
      this.latencySeries = {
        sample: numbers(table, "sample"),
        from: numbers(table, "from_ns"),
        packets: numbers(table, "packets"),
      };
    }
    this.events = has("events") ? events(load("events")) : [];
    this.reports = has("reports")
      ? Array.from(column(load("reports"), "report") as Iterable<string>)
      : [];
    const others = ["flows", "sequences", "programs", "ranks"].filter(has);
    this.extras = new Map(others.map((name) => [name, load(name)]));
  }

  get ports(): number {
    return this.node.length;
  }

  isHost(node: number): boolean {
    return node < this.hosts;
  }

  /** Name of a port as switches print it: node:number. */
  portName(row: number): string {
    return `${this.nodes[this.node[row]].name}:${this.number[row]}`;
  }

  findNode(name: string): number | undefined {
    return this.byName.get(name);
  }

  findPort(name: string): number | undefined {
    return this.rowByName.get(name);
  }

  /** Rows of the ports of a node. */
  portsOf(node: number): readonly number[] {
    return this.rowsOfNode[node];
  }

  /** Node at the far end of a port, or -1. */
  peerNode(row: number): number {
    return this.peer[row] === NO_ROW ? -1 : this.node[this.peer[row]];
  }

  /** The sample of the time series that shows an instant: that of the interval around it. */
  sampleAt(time: number): number {
    return Math.min(upperBound(this.times, time - 1), this.times.length - 1);
  }

  /** The last sample of the trees that is not later than an instant, or the first. */
  treeSampleAt(time: number): number {
    return Math.max(0, upperBound(this.treeTimes, time) - 1);
  }

  /** Start of the time that the samples cover. */
  get start(): number {
    return 0;
  }

  /** Instants that one can go to: those of the samples, or of the trees where they are more. */
  get instants(): Float64Array {
    return this.treeTimes.length < this.times.length ? this.times : this.treeTimes;
  }

  /** Where the trees that are shown at an instant are older than its sample, or later: when they stood. */
  otherTrees(time: number): number | null {
    const stood = this.treeTimes[this.treeSampleAt(time)];
    const sampled = this.times[upperBound(this.times, time) - 1];
    return stood !== undefined && (stood < sampled || stood > time) ? stood : null;
  }

  /** The diagnosis at an instant. */
  diagnosisAt(time: number): Diagnosis | null {
    const text = this.reports[this.sampleAt(time)];
    if (text === undefined) return null;
    if (this.parsed?.text !== text) this.parsed = { text, diagnosis: JSON.parse(text) };
    return this.parsed!.diagnosis;
  }

  /** An amount of a tree, with its unit. */
  amount(value: number): string {
    return this.facts.diagnosis ? gbps(value) : bytes(value);
  }

  /** Ports whose cable is down at an instant, by row; known of live fabrics. */
  downRows(_time: number): ArrayLike<number> {
    return [];
  }

  /** Length of an interval in picoseconds. */
  interval(sample: number): number {
    return this.times[sample] - (sample > 0 ? this.times[sample - 1] : 0);
  }

  /** The trees at a sample. */
  forest(sample: number): Forest | null {
    if (!this.trees || !this.treePorts || !this.treeHosts) return null;
    if (this.cached?.sample === sample) return this.cached;
    const [ports, hosts] = [this.treePorts, this.treeHosts];
    this.cached = {
      sample,
      trees: this.treesAt(sample),
      rows: ports.take("ports_row", sample, Uint32Array),
      tree: ports.take("tree", sample, Uint32Array),
      depth: ports.take("depth", sample, Uint32Array),
      parent: ports.take("parent_row", sample, Uint32Array),
      queued: ports.take("queued_bytes", sample, Float64Array),
      hosts: hosts.take("host", sample, Uint32Array),
      hostTree: hosts.take("tree", sample, Uint32Array),
      contributing: hosts.take("contributing_bytes", sample, Float64Array),
      victim: hosts.take("victim_bytes", sample, Float64Array),
    };
    return this.cached;
  }

  /** The trees at a sample, without their members. */
  treesAt(sample: number): Tree[] {
    const { trees } = this;
    if (!trees) return [];
    const of = (name: string) => trees.values(name, sample);
    const [tree, root, depth, held] = [of("tree"), of("root_row"), of("depth"), of("ports")];
    const [sources, queued] = [of("sources"), of("queued_bytes")];
    const [contributors, victims] = [of("contributors"), of("victims")];
    return trees.texts("destination", sample).map((destination, at): Tree => ({
      tree: tree[at],
      rootRow: root[at],
      destination,
      depth: depth[at],
      ports: held[at],
      sources: sources[at],
      queued: queued[at],
      contributors: contributors[at],
      victims: victims[at],
    }));
  }

  /** Lineages of trees, those that held most Port VLs for longest first. */
  lineages(): number[] {
    if (!this.treePorts) return [];
    const held = new Map<number, number>();
    for (const tree of numbers(this.treePorts.table, "tree")) {
      const { lineage } = this.lifetimes[tree];
      held.set(lineage, (held.get(lineage) ?? 0) + 1);
    }
    return [...held].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([lineage]) => lineage);
  }

  /** Colour of a tree, that of its lineage; none for those that find no free one. */
  colourPlace(tree: number): number | undefined {
    this.places ??= colourPlaces(this.lineages(), this.lifetimes);
    return this.places.get(this.lifetimes[tree]?.lineage ?? -1);
  }

  /** Picoseconds that the totals of the ports cover. */
  get measured(): number {
    return this.facts.duration_ps - this.facts.warm_up_ps || this.facts.duration_ps;
  }

  /** Whether the map can show a measure of the ports: over time, or of the whole run. */
  has(measure: "utilisation" | "waiting" | "queue"): boolean {
    return measure !== "queue" || (this.series !== null && !this.facts.diagnosis);
  }

  /**
   * A measure of each port in an interval, as a share of what the colours and widths show; without
   * samples, that of the whole run.
   */
  shares(measure: "utilisation" | "waiting" | "queue", sample: number): Float32Array {
    const shares = new Float32Array(this.ports);
    const series = this.series;
    if (!series) {
      for (let row = 0; row < shares.length; row++) {
        const share =
          measure === "utilisation"
            ? (this.totals.xmit_bytes[row] * 8e3) / (this.measured * this.rate[row])
            : this.totals.xmit_wait_ps[row] / this.measured;
        shares[row] = Math.min(1, share);
      }
      return shares;
    }
    const samples = this.times.length;
    const interval = this.interval(sample);
    for (let row = 0; row < shares.length; row++) {
      const at = row * samples + sample;
      const share =
        measure === "utilisation"
          ? (series.xmit_bytes[at] * 8e3) / (interval * this.rate[row])
          : measure === "waiting"
            ? (series.xmit_wait_ns[at] * 1e3) / interval
            : series.queued_bytes[at] / this.largestQueue;
      // What a diagnosis does not know is not drawn.
      shares[row] = Number.isNaN(share) ? 0 : Math.min(1, share);
    }
    return shares;
  }

  /** The members of trees between a port and the root that blocks it, the port first. */
  chain(forest: Forest | null, row: number): number[] {
    const rows: number[] = [];
    for (let next = row; forest && !rows.includes(next);) {
      const place = forest.rows.indexOf(next);
      if (place < 0) break;
      rows.push(next);
      next = forest.parent[place];
    }
    return rows;
  }

  /** Whether it is known where packets go. */
  get hasRoutes(): boolean {
    return this.egress !== null;
  }

  /** The ports by which packets leave on their way from a port to a host, that port first. */
  path(start: number, destination: number): number[] {
    const rows = [start];
    while (this.egress && rows.length <= this.nodes.length) {
      const node = this.peerNode(rows[rows.length - 1]);
      if (node < this.hosts) break;
      const number = this.egress[(node - this.hosts) * this.hosts + destination];
      const next = this.portsOf(node).find((row) => this.number[row] === number);
      if (next === undefined) break;
      rows.push(next);
    }
    return rows;
  }

  /** Hosts whose packets leave a switch by a port. */
  destinationsOf(row: number): number[] {
    const first = (this.node[row] - this.hosts) * this.hosts;
    if (!this.egress || first < 0) return [];
    const hosts: number[] = [];
    for (let host = 0; host < this.hosts; host++)
      if (this.egress[first + host] === this.number[row]) hosts.push(host);
    return hosts;
  }

  /** The ways of a host's packets to the trees that it contributes to: to their receivers, or to their roots. */
  ways(forest: Forest | null, host: number): { rows: number[]; to: string }[] {
    const ways: { rows: number[]; to: string }[] = [];
    const [start] = this.portsOf(host);
    forest?.hosts.forEach((other, place) => {
      if (other !== host || forest.contributing[place] === 0) return;
      const tree = forest.hostTree[place];
      const { rootRow, destination } = this.lifetimes[tree];
      const receiver = this.findNode(destination);
      if (receiver !== undefined) {
        ways.push({ rows: this.path(start, receiver), to: `to ${destination}` });
        return;
      }
      for (const to of this.destinationsOf(rootRow)) {
        const rows = this.path(start, to);
        const root = rows.indexOf(rootRow);
        if (root < 0) continue;
        ways.push({ rows: rows.slice(0, root + 1), to: `root of tree ${tree}` });
        return;
      }
    });
    return ways;
  }

  /** Ports to highlight for a selection: what blocks it, and what it blocks. */
  held(forest: Forest | null, selection: Selection | null): number[] {
    if (!selection) return [];
    if (selection.kind === "tree") {
      return forest
        ? Array.from(forest.rows).filter((_, at) => forest.tree[at] === selection.tree)
        : [];
    }
    if (selection.kind === "flow") {
      const own = this.portsOf(selection.source);
      const paths = own.flatMap((row) => this.path(row, selection.destination));
      return [...new Set([...paths, ...own.flatMap((row) => this.chain(forest, row))])];
    }
    if (selection.kind === "node") {
      const own = this.isHost(selection.node) ? this.portsOf(selection.node) : [];
      const ways = this.isHost(selection.node) ? this.ways(forest, selection.node) : [];
      const paths = ways.flatMap((way) => way.rows);
      return [...new Set([...own, ...own.flatMap((row) => this.chain(forest, row)), ...paths])];
    }
    const to = this.destinationsOf(selection.row);
    const paths =
      to.length <= MOST_PATHS ? to.flatMap((host) => this.path(selection.row, host)) : [];
    return [...new Set([selection.row, ...this.chain(forest, selection.row), ...paths])];
  }

  /** The part of the time of some samples of the trees that each stands for: that since the one before. */
  treeWeights(first: number, last: number): Float64Array {
    const weights = new Float64Array(Math.max(0, last - first + 1));
    for (let at = 0; at < weights.length; at++) {
      const before = this.treeTimes[first + at - 1] ?? this.start;
      weights[at] = Math.max(0, this.treeTimes[first + at] - before);
    }
    const sum = weights.reduce((a, b) => a + b, 0);
    return sum > 0 ? weights.map((weight) => weight / sum) : weights.fill(1 / weights.length);
  }

  /** For each host the mean bytes that were towards roots, and behind trees, over some samples. */
  hostMeans(first: number, last: number): { contributing: Float64Array; victim: Float64Array } {
    const weights = this.treeWeights(first, last);
    const means = {
      contributing: new Float64Array(this.hosts),
      victim: new Float64Array(this.hosts),
    };
    if (!this.treeHosts) return means;
    const { table } = this.treeHosts;
    const samples = numbers(table, "sample");
    const hosts = numbers(table, "host");
    const contributing = numbers(table, "contributing_bytes");
    const victim = numbers(table, "victim_bytes");
    for (let row = 0; row < samples.length; row++) {
      if (samples[row] < first || samples[row] > last) continue;
      const weight = weights[samples[row] - first];
      means.contributing[hosts[row]] += weight * contributing[row];
      means.victim[hosts[row]] += weight * victim[row];
    }
    return means;
  }
}

/**
 * A table whose rows have the number of a sample, by sample. Columns are put into that order when they are
 * first used, so that the rows of each instant are next to each other.
 */
class SampledRows {
  private readonly order: Uint32Array;
  private readonly starts: Uint32Array;
  private readonly columns = new Map<string, Numbers>();

  constructor(
    readonly table: Table,
    samples: number,
  ) {
    ({ order: this.order, starts: this.starts } = countingOrder(numbers(table, "sample"), samples));
  }

  /** The values of a column at a sample, without a copy. */
  values(name: string, sample: number): Numbers {
    return this.column(name).subarray(this.starts[sample], this.starts[sample + 1]);
  }

  /** The texts of a column at a sample. */
  texts(name: string, sample: number): string[] {
    const rows = this.order.subarray(this.starts[sample], this.starts[sample + 1]);
    const column = this.table.getChild(name)!;
    return Array.from(rows, (row) => String(column.get(row)));
  }

  /** The values of a column at a sample as numbers of a kind. */
  take<T extends Uint32Array | Float64Array>(
    name: string,
    sample: number,
    kind: new (values: Numbers) => T,
  ): T {
    return new kind(this.values(name, sample));
  }

  private column(name: string): Numbers {
    let column = this.columns.get(name);
    if (!column) this.columns.set(name, (column = ordered(numbers(this.table, name), this.order)));
    return column;
  }
}

function ordered(values: Numbers, order: Uint32Array): Numbers {
  const made = values.slice();
  for (let at = 0; at < order.length; at++) made[at] = values[order[at]];
  return made;
}

/** The numbers of a column, without a copy: tables of the page have one batch. */
export function numbers(table: Table, name: string): Numbers {
  return table.getChild(name)!.toArray() as Numbers;
}

function floats(table: Table, name: string): Float64Array {
  return numbers(table, name) as Float64Array;
}

/** The largest value, at least 1. */
function largest(values: ArrayLike<number>): number {
  let most = 1;
  for (let index = 0; index < values.length; index++) most = Math.max(most, values[index]);
  return most;
}

function events(table: Table): Event[] {
  const [times, kinds, texts] = ["time_ps", "kind", "text"].map((name) => table.getChild(name)!);
  return Array.from({ length: table.numRows }, (_, row) => ({
    time: times.get(row) as number,
    kind: kinds.get(row) as string,
    text: texts.get(row) as string,
  }));
}

function lifetimes(table: Table): Lifetime[] {
  const of = (name: string) => table.getChild(name)!;
  const columns = [
    "root_row",
    "birth_ps",
    "death_ps",
    "died",
    "lineage",
    "peak_ports",
    "peak_queued_bytes",
    "peak_contributors",
    "peak_victims",
  ].map((name) => numbers(table, name));
  const destinations = of("destination");
  return Array.from({ length: table.numRows }, (_, row) => {
    const [root, birth, death, died, lineage, ports, queued, contributors, victims] = columns.map(
      (column) => column[row],
    );
    return {
      tree: row,
      rootRow: root,
      destination: destinations.get(row) as string,
      birth,
      death,
      died: died !== 0,
      lineage,
      peakPorts: ports,
      peakQueued: queued,
      peakContributors: contributors,
      peakVictims: victims,
    };
  });
}
