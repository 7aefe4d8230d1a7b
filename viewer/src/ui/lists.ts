import type { Run } from "../data/run";
import { chainsAlong, pathTo, waysOf } from "../data/paths";
import type { Selection } from "../data/selection";
import type { Forest } from "../data/trees";
import type { Cell } from "./download";
import { roleOf, unitOf } from "./facts";

export interface Item {
  text: string;
  /** What a click on the text selects. */
  selection: Selection;
  /** What is said behind it. */
  said: string;
  /** The same as rows of a table: what it is, its value and unit. */
  plain: [name: string, value: Cell, unit: string][];
}

export interface List {
  title: string;
  /** What it is of, if lists of one title are several. */
  heading: string;
  kind: "chain" | "way" | "members";
  /** The rows of a table count its items by this name. */
  name: string;
  length: number;
  item: (at: number) => Item;
  /** Where it leads to, behind the last item. */
  to: string;
  /** A sentence below it, or in place of it. */
  note: string;
}

/** The choice of a path by a table, of which there is one for each flow. */
const TABLE = "table";
const WAYS = "Where packets go";
const HOLDS = "What holds its packets up";

export function listsOf(run: Run, chosen: Selection, time: number): List[] {
  const forest = run.treeTimes.length ? run.forest(run.treeSampleAt(time)) : null;
  const down = new Set(Array.from(run.downRows(time)));
  if (chosen.kind === "tree") return forest ? treeLists(run, forest, chosen.tree) : [];
  if (chosen.kind === "node" && !run.isHost(chosen.node))
    return forest ? [portsInTrees(run, forest, chosen.node)] : [];
  const start = startOf(run, chosen);
  if (start === undefined) return [];
  return [
    ...wayLists(run, forest, chosen, start, down),
    ...chainLists(run, forest, chosen, start, down),
  ];
}

/** All of lists as rows of a table: name, value and unit. */
export function plainLists(lists: readonly List[]): Cell[][] {
  return lists.flatMap((list, place) => {
    // Paths come first, so that their places are their numbers.
    const isWay = list.kind === "way";
    const own = isWay ? `way ${place + 1}` : list.name;
    const name = (at: number) => (isWay ? `${own}, port ${at + 1}` : `${own} ${at + 1}`);
    const rows: Cell[][] = [];
    if (list.heading) rows.push([own, list.heading, ""]);
    for (let at = 0; at < list.length; at++) {
      const { text, plain } = list.item(at);
      rows.push([name(at), text, ""]);
      for (const [what, value, unit] of plain) rows.push([`${name(at)}, ${what}`, value, unit]);
    }
    if (list.to) rows.push([`${own}, to`, list.to, ""]);
    if (list.note) rows.push([list.title, list.note, ""]);
    return rows;
  });
}

/** The port by which packets of a selection begin their way. */
function startOf(run: Run, chosen: Selection): number | undefined {
  if (chosen.kind === "port") return chosen.row;
  if (chosen.kind === "flow") return run.portsOf(chosen.source)[0];
  return chosen.kind === "node" ? run.portsOf(chosen.node)[0] : undefined;
}

/** Where packets go: those of a flow, or of a host to the roots that it contributes to. */
function wayLists(
  run: Run,
  forest: Forest | null,
  chosen: Selection,
  start: number,
  down: ReadonlySet<number>,
): List[] {
  if (!run.egress || (chosen.kind !== "flow" && chosen.kind !== "node")) return [];
  const ways =
    chosen.kind === "flow"
      ? [
          {
            rows: pathTo(run, start, chosen.destination),
            to: run.nodes[chosen.destination].name,
            tree: null,
          },
        ]
      : waysOf(run, forest, chosen.node);
  const empty = { title: WAYS, heading: "", kind: "way", name: "way" } as const;
  if (!ways.length) {
    const note = "The host contributes to no tree at this instant. Search for A > B to see a path.";
    return [{ ...empty, length: 0, item: noItem, to: "", note }];
  }
  const choice = run.facts.path_choice;
  return ways.map(({ rows, to, tree }, place) => ({
    ...empty,
    heading: tree === null ? "" : `tree ${tree}`,
    length: rows.length,
    item: (at) => {
      const isDown = down.has(rows[at]);
      return {
        ...portItem(run, rows[at]),
        said: isDown ? "(cable down)" : "",
        plain: isDown ? [["cable", "down", ""]] : [],
      };
    },
    to,
    note: choice !== TABLE && place === ways.length - 1 ? `One of several paths: ${choice}.` : "",
  }));
}

/** The ports between the first one in a tree and the root that blocks it; of a flow, for each tree on its path. */
function chainLists(
  run: Run,
  forest: Forest | null,
  chosen: Selection,
  start: number,
  down: ReadonlySet<number>,
): List[] {
  const isFlow = chosen.kind === "flow";
  const way = isFlow ? pathTo(run, start, chosen.destination) : [start];
  const empty = { title: HOLDS, heading: "", kind: "chain", name: "holds up" } as const;
  const chains = chainsAlong(forest, way);
  if (!chains.length) {
    const note = whyFree(run, chosen, way, down);
    return [{ ...empty, length: 0, item: noItem, to: "", note }];
  }
  return chains.map((chain) => {
    const last = chain[chain.length - 1];
    const tree = `tree ${forest!.tree[forest!.rows.indexOf(chain[0])]}`;
    return {
      ...empty,
      heading: isFlow ? tree : "",
      name: chains.length > 1 ? `holds up in ${tree}` : "holds up",
      length: chain.length,
      item: (at) => {
        const state = at === chain.length - 1 ? "root" : "waits for credits";
        const amount = forest!.queued[forest!.rows.indexOf(chain[at])];
        return { ...portItem(run, chain[at]), ...amounts(run, state, amount) };
      },
      to: forest!.trees.find((one) => one.rootRow === last)?.destination ?? "",
      note: "",
    };
  });
}

/** What is said of ports in no tree: a cable on the way may be down. */
function whyFree(run: Run, chosen: Selection, way: number[], down: ReadonlySet<number>): string {
  const cut = way.find((row) => down.has(row));
  if (cut !== undefined) return `The cable at ${run.portName(cut)} is down.`;
  if (chosen.kind === "flow" && run.egress)
    return "No port on its path is in a congestion tree at this instant.";
  return chosen.kind === "port"
    ? "It is in no congestion tree at this instant."
    : "The port of its host is in no congestion tree at this instant.";
}

/** Ports, contributors and hosts with victims of a tree. */
function treeLists(run: Run, forest: Forest, tree: number): List[] {
  const { rows, depth, queued, hosts, hostTree, contributing, victim } = forest;
  const members = placesIn(forest.tree, tree).sort(
    (a, b) => depth[a] - depth[b] || queued[b] - queued[a],
  );
  if (!members.length) return [];
  const own = placesIn(hostTree, tree);
  const hostList = (title: string, name: string, of: Float64Array, state: string): List => {
    const those = own.filter((place) => of[place] > 0).sort((a, b) => of[b] - of[a]);
    return {
      ...membersList(title, name, those.length),
      item: (at) => {
        const node = hosts[those[at]];
        return {
          text: run.nodes[node].name,
          selection: { kind: "node", node },
          said: run.amount(of[those[at]]),
          plain: [[state, of[those[at]], unitOf(run)]],
        };
      },
      note: those.length ? "" : "None at this instant.",
    };
  };
  const portList = (title: string, name: string, isHost: boolean): List => {
    const those = members.filter((place) => run.isHost(run.node[rows[place]]) === isHost);
    return {
      ...membersList(title, name, those.length),
      item: (at) => {
        const place = those[at];
        const role = roleOf(run, forest, place);
        return { ...portItem(run, rows[place]), ...amounts(run, role, queued[place]) };
      },
      note: those.length ? "" : "None at this instant.",
    };
  };
  return [
    portList("Root and branches", "port", false),
    portList("Sources, which wait for credits", "source", true),
    hostList("Contributors", "contributor", contributing, "contributes"),
    hostList(
      "Hosts with victims",
      "host with victims",
      victim,
      run.facts.diagnosis ? "sends past the root" : "held up",
    ),
  ];
}

/** Ports of a switch that are in trees. */
function portsInTrees(run: Run, forest: Forest, node: number): List {
  const places = Array.from(forest.rows.keys()).filter(
    (place) => run.node[forest.rows[place]] === node,
  );
  return {
    ...membersList("Ports in trees", "port in a tree", places.length),
    item: (at) => {
      const place = places[at];
      const role = `tree ${forest.tree[place]}, ${roleOf(run, forest, place)}`;
      return {
        ...portItem(run, forest.rows[place]),
        ...amounts(run, role, forest.queued[place]),
      };
    },
    note: places.length ? "" : "No port is in a tree at this instant.",
  };
}

function membersList(title: string, name: string, length: number): List {
  return { title, heading: "", kind: "members", name, length, item: noItem, to: "", note: "" };
}

function noItem(): never {
  throw new Error("the list has no items");
}

function placesIn(of: Uint32Array, tree: number): number[] {
  const places: number[] = [];
  of.forEach((one, place) => one === tree && places.push(place));
  return places;
}

function portItem(run: Run, row: number): Pick<Item, "text" | "selection"> {
  return { text: run.portName(row), selection: { kind: "port", row } };
}

/** What a port in a tree does, and how much waits or is lost there. */
function amounts(run: Run, state: string, amount: number): Pick<Item, "said" | "plain"> {
  const isLost = run.facts.diagnosis;
  return {
    said: `${state}, ${run.amount(amount)}${isLost ? " lost" : ""}`,
    plain: [
      ["state", state, ""],
      [isLost ? "lost by waiting" : "queued in the tree", amount, unitOf(run)],
    ],
  };
}
