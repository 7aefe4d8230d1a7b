import type { Table } from "apache-arrow";
import { numbers } from "./tables";

export interface Tree {
  tree: number;
  rootRow: number;
  destination: string;
  depth: number;
  ports: number;
  sources: number;
  queued: number;
  contributors: number;
  victims: number;
}

/** The members of all trees at one sample, by row of the table of ports, and their hosts. */
export interface Forest {
  sample: number;
  trees: Tree[];
  /** Row, tree, depth, parent row and bytes of each Port VL in a tree. */
  rows: Uint32Array;
  tree: Uint32Array;
  depth: Uint32Array;
  parent: Uint32Array;
  queued: Float64Array;
  /** Host, tree, bytes towards the root and bytes that go elsewhere. */
  hosts: Uint32Array;
  hostTree: Uint32Array;
  contributing: Float64Array;
  victim: Float64Array;
}

export interface Lifetime {
  tree: number;
  rootRow: number;
  destination: string;
  birth: number;
  death: number;
  died: boolean;
  lineage: number;
  peakPorts: number;
  peakQueued: number;
  peakContributors: number;
  peakVictims: number;
}

export function readLifetimes(table: Table): Lifetime[] {
  const of = (name: string) => table.getChild(name)!;
  const columns = [
    "root_row",
    "birth_ps",
    "death_ps",
    "died",
    "lineage",
    "peak_ports",
    "peak_queued_bytes",
    "peak_contributors",
    "peak_victims",
  ].map((name) => numbers(table, name));
  const destinations = of("destination");
  return Array.from({ length: table.numRows }, (_, row) => {
    const [root, birth, death, died, lineage, ports, queued, contributors, victims] = columns.map(
      (column) => column[row],
    );
    return {
      tree: row,
      rootRow: root,
      destination: destinations.get(row) as string,
      birth,
      death,
      died: died !== 0,
      lineage,
      peakPorts: ports,
      peakQueued: queued,
      peakContributors: contributors,
      peakVictims: victims,
    };
  });
}
