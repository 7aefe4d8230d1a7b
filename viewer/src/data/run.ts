import type { Table } from "apache-arrow";
import type { Event } from "./events";
import { readLimits, type FlowLimits } from "./limits";
import type { RunFacts } from "./page";
import type { Diagnosis } from "./diagnosis";
import { bytes, gbps } from "./units";
import { upperBound } from "./search";
import { floats, largest, numbers, SampledRows, type Numbers } from "./tables";
import { readLifetimes, type Forest, type Lifetime, type Tree } from "./trees";
import { colourPlaces } from "./colouring";

/** The peer of a port that is not connected. */
export const NO_ROW = 0xffffffff;

export interface Node {
  name: string;
  /** Null where the fabric has none. */
  lid: number | null;
  role: string | null;
  receives: boolean;
  delivered: number;
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
  egress: Numbers | null;
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
      this.lifetimes = readLifetimes(load("tree_lifetimes"));
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

  /** Picoseconds that the totals of the ports cover. */
  get measured(): number {
    return this.facts.duration_ps - this.facts.warm_up_ps || this.facts.duration_ps;
  }

  interval(sample: number): number {
    return this.times[sample] - (sample > 0 ? this.times[sample - 1] : 0);
  }

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
    for (const tree of this.treePorts.all("tree")) {
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
    for (let sample = first; sample <= last; sample++) {
      const of = (name: string) => this.treeHosts!.values(name, sample);
      const [hosts, contributing, victim] = [
        of("host"),
        of("contributing_bytes"),
        of("victim_bytes"),
      ];
      const weight = weights[sample - first];
      for (let row = 0; row < hosts.length; row++) {
        means.contributing[hosts[row]] += weight * contributing[row];
        means.victim[hosts[row]] += weight * victim[row];
      }
    }
    return means;
  }
}

function events(table: Table): Event[] {
  const [times, kinds, texts] = ["time_ps", "kind", "text"].map((name) => table.getChild(name)!);
  return Array.from({ length: table.numRows }, (_, row) => ({
    time: times.get(row) as number,
    kind: kinds.get(row) as string,
    text: texts.get(row) as string,
  }));
}
