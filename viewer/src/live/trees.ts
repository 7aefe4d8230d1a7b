// Congestion trees of a live fabric: which tree of a sample is which of the sample before.

import type { Forest, Lifetime, Tree } from "../data/trees";
import type { Message } from "./message";

const NO_HOST = 0xffffffff;
/** Colours of trees; one more tree than that has the colour of all others. */
const PLACES = 8;

export interface Names {
  host(host: number): string;
  /** Name of a port by its row. */
  port(row: number): string;
  isHostPort(row: number): boolean;
}

/** Trees over time. One is known by the Port VL of its root, as in the results of a run. */
export class LiveTrees {
  readonly lifetimes: Lifetime[] = [];
  private standing = new Map<string, number>();
  private readonly places = new Map<number, number>();

  constructor(private readonly names: Names) {}

  /** Colour of a tree: it keeps the first one that was free at its birth. */
  placeOf(tree: number): number | undefined {
    return this.places.get(tree);
  }

  add(time: number, columns: Message["columns"]): Forest {
    const before = this.standing;
    this.standing = new Map();
    const ids = Array.from(columns.root_row, (root, at) => {
      const key = `${root}:${columns.root_vl[at]}`;
      const tree = before.get(key) ?? this.born(root, columns.destination[at], time);
      before.delete(key);
      this.standing.set(key, tree);
      return tree;
    });
    for (const tree of before.values()) {
      this.lifetimes[tree].death = time;
      this.lifetimes[tree].died = true;
      this.places.delete(tree);
    }
    for (const tree of ids) if (!this.places.has(tree)) this.takePlace(tree);
    const forest = this.forestOf(columns, ids);
    for (const tree of forest.trees) grow(this.lifetimes[tree.tree], tree, time);
    return forest;
  }

  forget(before: number): void {
    this.lifetimes.forEach((life, tree) => {
      if (life.died && life.death < before) delete this.lifetimes[tree];
    });
  }

  /** The forest of a message, whose trees have these numbers. */
  private forestOf(columns: Message["columns"], ids: number[]): Forest {
    const trees = ids.map((tree, at): Tree => ({
      tree,
      rootRow: columns.root_row[at],
      destination: this.nameOf(columns.destination[at]),
      depth: 0,
      ports: 0,
      sources: 0,
      queued: 0,
      contributors: columns.contributors[at],
      victims: columns.victims[at],
    }));
    for (let at = 0; at < columns.port_tree.length; at++) {
      const tree = trees[columns.port_tree[at]];
      tree.depth = Math.max(tree.depth, columns.port_depth[at]);
      tree.queued += columns.port_queued[at];
      if (this.names.isHostPort(columns.port_row[at])) tree.sources++;
      else tree.ports++;
    }
    const whole = (name: string) => columns[name] as Uint32Array;
    return {
      sample: 0,
      trees,
      rows: whole("port_row"),
      tree: whole("port_tree").map((place) => ids[place]),
      depth: whole("port_depth"),
      parent: whole("port_parent"),
      queued: columns.port_queued as Float64Array,
      hosts: whole("host"),
      hostTree: whole("host_tree").map((place) => ids[place]),
      contributing: columns.contributing as Float64Array,
      victim: columns.victim as Float64Array,
    };
  }

  private nameOf(host: number): string {
    return host === NO_HOST ? "" : this.names.host(host);
  }

  private born(rootRow: number, destination: number, time: number): number {
    const tree = this.lifetimes.length;
    this.lifetimes.push({
      tree,
      rootRow,
      destination: this.nameOf(destination),
      birth: time,
      death: time,
      died: false,
      lineage: tree,
      peakPorts: 0,
      peakQueued: 0,
      peakContributors: 0,
      peakVictims: 0,
    });
    return tree;
  }

  private takePlace(tree: number): void {
    const taken = new Set(this.places.values());
    for (let place = 0; place < PLACES; place++) {
      if (taken.has(place)) continue;
      this.places.set(tree, place);
      return;
    }
  }
}

function grow(life: Lifetime, tree: Tree, time: number): void {
  life.death = time;
  life.peakPorts = Math.max(life.peakPorts, tree.ports);
  life.peakQueued = Math.max(life.peakQueued, tree.queued);
  life.peakContributors = Math.max(life.peakContributors, tree.contributors);
  life.peakVictims = Math.max(life.peakVictims, tree.victims);
}
