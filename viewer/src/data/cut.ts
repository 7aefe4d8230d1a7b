// Which part of a table of the run the page has, if it has not all of it.

import type { Run } from "./run";
import { count } from "./units";

/** Which rows are kept, if that is not the first ones. */
const KEPT: Record<string, string> = { flows: "slowest", limited_flows: "most limited" };

/** The rows of a table that are in the page, as a part of all that the run has; null if these are all. */
export function partOf({ facts }: Run, table: string, rows: number): string | null {
  const all = facts.cut?.[table];
  if (all === undefined) return null;
  const kept = KEPT[table];
  return kept === undefined
    ? `the first ${count(rows)} of ${count(all)}`
    : `the ${count(rows)} ${kept} of ${count(all)}`;
}
