import type { Run } from "./run";

export type Measure = "utilisation" | "waiting" | "queue";

export function hasMeasure(run: Run, measure: Measure): boolean {
  return measure !== "queue" || (run.series !== null && !run.facts.diagnosis);
}

/** A measure of each port in an interval; without samples, that of the whole run. */
export function sharesOf(run: Run, measure: Measure, sample: number): Float32Array {
  const shares = new Float32Array(run.ports);
  const { series } = run;
  if (!series) {
    const covered = run.measured;
    for (let row = 0; row < shares.length; row++) {
      const share =
        measure === "utilisation"
          ? (run.totals.xmit_bytes[row] * 8e3) / (covered * run.rate[row])
          : run.totals.xmit_wait_ps[row] / covered;
      shares[row] = Math.min(1, share);
    }
    return shares;
  }
  const samples = run.times.length;
  const interval = run.interval(sample);
  for (let row = 0; row < shares.length; row++) {
    const at = row * samples + sample;
    const share =
      measure === "utilisation"
        ? (series.xmit_bytes[at] * 8e3) / (interval * run.rate[row])
        : measure === "waiting"
          ? (series.xmit_wait_ns[at] * 1e3) / interval
          : series.queued_bytes[at] / run.largestQueue;
    // Unknown values are not drawn.
    shares[row] = Number.isNaN(share) ? 0 : Math.min(1, share);
  }
  return shares;
}
