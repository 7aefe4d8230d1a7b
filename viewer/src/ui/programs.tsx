import { useComputed, useSignal } from "@preact/signals";
import { partOf } from "../data/cut";
import { programsOf, ranksOf, receivedBy } from "../data/programs";
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

export function Programs() {
  const chosen = useSignal(0);
  const programs = useComputed(() => programsOf(state.run.value));
  const lines = useComputed<Line[]>(() => {
    const run = state.run.value;
    const x = run.times.map((ps) => ps / clock.ps);
    return programs.value.slice(0, MOST_LINES).flatMap((program) => {
      const y = receivedBy(
        run,
        ranksOf(run, program.program).map((rank) => rank.host),
      );
      return y ? [{ label: program.name, x, y }] : [];
    });
  });
  if (!programs.value.length) return null;
  const run = state.run.value;
  const program = programs.value[chosen.value] ?? programs.value[0];
  const part = partOf(run, "ranks", run.extras.get("ranks")?.numRows ?? 0);
  const ofRanks = part === null ? "" : `, of ${part} ranks`;
  const length = (program.end ?? run.facts.duration_ps) - program.start;
  return (
    <section class="wide">
      <h2>Programs</h2>
      <DataTable
        title="Programs"
        columns={[
          { name: "program", isName: true },
          { name: "ranks" },
          { name: "start, ms", show: asDigits },
          { name: "end, ms", show: asDigits },
          { name: "slowdown", show: (value) => (value === null ? "" : digits(Number(value), 3)) },
        ]}
        rows={programs.value.map((one, index) => ({
          id: String(one.program),
          cells: [one.name, one.ranks, inMs(one.start), inMs(one.end), one.slowdown],
          isSelected: one === program,
          onSelect: () => {
            chosen.value = index;
            state.marked.value = [one.start, one.end ?? run.facts.duration_ps];
          },
        }))}
      />
      {timed(
        lines.value,
        `Receive rate of a program's hosts, mean, with headers${ofRanks}`,
        "Gbit/s",
      )}
      <DataTable
        key={program.program}
        title={`Ranks of ${program.name}${ofRanks}`}
        columns={[
          { name: "rank", unit: part === null ? undefined : `of ${part}` },
          { name: "host", isName: true },
          { name: "end, ms", show: asDigits },
          { name: "computes", unit: "share", show: asPercent },
          { name: "waits", unit: "share", show: asPercent },
          { name: "sent", unit: "bytes", show: asBytes },
        ]}
        rows={ranksOf(run, program.program).map((rank) => ({
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
