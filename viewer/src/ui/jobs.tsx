// The panel of jobs: when they run, what their hosts receive, and the ranks of one of them.

import { useComputed, useSignal } from "@preact/signals";
import { partOf } from "../data/cut";
import { jobsOf, ranksOf, receivedBy } from "../data/jobs";
import { bytes, clock, digits, percent } from "../data/units";
import * as state from "../state";
import { timed } from "./panels";
import type { Line } from "./chart";
import type { Cell } from "./download";
import { DataTable } from "./table";

const MOST_LINES = 6;

const inMs = (ps: number | null) => (ps === null ? null : ps / 1e9);
const asDigits = (value: Cell) => (value === null ? "not ended" : digits(Number(value)));
const asPercent = (value: Cell) => percent(Number(value));
const asBytes = (value: Cell) => bytes(Number(value));

export function Jobs() {
  const chosen = useSignal(0);
  const jobs = useComputed(() => jobsOf(state.run.value));
  const lines = useComputed<Line[]>(() => {
    const run = state.run.value;
    const x = run.times.map((ps) => ps / clock.ps);
    return jobs.value.slice(0, MOST_LINES).flatMap((job) => {
      const y = receivedBy(
        run,
        ranksOf(run, job.job).map((rank) => rank.host),
      );
      return y ? [{ label: job.name, x, y }] : [];
    });
  });
  if (!jobs.value.length) return null;
  const run = state.run.value;
  const job = jobs.value[chosen.value] ?? jobs.value[0];
  const part = partOf(run, "ranks", run.extras.get("ranks")?.numRows ?? 0);
  const ofRanks = part === null ? "" : `, of ${part} ranks`;
  const length = (job.end ?? run.facts.duration_ps) - job.start;
  return (
    <section class="wide">
      <h2>Jobs</h2>
      <DataTable
        title="Jobs"
        columns={[
          { name: "job", isName: true },
          { name: "ranks" },
          { name: "start, ms", show: asDigits },
          { name: "end, ms", show: asDigits },
          { name: "slowdown", show: (value) => (value === null ? "" : digits(Number(value), 3)) },
        ]}
        rows={jobs.value.map((one, index) => ({
          id: String(one.job),
          cells: [one.name, one.ranks, inMs(one.start), inMs(one.end), one.slowdown],
          isSelected: one === job,
          onSelect: () => {
            chosen.value = index;
            state.marked.value = [one.start, one.end ?? run.facts.duration_ps];
          },
        }))}
      />
      {timed(lines.value, `Receive rate of a job's hosts, mean, with headers${ofRanks}`, "Gbit/s")}
      <DataTable
        key={job.job}
        title={`Ranks of ${job.name}${ofRanks}`}
        columns={[
          { name: "rank", unit: part === null ? undefined : `of ${part}` },
          { name: "host", isName: true },
          { name: "end, ms", show: asDigits },
          { name: "computes", unit: "share", show: asPercent },
          { name: "waits", unit: "share", show: asPercent },
          { name: "sent", unit: "bytes", show: asBytes },
        ]}
        rows={ranksOf(run, job.job).map((rank) => ({
          id: String(rank.rank),
          cells: [
            String(rank.rank),
            run.nodes[rank.host].name,
            inMs(rank.end),
            rank.compute / length,
            rank.waiting / length,
            rank.sentBytes,
          ],
          isSelected:
            state.selection.value?.kind === "node" && state.selection.value.node === rank.host,
          onSelect: () => (state.selection.value = { kind: "node", node: rank.host }),
        }))}
      />
    </section>
  );
}
