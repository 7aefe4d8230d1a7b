import type { Table } from "apache-arrow";
import type { Numbers } from "./tables";
import { samplesWithin } from "./series";

/** The destination of a limit that is of all flows of a service level. */
export const ANY_HOST = 0xffffffff;

export interface LimitedFlow {
  source: number;
  destination: number;
  sl: number;
  /** Samples at which it is limited, ascending, and its limits there. */
  samples: ArrayLike<number>;
  values: ArrayLike<number>;
}

export interface FlowLimits {
  /** What the values are; without a limit an index is 0, and a rate 100. */
  readonly kind: "CCTI" | "% of link";
  readonly flows: readonly LimitedFlow[];
}

export function unlimited(kind: FlowLimits["kind"]): number {
  return kind === "CCTI" ? 0 : 100;
}

/** Limits as a page holds them: the table of the flows, and that of their limits, flow by flow. */
export function readLimits(
  flows: Table,
  limits: Table,
  numbers: (table: Table, name: string) => Numbers,
): FlowLimits {
  const [source, destination, sl, rows] = ["source", "destination", "sl", "rows"].map((name) =>
    numbers(flows, name),
  );
  const kind = limits.getChild("ccti") ? "CCTI" : "% of link";
  const samples = numbers(limits, "sample");
  const values = numbers(limits, kind === "CCTI" ? "ccti" : "rate_percent");
  let first = 0;
  return {
    kind,
    flows: Array.from(source, (host, index) => {
      const [from, to] = [first, first + rows[index]];
      first = to;
      return {
        source: host,
        destination: destination[index],
        sl: sl[index],
        samples: samples.subarray(from, to),
        values: values.subarray(from, to),
      };
    }),
  };
}

export function courseOf(limits: FlowLimits, flow: LimitedFlow, samples: number): number[] {
  const course = new Array<number>(samples).fill(unlimited(limits.kind));
  for (let at = 0; at < flow.samples.length; at++) course[flow.samples[at]] = flow.values[at];
  return course;
}

export interface RankedFlow {
  flow: LimitedFlow;
  mean: number;
  strictest: number;
}

/** Flows that some limit holds in a window, the strictest first. */
export function strictest(
  limits: FlowLimits,
  times: ArrayLike<number>,
  span: [number, number],
  wanted: (flow: LimitedFlow) => boolean,
): RankedFlow[] {
  const [first, last] = samplesWithin(times, span);
  const free = unlimited(limits.kind);
  const ranked: RankedFlow[] = [];
  for (const flow of limits.flows) {
    if (!wanted(flow)) continue;
    let [sum, most] = [0, free];
    for (let at = 0; at < flow.samples.length; at++) {
      if (flow.samples[at] < first || flow.samples[at] > last) continue;
      sum += flow.values[at] - free;
      if (Math.abs(flow.values[at] - free) > Math.abs(most - free)) most = flow.values[at];
    }
    if (most !== free)
      ranked.push({ flow, mean: free + sum / (last - first + 1), strictest: most });
  }
  return ranked.sort((a, b) => Math.abs(b.mean - free) - Math.abs(a.mean - free));
}
