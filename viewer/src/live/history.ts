// The last samples of a live fabric, as a run of that length.

import type { Event } from "../data/events";
import type { PortSeries } from "../data/run";
import type { Forest } from "../data/trees";
import { upperBound } from "../data/search";
import type { FlowLimits, LimitedFlow } from "../data/limits";
import type { Message } from "./message";
import { LiveTrees, type Names } from "./trees";

/** Samples that are kept: half a minute at ten a second. */
const MOST_SAMPLES = 300;
/** Values of each counter; larger fabrics keep fewer samples. */
const MOST_CELLS = 4_000_000;
const MOST_EVENTS = 500;
const COLUMNS = ["xmit_bytes", "xmit_wait_ns", "xmit_cong_ns", "fecn_marked", "queued_bytes"];

export class History {
  readonly capacity: number;
  times = new Float64Array();
  /** Length of each interval in picoseconds. */
  lengths = new Float64Array();
  series: PortSeries;
  /** Instants of the trees: samples in between have those of the one before. */
  treeTimes = new Float64Array();
  forests: Forest[] = [];
  treeCount = new Float64Array();
  treeBytes = new Float64Array();
  classes: string[] = [];
  events: Event[] = [];
  largestQueue = 1;
  readonly trees: LiveTrees;
  private byClass: Float64Array[] = [];
  private spare: Record<string, Float32Array> = {};
  private whole: Record<string, Float32Array> = {};
  reports: string[] = [];
  /** Rows of the ports whose link is down, at each sample. */
  down: ArrayLike<number>[] = [];
  /** Limits of each sample: source, destination, SL and CCTI of each flow. */
  private limited: Message["columns"][] = [];
  private known: FlowLimits | null = null;

  constructor(
    readonly ports: number,
    readonly hosts: number,
    private readonly names: Names,
  ) {
    this.capacity = Math.max(20, Math.min(MOST_SAMPLES, Math.floor(MOST_CELLS / ports)));
    this.trees = new LiveTrees(names);
    for (const name of COLUMNS) {
      this.whole[name] = new Float32Array(ports * this.capacity);
      this.spare[name] = new Float32Array(ports * this.capacity);
    }
    this.series = this.view(0);
  }

  get samples(): number {
    return this.times.length;
  }

  get lifetimes() {
    return this.trees.lifetimes;
  }

  /** Bytes delivered in each interval, class by class. */
  get classSeries(): Float64Array {
    const values = new Float64Array(this.byClass.length * this.samples);
    this.byClass.forEach((series, index) => values.set(series, index * this.samples));
    return values;
  }

  /** Bytes delivered in each interval to a host, on average. */
  get groupSeries(): Float64Array {
    const values = new Float64Array(this.samples);
    for (const series of this.byClass)
      series.forEach((bytes, sample) => (values[sample] += bytes / this.hosts));
    return values;
  }

  /** CCTI of flows, put together when they are asked for. */
  get limits(): FlowLimits {
    return (this.known ??= joined(this.limited));
  }

  add(message: Message): void {
    const { time_ps: time, columns } = message;
    const dropped = this.samples === this.capacity ? 1 : 0;
    const append = (values: Float64Array, value: number) =>
      Float64Array.of(...values.subarray(dropped), value);
    this.addPorts(columns, dropped);
    this.addClasses(message, dropped);
    this.times = append(this.times, time);
    this.lengths = append(this.lengths, time - message.from_ps);
    if (columns.root_row) this.addTrees(message.trees_ps ?? time, columns);
    this.addEvents(
      new Set(columns.down_rows),
      new Set(Array.from(this.down.at(-1) ?? [])),
      message,
    );
    this.down = [...this.down.slice(dropped), columns.down_rows];
    this.limited = [...this.limited.slice(dropped), columns];
    this.known = null;
    if (message.report !== undefined)
      this.reports = [...this.reports.slice(dropped), message.report];
    if (dropped) this.trees.forget(this.treeTimes[0] ?? 0);
    this.series = this.view(this.samples);
  }

  private addTrees(time: number, columns: Message["columns"]): void {
    // The first sample that is kept may have the trees of one that is not.
    const dropped = Math.max(0, upperBound(this.treeTimes, this.times[0]) - 1);
    const append = (values: Float64Array, value: number) =>
      Float64Array.of(...values.subarray(dropped), value);
    const forest = this.trees.add(time, columns);
    this.treeTimes = append(this.treeTimes, time);
    this.forests = [...this.forests.slice(dropped), forest];
    this.forests.forEach((one, sample) => (one.sample = sample));
    this.treeCount = append(this.treeCount, forest.trees.length);
    const bytes = forest.trees.reduce((sum, tree) => sum + tree.queued, 0);
    this.treeBytes = append(this.treeBytes, bytes);
  }

  private addPorts(columns: Message["columns"], dropped: number): void {
    const [before, after] = [this.samples, this.samples + 1 - dropped];
    for (const name of COLUMNS) {
      const [old, made] = [this.whole[name], this.spare[name]];
      for (let row = 0; row < this.ports; row++) {
        made.set(old.subarray(row * before + dropped, (row + 1) * before), row * after);
        made[(row + 1) * after - 1] = 0;
      }
      const values = columns[name];
      columns.rows.forEach((row: number, at: number) => {
        made[(row + 1) * after - 1] = values[at];
      });
      [this.whole[name], this.spare[name]] = [made, old];
    }
    for (const bytes of columns.queued_bytes)
      this.largestQueue = Math.max(this.largestQueue, bytes);
  }

  private addClasses({ classes, columns }: Message, dropped: number): void {
    this.classes = classes;
    this.byClass = classes.map((_, index) => {
      const before = this.byClass[index] ?? new Float64Array(this.samples);
      return Float64Array.of(...before.subarray(dropped), columns.class_bytes[index]);
    });
  }

  private addEvents(down: Set<number>, before: Set<number>, message: Message): void {
    // What is down in the first sample may have been so for long.
    const since = this.down.length ? "" : ", since before the first sample of this page";
    const changes = [
      ...[...down]
        .filter((row) => !before.has(row))
        .map((row) => `${this.names.port(row)} down${since}`),
      ...[...before].filter((row) => !down.has(row)).map((row) => `${this.names.port(row)} up`),
    ];
    const time = message.time_ps;
    const from = this.times[0];
    this.events = [
      ...this.events.filter((event) => event.time >= from),
      ...changes.map((text) => ({ time, kind: "link", text: `link ${text}` })),
      ...message.dcms.map((text) => ({ time, kind: "DCMS", text: `DCMS: ${text}` })),
    ].slice(-MOST_EVENTS);
  }

  private view(samples: number): PortSeries {
    const cells = this.ports * samples;
    const entries = COLUMNS.map((name) => [name, this.whole[name].subarray(0, cells)]);
    return Object.fromEntries(entries) as PortSeries;
  }
}

function joined(samples: readonly Message["columns"][]): FlowLimits {
  const flows = new Map<string, LimitedFlow & { samples: number[]; values: number[] }>();
  samples.forEach((columns, sample) => {
    columns.limit_ccti.forEach((ccti: number, at: number) => {
      const [source, destination, sl] = [
        columns.limit_source[at],
        columns.limit_destination[at],
        columns.limit_sl[at],
      ];
      const key = `${source},${destination},${sl}`;
      let flow = flows.get(key);
      if (!flow) flows.set(key, (flow = { source, destination, sl, samples: [], values: [] }));
      flow.samples.push(sample);
      flow.values.push(ccti);
    });
  });
  return { kind: "CCTI", flows: [...flows.values()] };
}
