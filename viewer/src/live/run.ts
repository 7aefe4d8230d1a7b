// A live fabric as a run whose samples are the last ones.

import { Run } from "../data/run";
import type { Forest, Tree } from "../data/trees";
import type { RunFacts } from "../data/page";
import type { Table } from "apache-arrow";
import { History } from "./history";
import type { Message } from "./message";

const CHANGING = [
  "times",
  "treeTimes",
  "series",
  "classes",
  "classSeries",
  "groupSeries",
  "treeCount",
  "treeBytes",
  "lifetimes",
  "events",
  "largestQueue",
  "limits",
  "reports",
] as const;

export class LiveRun extends Run {
  private readonly history: History;

  constructor(facts: RunFacts, load: (name: string) => Table) {
    super(facts, load);
    this.history = new History(this.ports, this.hosts, {
      host: (host) => this.nodes[host].name,
      port: (row) => this.portName(row),
      isHostPort: (row) => this.isHost(this.node[row]),
    });
    for (const name of CHANGING)
      Object.defineProperty(this, name, { get: () => this.history[name] });
  }

  /** Whether a message is of the subnet and the routes that the page has, or brings the new ones. */
  follows(message: Message): boolean {
    const { version, columns } = message;
    if (columns.routes) {
      this.facts.live_version = version;
      this.egress = columns.routes;
    }
    return version === this.facts.live_version;
  }

  /** Take a sample, and return this run as one that signals take for another. */
  with(messages: readonly Message[]): Run {
    for (const message of messages) {
      this.history.add(message);
      if (message.has_marked) this.facts.live_is_off = false;
    }
    this.facts.duration_ps = this.times[this.times.length - 1];
    return Object.create(this) as Run;
  }

  override get start(): number {
    return this.times.length ? this.times[0] - this.history.lengths[0] : 0;
  }

  override interval(sample: number): number {
    return this.history.lengths[sample];
  }

  override downRows(time: number): ArrayLike<number> {
    return this.times.length ? this.history.down[this.sampleAt(time)] : [];
  }

  override forest(sample: number): Forest | null {
    return this.history.forests[sample] ?? null;
  }

  override treesAt(sample: number): Tree[] {
    return this.history.forests[sample]?.trees ?? [];
  }

  override colourPlace(tree: number): number | undefined {
    return this.history.trees.placeOf(tree);
  }

  override hostMeans(first: number, last: number) {
    const weights = this.treeWeights(first, last);
    const means = {
      contributing: new Float64Array(this.hosts),
      victim: new Float64Array(this.hosts),
    };
    weights.forEach((weight, sample) => {
      const forest = this.history.forests[first + sample];
      forest.hosts.forEach((host, at) => {
        means.contributing[host] += weight * forest.contributing[at];
        means.victim[host] += weight * forest.victim[at];
      });
    });
    return means;
  }
}
