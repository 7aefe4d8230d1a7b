import type { Run } from "./run";
import type { Selection } from "./selection";
import type { Forest } from "./trees";

/** Hosts up to which the paths from a port are highlighted. */
const MOST_PATHS = 64;

/** The members of trees between a port and the root that blocks it, the port first. */
export function chainFrom(forest: Forest | null, row: number): number[] {
  const rows: number[] = [];
  for (let next = row; forest && !rows.includes(next);) {
    const place = forest.rows.indexOf(next);
    if (place < 0) break;
    rows.push(next);
    next = forest.parent[place];
  }
  return rows;
}

/** What holds up packets that leave by some ports one after the other: the members of each tree that they wait in. */
export function chainsAlong(forest: Forest | null, way: readonly number[]): number[][] {
  const chains: number[][] = [];
  for (const row of way) {
    const chain = chainFrom(forest, row);
    if (chain.length && !chains.some((other) => other.includes(row))) chains.push(chain);
  }
  return chains;
}

/** The ports by which packets leave on their way from a port to a host, that port first. */
export function pathTo(run: Run, start: number, destination: number): number[] {
  const rows = [start];
  while (run.egress && rows.length <= run.nodes.length) {
    const node = run.peerNode(rows[rows.length - 1]);
    if (node < run.hosts) break;
    const number = run.egress[(node - run.hosts) * run.hosts + destination];
    const next = run.portsOf(node).find((row) => run.number[row] === number);
    if (next === undefined) break;
    rows.push(next);
  }
  return rows;
}

export function destinationsOf(run: Run, row: number): number[] {
  const first = (run.node[row] - run.hosts) * run.hosts;
  if (!run.egress || first < 0) return [];
  const hosts: number[] = [];
  for (let host = 0; host < run.hosts; host++)
    if (run.egress[first + host] === run.number[row]) hosts.push(host);
  return hosts;
}

/** Ports on the way, its end, and the tree that it contributes to. */
export interface Way {
  rows: number[];
  to: string;
  tree: number | null;
}

/** The ways of a host's packets to the trees that it contributes to: to their receivers, or to their roots. */
export function waysOf(run: Run, forest: Forest | null, host: number): Way[] {
  const ways: Way[] = [];
  const [start] = run.portsOf(host);
  forest?.hosts.forEach((other, place) => {
    if (other !== host || forest.contributing[place] === 0) return;
    const tree = forest.hostTree[place];
    const { rootRow, destination } = run.lifetimes[tree];
    const receiver = run.findNode(destination);
    if (receiver !== undefined) {
      ways.push({ rows: pathTo(run, start, receiver), to: destination, tree });
      return;
    }
    for (const to of destinationsOf(run, rootRow)) {
      const rows = pathTo(run, start, to);
      const root = rows.indexOf(rootRow);
      if (root < 0) continue;
      ways.push({ rows: rows.slice(0, root + 1), to: `root of tree ${tree}`, tree });
      return;
    }
  });
  return ways;
}

/** Ports that block a selection or that it blocks. */
export function heldRows(run: Run, forest: Forest | null, selection: Selection | null): number[] {
  if (!selection) return [];
  if (selection.kind === "tree") {
    return forest
      ? Array.from(forest.rows).filter((_, at) => forest.tree[at] === selection.tree)
      : [];
  }
  if (selection.kind === "flow") {
    const own = run.portsOf(selection.source);
    const paths = own.flatMap((row) => pathTo(run, row, selection.destination));
    return [...new Set([...paths, ...chainsAlong(forest, paths).flat()])];
  }
  if (selection.kind === "node") {
    const own = run.isHost(selection.node) ? run.portsOf(selection.node) : [];
    const ways = run.isHost(selection.node) ? waysOf(run, forest, selection.node) : [];
    const paths = ways.flatMap((way) => way.rows);
    return [...new Set([...own, ...own.flatMap((row) => chainFrom(forest, row)), ...paths])];
  }
  const to = destinationsOf(run, selection.row);
  const paths =
    to.length <= MOST_PATHS ? to.flatMap((host) => pathTo(run, selection.row, host)) : [];
  return [...new Set([selection.row, ...chainFrom(forest, selection.row), ...paths])];
}
