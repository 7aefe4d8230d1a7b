import type { Run } from "./run";

/** First sample after the start of a window, and last one not after its end. */
export function samplesWithin(
  times: ArrayLike<number>,
  [from, to]: [number, number],
): [number, number] {
  let [first, last] = [times.length, -1];
  for (let sample = 0; sample < times.length; sample++) {
    if (times[sample] > from && sample < first) first = sample;
    if (times[sample] <= to) last = sample;
  }
  return [first, last];
}

/** Bytes in intervals as rates in Gbit/s. */
export function rates(run: Run, bytes: ArrayLike<number>, offset: number): number[] {
  return Array.from(
    run.times,
    (_, sample) => (bytes[offset + sample] * 8e3) / run.interval(sample),
  );
}

export interface PortSum {
  row: number;
  /** Means over the intervals in which they are known; null if there is none. */
  utilisation: number | null;
  waiting: number | null;
  marked: number;
  largestQueue: number | null;
}

/** The mean over time of a counter that is not known, not a number, in some intervals. */
class Mean {
  private sum = 0;
  private length = 0;

  add(value: number, length: number): void {
    if (Number.isNaN(value)) return;
    this.sum += value;
    this.length += length;
  }

  of(factor: number): number | null {
    return this.length > 0 ? (this.sum * factor) / this.length : null;
  }
}

/** Sums of all ports over a window, none without a sample in it; if there are no samples at all, of the whole run. */
export function portSums(run: Run, span: [number, number]): PortSum[] {
  const { series } = run;
  if (!series) {
    const length = run.measured;
    return Array.from({ length: run.ports }, (_, row) => ({
      row,
      utilisation: (run.totals.xmit_bytes[row] * 8e3) / length / run.rate[row],
      waiting: run.totals.xmit_wait_ps[row] / length,
      marked: run.totals.fecn_marked[row],
      largestQueue: null,
    }));
  }
  const [first, last] = samplesWithin(run.times, span);
  if (last < first) return [];
  return Array.from({ length: run.ports }, (_, row) => {
    let [marked, queue] = [0, 0];
    const [bytes, wait] = [new Mean(), new Mean()];
    for (let sample = first; sample <= last; sample++) {
      const at = row * run.times.length + sample;
      const length = run.interval(sample);
      bytes.add(series.xmit_bytes[at], length);
      wait.add(series.xmit_wait_ns[at], length);
      marked += series.fecn_marked[at];
      queue = Math.max(queue, series.queued_bytes[at]);
    }
    return {
      row,
      utilisation: bytes.of(8e3 / run.rate[row]),
      waiting: wait.of(1e3),
      marked,
      largestQueue: queue,
    };
  });
}

/** Share of packets with at most so much latency, of one host or of all; latencies by host can be coarser. */
export function latencyCdf(run: Run, host: number | null): { x: number[]; y: number[] } | null {
  const ofAll = host === null && latencyCdfWithin(run, [run.facts.warm_up_ps, Infinity]);
  if (ofAll) return ofAll;
  if (!run.latencies) return null;
  const { host: hosts, from, to, packets } = run.latencies;
  const bins: Bins = new Map();
  for (let row = 0; row < hosts.length; row++)
    if (host === null || hosts[row] === host) add(bins, from[row], to[row], packets[row]);
  return cumulated(bins);
}

/** The same of the packets that arrived at all hosts within a window. */
export function latencyCdfWithin(
  run: Run,
  window: [number, number],
): { x: number[]; y: number[] } | null {
  if (!run.latencySeries) return null;
  const [first, last] = samplesWithin(run.times, window);
  const { sample, from, packets } = run.latencySeries;
  const bins: Bins = new Map();
  // Latencies of the warm-up can be larger.
  const most = (window[0] >= run.facts.warm_up_ps && run.facts.latency_max_ns) || Infinity;
  for (let row = 0; row < sample.length; row++) {
    if (sample[row] < first || sample[row] > last) continue;
    const to = largestLatency(from[row]);
    // Intervals hold whole nanoseconds; in that of the largest latency no packet took longer.
    add(bins, from[row], to + 1 > most ? most : to, packets[row]);
  }
  return cumulated(bins);
}

type Bins = Map<number, { to: number; packets: number }>;

/** Bits below the leading one that a histogram of latencies distinguishes. */
const MANTISSA = 7;

/** The largest latency, in nanoseconds, that a histogram counts with this smallest one. */
function largestLatency(from: number): number {
  const exponent = Math.max(0, Math.floor(Math.log2(Math.max(1, from))) - MANTISSA);
  return from + 2 ** exponent - 1;
}

function add(bins: Bins, from: number, to: number, packets: number): void {
  const bin = bins.get(from);
  if (bin) {
    bin.packets += packets;
    bin.to = Math.max(bin.to, to);
  } else bins.set(from, { to, packets });
}

function cumulated(bins: Bins): { x: number[]; y: number[] } | null {
  let total = 0;
  for (const bin of bins.values()) total += bin.packets;
  if (!total) return null;
  const sorted = [...bins].sort((a, b) => a[0] - b[0]);
  let sum = 0;
  const x = sorted.map(([, bin]) => bin.to / 1e3);
  const y = sorted.map(([, bin]) => (100 * (sum += bin.packets)) / total);
  // No packet takes less than the smallest latency; the axis is logarithmic.
  const none = (sorted[0][0] - 1) / 1e3;
  return none > 0 ? { x: [none, ...x], y: [0, ...y] } : { x, y };
}
