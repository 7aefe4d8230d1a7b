// What the map shows at an instant, as plain geometry: WebGL and SVG draw the same.

import type { Run } from "../data/run";
import { heldRows } from "../data/paths";
import { hasMeasure, sharesOf } from "../data/measures";
import type { Forest } from "../data/trees";
import type { Selection } from "../data/selection";
import { curve, type Layout } from "../layout/layout";
import { mixed, onRamp, type ColourBy, type Rgb, type Theme } from "./colours";
import { LOOKS, TRUNK, type Look } from "./shapes";
import { strokeLook } from "./webgl";

/** Cables of some ports, cut into straight pieces. */
export interface Cables {
  length: number;
  /** Start and end of each piece: x0, y0, x1, y1. */
  ends: Float32Array;
  /** Port of each piece. */
  of: Uint32Array;
}

export interface Strokes {
  cables: Cables;
  /** Colour and width of each piece; see `strokeLook`. */
  looks: Uint32Array;
  opacity: number;
  /** Strokes of which a part may do, any first ones: they are in no order of place. */
  background?: Background;
}

/** Length of all strokes and area of the map, in its units. */
export interface Background {
  length: number;
  area: number;
}

export interface Mark {
  x: number;
  y: number;
  colour: Rgb;
  look: Look;
}

export interface Label {
  x: number;
  y: number;
  text: string;
  bold: boolean;
  /** Mark below which the text is. */
  of: Look;
}

export interface Scene {
  cables: Strokes;
  branches: Strokes;
  /** What holds up the selection, or what it holds up. */
  chosen: Strokes;
  hosts: readonly Mark[];
  switches: readonly Mark[];
  /** Contributors, victims, roots, and rings around what is selected. */
  moving: readonly Mark[];
  labels: readonly Label[];
}

// Curves are cut into so many pieces; in larger fabrics their shape cannot be seen.
const PIECES = 12;
const MOST_CURVED = 6000;
// Up to so many hosts, their own cables are drawn although nothing is on them.
const FEW_HOSTS = 64;
const MOST_NAMED_TREES = 40;
const STEPS = 64;
// Half of them are painted of a cable that is down.
const DASHES = 24;

/** The geometry of a run in a layout; instants and selections are drawn with it. */
export class SceneMaker {
  readonly pieces: number;
  private readonly few: boolean;
  private readonly all: Cables;
  private readonly inner: Cables;
  private stillMarks: { theme: Theme; hosts: Mark[]; switches: Mark[] } | null = null;
  private quietLook: { theme: Theme; strokes: Strokes } | null = null;

  constructor(
    readonly run: Run,
    readonly layout: Layout,
  ) {
    this.pieces = run.ports <= MOST_CURVED ? PIECES : 1;
    this.few = run.hosts <= FEW_HOSTS;
    const rows = Array.from({ length: run.ports }, (_, row) => row);
    this.all = cablesOf(layout, rows, this.pieces);
    const inner = rows.filter(
      (row) => !run.isHost(run.node[row]) && !run.isHost(run.peerNode(row)),
    );
    this.inner = cablesOf(layout, this.few ? rows : scattered(inner), this.pieces);
  }

  /** Colour of a tree: that of its lineage, or of all the smaller ones. */
  colourOf(tree: number, theme: Theme): Rgb {
    const place = this.run.colourPlace(tree);
    return place === undefined ? theme.otherTrees : theme.trees[place];
  }

  scene(time: number, colourBy: ColourBy, theme: Theme, selection: Selection | null): Scene {
    const { run } = this;
    const forest = run.treeTimes.length ? run.forest(run.treeSampleAt(time)) : null;
    const isMeasured = colourBy !== "trees" && hasMeasure(run, colourBy);
    return {
      cables: isMeasured ? this.measured(time, colourBy, theme) : this.quiet(theme),
      branches: isMeasured ? NONE : this.branches(forest, theme),
      chosen: this.chosen(forest, theme, selection, this.run.downRows(time)),
      ...this.still(theme),
      moving: [
        ...this.senders(forest, theme),
        ...this.roots(forest, theme),
        ...this.rings(forest, theme, selection),
        ...this.down(time, theme),
      ],
      labels: this.treeNames(forest),
    };
  }

  /** All cables alike. */
  private quiet(theme: Theme): Strokes {
    if (this.quietLook?.theme !== theme) {
      // Pieces of a cable overlap, which would be seen where they let others through.
      const look = this.few
        ? strokeLook(mixed(theme.page, theme.cable, 0.8), 1)
        : strokeLook(theme.cable, 0.7);
      const looks = new Uint32Array(this.inner.length).fill(look);
      const [left, top, right, bottom] = this.layout.bounds;
      const background = {
        length: lengthOf(this.inner),
        area: (right - left) * (bottom - top),
      };
      const strokes = { cables: this.inner, looks, opacity: this.few ? 1 : 0.35, background };
      this.quietLook = { theme, strokes };
    }
    return this.quietLook.strokes;
  }

  /** Cables by a measure: the more, the darker and the thicker. */
  private measured(time: number, colourBy: Exclude<ColourBy, "trees">, theme: Theme): Strokes {
    const shares = sharesOf(this.run, colourBy, this.run.sampleAt(time));
    const steps = Uint32Array.from({ length: STEPS + 1 }, (_, step) => {
      const share = step / STEPS;
      return strokeLook(onRamp(theme.ramps[colourBy], share), 0.5 + 3 * share);
    });
    return painted(this.all, (row) => steps[Math.round(STEPS * shares[row])]);
  }

  /** Members of trees, the thicker the more are behind them, trunks over branches. */
  private branches(forest: Forest | null, theme: Theme): Strokes {
    if (!forest) return NONE;
    const behind = membersBehind(forest);
    const shown = Array.from(forest.rows.keys())
      .filter((place) => this.few || !this.run.isHost(this.run.node[forest.rows[place]]))
      .sort((a, b) => behind[a] - behind[b]);
    const looks = new Map(
      shown.map((place) => {
        const share = behind[place] / Math.max(FEW_HOSTS, this.run.hosts);
        const width = Math.min(TRUNK, 0.9 + 10.7 * Math.sqrt(share));
        return [forest.rows[place], strokeLook(this.colourOf(forest.tree[place], theme), width)];
      }),
    );
    const cables = cablesOf(this.layout, Array.from(looks.keys()), this.pieces);
    return painted(cables, (row) => looks.get(row)!);
  }

  /** What holds up the selection; cables that are down are dashed. */
  private chosen(
    forest: Forest | null,
    theme: Theme,
    selection: Selection | null,
    down: ArrayLike<number>,
  ): Strokes {
    const rows = heldRows(this.run, forest, selection);
    if (!rows.length && !down.length) return NONE;
    const look = strokeLook(theme.accent, selection?.kind === "tree" ? 1 : 2.2);
    const solid = cablesOf(this.layout, rows, this.pieces);
    const dashes = piecesOf(
      Array.from(down).flatMap((row) => {
        const line = cut(this.layout, row, DASHES);
        const starts = line.slice(0, -1).filter((_, at) => at % 2 === 0);
        return starts.map((start, at) => ({ row, line: [start, line[2 * at + 1]] }));
      }),
    );
    const looks = new Uint32Array(solid.length + dashes.length).fill(look);
    looks.fill(strokeLook(theme.ink, 1.6), solid.length);
    return { cables: joined(solid, dashes), looks, opacity: 1 };
  }

  /** Hosts and switches, the same at all instants. */
  private still(theme: Theme): { hosts: Mark[]; switches: Mark[] } {
    if (this.stillMarks?.theme !== theme) {
      const { layout, run } = this;
      const hosts: Mark[] = [];
      for (const places of new Set([layout.senders, layout.receivers])) {
        for (let host = 0; host < run.hosts; host++) {
          const [x, y] = [places[2 * host], places[2 * host + 1]];
          hosts.push({ x, y, colour: theme.idle, look: LOOKS.host });
        }
      }
      const switches = layout.switches.map(({ x, y }) => {
        return { x, y, colour: theme.switch, look: LOOKS.switch };
      });
      this.stillMarks = { theme, hosts, switches };
    }
    const { hosts, switches } = this.stillMarks;
    return { hosts, switches };
  }

  /** Contributors as discs in the colour of their tree, rings around hosts with victims. */
  private senders(forest: Forest | null, theme: Theme): Mark[] {
    if (!forest) return [];
    const main = new Map<number, [bytes: number, tree: number]>();
    const victims = new Set<number>();
    forest.hosts.forEach((host, place) => {
      const bytes = forest.contributing[place];
      if (bytes > (main.get(host)?.[0] ?? 0)) main.set(host, [bytes, forest.hostTree[place]]);
      if (forest.victim[place] > 0) victims.add(host);
    });
    return [
      ...Array.from(main, ([host, [, tree]]) => ({
        ...this.sender(host),
        colour: this.colourOf(tree, theme),
        look: LOOKS.contributor,
      })),
      ...Array.from(victims, (host) => ({
        ...this.sender(host),
        colour: theme.ink,
        look: LOOKS.victim,
      })),
    ];
  }

  private roots(forest: Forest | null, theme: Theme): Mark[] {
    return (forest?.trees ?? []).map((tree) => ({
      ...this.end(tree.rootRow),
      colour: this.colourOf(tree.tree, theme),
      look: LOOKS.root,
    }));
  }

  /** Crosses on the cables that are down, one for each direction, where few cables cross. */
  private down(time: number, theme: Theme): Mark[] {
    return Array.from(this.run.downRows(time), (row) => {
      const [x, y] = cut(this.layout, row, DASHES)[DASHES / 4];
      return { x, y, colour: theme.ink, look: LOOKS.down };
    });
  }

  private treeNames(forest: Forest | null): Label[] {
    return (forest?.trees ?? []).slice(0, MOST_NAMED_TREES).map((tree) => ({
      ...this.end(tree.rootRow),
      text: `T${tree.tree}`,
      bold: true,
      of: LOOKS.root,
    }));
  }

  private rings(forest: Forest | null, theme: Theme, selection: Selection | null): Mark[] {
    return this.places(forest, selection).map((place) => ({
      ...place,
      colour: theme.accent,
      look: LOOKS.ring,
    }));
  }

  /** Where the selection is on the map. */
  places(forest: Forest | null, selection: Selection | null): { x: number; y: number }[] {
    if (selection?.kind === "node") {
      const { node } = selection;
      if (!this.run.isHost(node))
        return this.layout.switches.filter((place) => place.node === node);
      return [this.sender(node), this.receiver(node)];
    }
    if (selection?.kind === "flow")
      return [this.sender(selection.source), this.receiver(selection.destination)];
    if (!selection) return [];
    const row =
      selection.kind === "port"
        ? selection.row
        : forest?.trees.find((tree) => tree.tree === selection.tree)?.rootRow;
    return row === undefined ? [] : [this.start(row), this.end(row)];
  }

  private start(row: number): { x: number; y: number } {
    return { x: this.layout.lines[4 * row], y: this.layout.lines[4 * row + 1] };
  }

  private end(row: number): { x: number; y: number } {
    return { x: this.layout.lines[4 * row + 2], y: this.layout.lines[4 * row + 3] };
  }

  private sender(host: number): { x: number; y: number } {
    return { x: this.layout.senders[2 * host], y: this.layout.senders[2 * host + 1] };
  }

  private receiver(host: number): { x: number; y: number } {
    return { x: this.layout.receivers[2 * host], y: this.layout.receivers[2 * host + 1] };
  }
}

/** Cut the cables of some ports into pieces, in the order of the ports. */
export function cablesOf(layout: Layout, rows: readonly number[], pieces: number): Cables {
  return piecesOf(rows.map((row) => ({ row, line: curve(layout, row, pieces) })));
}

/** Points of a port's cable, as many for a straight one as for a curve. */
function cut(layout: Layout, row: number, pieces: number): [number, number][] {
  const line = curve(layout, row, pieces);
  if (line.length > 2) return line;
  const [[x0, y0], [x1, y1]] = line;
  return Array.from({ length: pieces + 1 }, (_, at) => {
    const part = at / pieces;
    return [x0 + part * (x1 - x0), y0 + part * (y1 - y0)];
  });
}

function joined(first: Cables, second: Cables): Cables {
  if (!second.length) return first;
  const ends = new Float32Array(4 * (first.length + second.length));
  ends.set(first.ends);
  ends.set(second.ends, 4 * first.length);
  const of = new Uint32Array(first.length + second.length);
  of.set(first.of);
  of.set(second.of, first.length);
  return { length: of.length, ends, of };
}

function piecesOf(cables: { row: number; line: [number, number][] }[]): Cables {
  const lines = cables.map(({ line }) => line);
  const length = lines.reduce((sum, line) => sum + line.length - 1, 0);
  const ends = new Float32Array(4 * length);
  const of = new Uint32Array(length);
  let at = 0;
  lines.forEach((line, index) => {
    for (let piece = 0; piece + 1 < line.length; piece++, at++) {
      ends[4 * at] = line[piece][0];
      ends[4 * at + 1] = line[piece][1];
      ends[4 * at + 2] = line[piece + 1][0];
      ends[4 * at + 3] = line[piece + 1][1];
      of[at] = cables[index].row;
    }
  });
  return { length, ends, of };
}

/** Order values so that any first ones are spread evenly over all. */
function scattered(values: readonly number[]): number[] {
  const key = (index: number) => (index * 0.6180339887498949) % 1;
  return Array.from(values.keys())
    .sort((a, b) => key(a) - key(b))
    .map((index) => values[index]);
}

function lengthOf({ ends }: Cables): number {
  let sum = 0;
  for (let at = 0; at < ends.length; at += 4) {
    sum += Math.hypot(ends[at + 2] - ends[at], ends[at + 3] - ends[at + 1]);
  }
  return sum;
}

function painted(cables: Cables, look: (row: number) => number): Strokes {
  const looks = new Uint32Array(cables.length);
  for (let at = 0; at < looks.length; at++) {
    looks[at] = at > 0 && cables.of[at] === cables.of[at - 1] ? looks[at - 1] : look(cables.of[at]);
  }
  return { cables, looks, opacity: 1 };
}

const NONE: Strokes = {
  cables: { length: 0, ends: new Float32Array(), of: new Uint32Array() },
  looks: new Uint32Array(),
  opacity: 1,
};

/** Number of members behind each member of a tree, itself included. */
export function membersBehind(forest: Forest): Float64Array {
  const count = new Float64Array(forest.rows.length).fill(1);
  const place = new Map<number, number>();
  forest.rows.forEach((row, index) => place.set(row, index));
  const order = Array.from(forest.rows.keys()).sort((a, b) => forest.depth[b] - forest.depth[a]);
  for (const index of order) {
    const parent = place.get(forest.parent[index]);
    if (parent !== undefined && parent !== index) count[parent] += count[index];
  }
  return count;
}
