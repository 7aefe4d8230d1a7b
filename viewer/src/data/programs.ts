import type { Table } from "apache-arrow";
import type { Run } from "./run";

export interface Program {
  program: number;
  name: string;
  ranks: number;
  start: number;
  /** Null if it has not ended. */
  end: number | null;
  slowdown: number | null;
}

export interface Rank {
  rank: number;
  host: number;
  end: number | null;
  sentBytes: number;
  compute: number;
  waiting: number;
}

export function programsOf(run: Run): Program[] {
  const table = run.extras.get("programs");
  if (!table) return [];
  const of = reader(table);
  return Array.from({ length: table.numRows }, (_, row) => ({
    program: Number(of("program", row)),
    name: String(of("name", row)),
    ranks: Number(of("ranks", row)),
    start: Number(of("start_ps", row)),
    end: maybe(of("end_ps", row)),
    slowdown: maybe(of("slowdown", row)),
  }));
}

export function ranksOf(run: Run, program: number): Rank[] {
  const table = run.extras.get("ranks");
  if (!table) return [];
  const of = reader(table);
  const rows: Rank[] = [];
  for (let row = 0; row < table.numRows; row++) {
    if (Number(of("program", row)) !== program) continue;
    rows.push({
      rank: Number(of("rank", row)),
      host: Number(of("host", row)),
      end: maybe(of("end_ps", row)),
      sentBytes: Number(of("sent_bytes", row)),
      compute: Number(of("compute_ps", row)),
      waiting: Number(of("waiting_ps", row)),
    });
  }
  return rows;
}

/** Mean rate in Gbit/s that the last links to some hosts carry in each interval. */
export function receivedBy(run: Run, hosts: Iterable<number>): number[] | null {
  if (!run.series) return null;
  const samples = run.times.length;
  const sums = new Array<number>(samples).fill(0);
  let count = 0;
  for (const host of new Set(hosts)) {
    count++;
    for (const row of run.portsOf(host)) {
      const last = run.peer[row];
      if (last >= run.ports) continue;
      for (let at = 0; at < samples; at++) sums[at] += run.series.xmit_bytes[last * samples + at];
    }
  }
  return sums.map((bytes, at) => (bytes * 8e3) / run.interval(at) / Math.max(1, count));
}

function reader(table: Table): (name: string, row: number) => unknown {
  return (name, row) => table.getChild(name)!.get(row);
}

function maybe(value: unknown): number | null {
  return value === null ? null : Number(value);
}
