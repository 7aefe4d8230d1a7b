import type { Run } from "./run";
import { count } from "./units";

/** Kept rows, if not the first ones. */
const KEPT: Record<string, string> = { flows: "slowest", limited_flows: "most limited" };

/** The page's rows as a part of the run's; null if these are all. */
export function partOf({ facts }: Run, table: string, rows: number): string | null {
  const all = facts.cut?.[table];
  if (all === undefined) return null;
  const kept = KEPT[table];
  return kept === undefined
    ? `the first ${count(rows)} of ${count(all)}`
    : `the ${count(rows)} ${kept} of ${count(all)}`;
}
