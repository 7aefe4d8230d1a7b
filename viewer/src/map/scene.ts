// What the map shows at an instant, as plain geometry: WebGL and SVG draw the same.

import type { Run } from "../data/run";
import { heldRows } from "../data/paths";
import { hasMeasure, sharesOf } from "../data/measures";
import type { Forest } from "../data/trees";
import type { Selection } from "../data/selection";
import { membersBehind, trunksLast } from "./branches";
import {
  cablesOf,
  cut,
  firstsOf,
  joined,
  lengthOf,
  picked,
  piecesOf,
  scattered,
  type Cables,
} from "./cables";
import type { Layout } from "../layout/layout";
import { mixed, onRamp, type ColourBy, type Rgb, type Theme } from "./colours";
import { LOOKS, TRUNK, type Look } from "./shapes";
import { strokeLook } from "./webgl";

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
  /** Room of what it marks, in units of the map. */
  room: number;
}

export interface Label {
  x: number;
  y: number;
  text: string;
  bold: boolean;
  /** Mark next to which the text is. */
  of: Look;
  room: number;
  /** Whether the text is above it, if there is room. */
  isAbove: boolean;
}

interface Place {
  x: number;
  y: number;
  room: number;
}

export interface Scene {
  cables: Strokes;
  branches: Strokes;
  /** What holds up the selection, or what it holds up. */
  chosen: Strokes;
  hosts: readonly Mark[];
  switches: readonly Mark[];
  /** Contributors, and rings around hosts with victims; the first ones of each are everywhere on the map. */
  senders: readonly Mark[];
  victims: readonly Mark[];
  /** Roots, rings around what is selected, and crosses on cables that are down. */
  signs: readonly Mark[];
  labels: readonly Label[];
}

// Curves are cut into so many pieces, of few ports into more; in larger fabrics their shape cannot be seen.
const PIECES = { least: 12, most: 32 };
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
  private readonly firsts: Uint32Array;
  private readonly inner: Cables;
  private readonly scatteredHosts: number[];
  private stillMarks: { theme: Theme; hosts: Mark[]; switches: Mark[] } | null = null;
  private quietLook: { theme: Theme; strokes: Strokes } | null = null;

  constructor(
    readonly run: Run,
    readonly layout: Layout,
  ) {
    this.pieces =
      run.ports <= MOST_CURVED
        ? Math.round(
            Math.min(PIECES.most, Math.max(PIECES.least, MOST_CURVED / Math.max(1, run.ports))),
          )
        : 1;
    this.few = run.hosts <= FEW_HOSTS;
    const rows = Array.from({ length: run.ports }, (_, row) => row);
    this.all = cablesOf(layout, rows, this.pieces);
    this.firsts = firstsOf(this.all, run.ports);
    this.scatteredHosts = scattered(Array.from({ length: run.hosts }, (_, host) => host));
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

  /** The same for thousands of members of few trees. */
  private colours(theme: Theme): (tree: number) => Rgb {
    const known = new Map<number, Rgb>();
    return (tree) => {
      const colour = known.get(tree) ?? this.colourOf(tree, theme);
      known.set(tree, colour);
      return colour;
    };
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
      ...this.senders(forest, theme),
      signs: [
        ...this.roots(forest, theme),
        ...this.rings(forest, theme, selection),
        ...this.down(time, theme),
      ],
      labels: this.treeNames(forest),
    };
  }

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
    const { run } = this;
    const behind = membersBehind(forest, run.ports);
    const isShown = (row: number) => this.few || !run.isHost(run.node[row]);
    const places = trunksLast(forest, behind, run.ports, isShown);
    const rows = places.map((place) => forest.rows[place]);
    const colourOf = this.colours(theme);
    const looks = new Uint32Array(run.ports);
    for (const place of places) {
      const share = behind[place] / Math.max(FEW_HOSTS, run.hosts);
      const width = Math.min(TRUNK, 0.9 + 10.7 * Math.sqrt(share));
      looks[forest.rows[place]] = strokeLook(colourOf(forest.tree[place]), width);
    }
    return painted(picked(this.all, this.firsts, rows), (row) => looks[row]);
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
          hosts.push({ x, y, colour: theme.idle, look: LOOKS.host, room: layout.room.hosts });
        }
      }
      const switches = layout.switches.map(({ x, y }) => {
        return { x, y, colour: theme.switch, look: LOOKS.switch, room: layout.room.switches };
      });
      this.stillMarks = { theme, hosts, switches };
    }
    const { hosts, switches } = this.stillMarks;
    return { hosts, switches };
  }

  /** Contributors as discs in the colour of the tree to which they give most, rings around hosts with victims. */
  private senders(forest: Forest | null, theme: Theme): { senders: Mark[]; victims: Mark[] } {
    if (!forest) return { senders: [], victims: [] };
    const { hosts, hostTree, contributing, victim } = forest;
    const most = new Float64Array(this.run.hosts);
    const trees = new Uint32Array(this.run.hosts);
    const isVictim = new Uint8Array(this.run.hosts);
    for (let place = 0; place < hosts.length; place++) {
      const host = hosts[place];
      if (contributing[place] > most[host]) {
        most[host] = contributing[place];
        trees[host] = hostTree[place];
      }
      if (victim[place] > 0) isVictim[host] = 1;
    }
    const colourOf = this.colours(theme);
    const discs: Mark[] = [];
    const rings: Mark[] = [];
    for (const host of this.scatteredHosts) {
      if (!most[host] && !isVictim[host]) continue;
      const place = this.sender(host);
      if (most[host])
        discs.push({ ...place, colour: colourOf(trees[host]), look: LOOKS.contributor });
      if (isVictim[host]) rings.push({ ...place, colour: theme.ink, look: LOOKS.victim });
    }
    return { senders: discs, victims: rings };
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
      return { x, y, colour: theme.ink, look: LOOKS.down, room: this.layout.room.switches };
    });
  }

  private treeNames(forest: Forest | null): Label[] {
    return (forest?.trees ?? []).slice(0, MOST_NAMED_TREES).map((tree) => ({
      ...this.end(tree.rootRow),
      text: `T${tree.tree}`,
      bold: true,
      of: LOOKS.root,
      isAbove: false,
    }));
  }

  private rings(forest: Forest | null, theme: Theme, selection: Selection | null): Mark[] {
    return this.places(forest, selection).map((place) => ({
      ...place,
      colour: theme.accent,
      look: LOOKS.ring,
    }));
  }

  places(forest: Forest | null, selection: Selection | null): Place[] {
    if (selection?.kind === "node") {
      const { node } = selection;
      if (!this.run.isHost(node)) {
        const room = this.layout.room.switches;
        const own = this.layout.switches.filter((place) => place.node === node);
        return own.map(({ x, y }) => ({ x, y, room }));
      }
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

  private start(row: number): Place {
    return this.place(this.layout.lines, 4 * row, this.run.node[row]);
  }

  private end(row: number): Place {
    const peer = this.run.peerNode(row);
    return this.place(this.layout.lines, 4 * row + 2, peer < 0 ? this.run.node[row] : peer);
  }

  private sender(host: number): Place {
    return this.place(this.layout.senders, 2 * host, host);
  }

  private receiver(host: number): Place {
    return this.place(this.layout.receivers, 2 * host, host);
  }

  private place(values: Float32Array, at: number, node: number): Place {
    const { hosts, switches } = this.layout.room;
    return { x: values[at], y: values[at + 1], room: this.run.isHost(node) ? hosts : switches };
  }
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
