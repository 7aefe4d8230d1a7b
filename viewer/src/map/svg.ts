// The map as an SVG, for files and for browsers without WebGL.

import { measuredSpan, spanWords } from "../data/spans";
import type { Run } from "../data/run";
import type { Selection } from "../data/selection";
import { clipped, digits, isolated } from "../data/units";
import type { Layout } from "../layout/layout";
import { css, type ColourBy, type Theme } from "./colours";
import { CLOSEST, EDGE, NAME_LETTERS, rowsWidth } from "./camera";
import { obstacles, placed } from "./labels";
import type { Label, Mark, Scene, Strokes } from "./scene";
import { HALO, Kind, LOOKS, radiusOf, starPoints, thickness } from "./shapes";
import { lookWidth } from "./webgl";

/** Pixels of a drawing up to which text has its usual size; in larger ones it grows with them. */
const USUAL_WIDTH = 1000;
const HEAD = 34;
const FOOT = 30;
const MOST_NAMED = 120;
const MOST_CAPTION = 120;
// Height and mean width of letters, as parts of the size of names.
const LINE = 1.2;
const LETTER = 0.6;
// Sizes of names of trees and of switches.
const BOLD = 12;
const PLAIN = 10;
/** Pixels between drawings next to each other. */
const APART = 16;

/** What a legend below a drawing says: how cables are coloured, and from where to where. */
export interface LegendFacts {
  theme: Theme;
  measure: ColourBy;
  /** Texts at the ends of the scale of colours. */
  scale: [string, string];
  name: string;
  /** Whether trees were looked for, so that their marks mean something. */
  hasTrees: boolean;
  /** What the outline of a selection means; nothing if none is drawn. */
  chosen: string;
}

export interface Drawing {
  text: string;
  width: number;
  height: number;
}

export const MEASURES: Record<ColourBy, string> = {
  trees: "congestion trees",
  utilisation: "utilisation",
  waiting: "waiting for credits",
  queue: "queue",
};

export function legendOf(
  run: Run,
  measure: ColourBy,
  theme: Theme,
  selection: Selection | null,
): LegendFacts {
  const most = measure === "queue" ? `${digits(run.largestQueue / 1e6, 3)} MB` : "100 %";
  return {
    theme,
    measure,
    scale: [measure === "queue" ? "0" : "0 %", most],
    name: MEASURES[measure] + (run.series ? "" : `, ${spanWords(measuredSpan(run))}`),
    hasTrees: run.treeTimes.length > 0,
    chosen: selection
      ? selection.kind === "tree"
        ? "ports of the selected tree"
        : "selection: its way, and what holds it up"
      : "",
  };
}

export function sideBySide(drawings: readonly Drawing[], theme: Theme): Drawing {
  const height = Math.max(...drawings.map((one) => one.height));
  let width = -APART;
  const parts = drawings.map((one) => {
    const left = width + APART;
    width = left + one.width;
    return `<g transform="translate(${left} 0)">${one.text}</g>`;
  });
  return { text: element(width, height, theme, parts), width, height };
}

function element(width: number, height: number, theme: Theme, parts: readonly string[]): string {
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"` +
    ` viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" fill="${css(theme.ink)}">` +
    `<rect width="100%" height="100%" fill="${css(theme.page)}"/>\n${parts.join("\n")}</svg>`
  );
}

/** `width` is in pixels, the height follows; `facts` of null draw no legend. */
export function svg(
  run: Run,
  layout: Layout,
  scene: Scene,
  theme: Theme,
  width: number,
  caption: string,
  facts: LegendFacts | null,
): Drawing {
  const [left, top, right, bottom] = layout.bounds;
  const grown = Math.max(1, width / USUAL_WIDTH);
  const edge = EDGE.wide * grown;
  const side = rowsWidth(layout, width) * grown;
  const before = Math.max(side, edge);
  const scale = Math.min(2 ** CLOSEST, (width - before - edge) / Math.max(right - left, 1e-9));
  const { room } = layout;
  const thick = thickness(scale, room.hosts * scale);
  const [head, foot] = [HEAD * grown + edge, FOOT * grown + EDGE.high * grown];
  const height = Math.ceil((bottom - top) * scale + head + foot);
  const first = Math.max(before, (width - (right - left) * scale) / 2);
  const x = (value: number) => digits((value - left) * scale + first, 6);
  const y = (value: number) => digits((value - top) * scale + head, 6);
  const lines = (strokes: Strokes) => strokePaths(strokes, thick, x, y);
  const hosts = [...new Set([layout.senders, layout.receivers])].flatMap((places) =>
    Array.from({ length: run.hosts }, (_, host) => ({
      x: places[2 * host],
      y: places[2 * host + 1],
      name: run.nodes[host].name,
    })),
  );
  const ofSwitches: Label[] =
    layout.switches.length > MOST_NAMED
      ? []
      : layout.switches.map((place) => ({
          x: place.x,
          y: place.y,
          text: clipped(run.nodes[place.node].name, NAME_LETTERS),
          bold: false,
          isAbove: false,
          of: LOOKS.switch,
          room: room.switches,
        }));
  const camera = {
    x: left + (width / 2 - first) / scale,
    y: top + (height / 2 - head) / scale,
    zoom: Math.log2(scale),
  };
  const view = { camera, width, height };
  const sizeOf = ({ bold }: Label) => grown * (bold ? BOLD : PLAIN);
  const widthOf = (label: Label) => LETTER * sizeOf(label) * label.text.length;
  const names = placed(
    [...scene.labels, ...ofSwitches],
    obstacles(scene, view),
    view,
    widthOf,
    LINE * grown * BOLD,
  );
  const title = (text: string) => `<title>${escaped(text)}</title>`;
  const parts = [
    `<text x="12" y="${digits(22 * grown)}" font-size="${digits(15 * grown)}" font-weight="bold">${escaped(clipped(caption, MOST_CAPTION))}</text>`,
    ...lines(scene.cables),
    ...lines(scene.branches),
    ...hosts.map(
      (host) =>
        `<circle cx="${x(host.x)}" cy="${y(host.y)}" r="${digits(radiusOf(LOOKS.host, room.hosts * scale))}" fill="${css(theme.idle)}">` +
        `${title(host.name)}</circle>`,
    ),
    ...layout.switches.map((place) => {
      const half = radiusOf(LOOKS.switch, room.switches * scale);
      const [left, top] = [Number(x(place.x)) - half, Number(y(place.y)) - half];
      return (
        `<rect x="${digits(left, 6)}" y="${digits(top, 6)}" width="${digits(2 * half)}"` +
        ` height="${digits(2 * half)}" fill="${css(theme.switch)}">` +
        `${title(run.nodes[place.node].name)}</rect>`
      );
    }),
    ...lines(scene.chosen),
    ...[...scene.senders, ...scene.victims, ...scene.signs].map((mark) =>
      drawn(mark, x, y, radiusOf(mark.look, mark.room * scale), theme),
    ),
    ...(side ? layout.rows : []).map(
      (row) =>
        `<text x="12" y="${y(row.y)}" dy="${digits(4 * grown)}" font-size="${digits(11 * grown)}"` +
        ` fill="${css(theme.faint)}">${row.name}</text>`,
    ),
    ...names.map(
      ({ label, x: middle, y: above }) =>
        `<text x="${digits(middle, 6)}" y="${digits(above + sizeOf(label), 6)}" text-anchor="middle"` +
        ` font-size="${digits(sizeOf(label))}"${label.bold ? ' font-weight="bold"' : ""} ${halo(theme)}>${escaped(label.text)}</text>`,
    ),
    facts
      ? `<g transform="translate(0 ${digits(height - 12 * grown, 6)}) scale(${digits(grown)})">${legend(facts, 0)}</g>`
      : "",
  ];
  return { text: element(width, height, theme, parts), width, height };
}

/** Gives text an edge in the colour of the page, so that it is read on whatever is below it. */
function halo(theme: Theme): string {
  return `stroke="${css(theme.page)}" stroke-width="3" stroke-linejoin="round" paint-order="stroke"`;
}

/** One path for all pieces of one look. */
function strokePaths(
  { cables, looks, opacity }: Strokes,
  thick: number,
  x: (value: number) => string,
  y: (value: number) => string,
): string[] {
  const alike = new Map<number, string[]>();
  for (let at = 0; at < cables.length; at++) {
    const [x0, y0, x1, y1] = cables.ends.subarray(4 * at, 4 * at + 4);
    const path = `M${x(x0)} ${y(y0)}L${x(x1)} ${y(y1)}`;
    const paths = alike.get(looks[at]);
    if (paths) paths.push(path);
    else alike.set(looks[at], [path]);
  }
  return Array.from(alike, ([look, paths]) => {
    const colour = css([look & 255, (look >> 8) & 255, (look >> 16) & 255]);
    return (
      `<path d="${paths.join("")}" fill="none" stroke-linecap="round" stroke="${colour}"` +
      ` stroke-opacity="${opacity}" stroke-width="${digits(lookWidth(look) * thick, 3)}"/>`
    );
  });
}

function drawn(
  mark: Mark,
  x: (value: number) => string,
  y: (value: number) => string,
  radius: number,
  theme: Theme,
): string {
  const colour = css(mark.colour);
  if (mark.look.kind === Kind.Star) {
    const points = starPoints(Number(x(mark.x)), Number(y(mark.y)), radius);
    const text = points.map((point) => point.map((value) => digits(value, 5)).join(",")).join(" ");
    const halo = `stroke="${css(theme.page)}" stroke-width="${2 * HALO}" paint-order="stroke"`;
    return `<polygon points="${text}" fill="${colour}" ${halo}/>`;
  }
  if (mark.look.kind === Kind.Cross) {
    const [left, top] = [Number(x(mark.x)) - radius, Number(y(mark.y)) - radius];
    const [side, thick] = [digits(2 * radius, 4), digits(Math.max(2, 0.32 * radius), 3)];
    const path = `M${digits(left, 6)} ${digits(top, 6)}l${side} ${side}m0 -${side}l-${side} ${side}`;
    return `<path d="${path}" stroke="${colour}" stroke-width="${thick}"/>`;
  }
  const at = `cx="${x(mark.x)}" cy="${y(mark.y)}"`;
  if (mark.look.kind === Kind.Disc) return `<circle ${at} r="${digits(radius)}" fill="${colour}"/>`;
  const thick = 2 * Math.max(1.2, 0.15 * radius);
  return (
    `<circle ${at} r="${digits(radius - thick / 2)}" fill="none" stroke="${colour}"` +
    ` stroke-width="${digits(thick, 3)}"/>`
  );
}

/** Cables first, then the marks. */
function legend(facts: LegendFacts, y: number): string {
  const { theme, measure, scale, name, hasTrees, chosen } = facts;
  const ink = css(theme.ink);
  const colour = css(theme.trees[0]);
  const parts: string[] = [];
  let left = 12;
  const add = (width: number, draw: (at: number) => string, text: string) => {
    parts.push(draw(left), `<text x="${left + width + 6}" y="${y}" font-size="11">${text}</text>`);
    left += width + 6 + 6.5 * text.length + 14;
  };
  if (measure === "trees") {
    add(24, (at) => `<path d="M${at} ${y - 4}h24" stroke="${colour}" stroke-width="4"/>`, "branch");
  } else {
    parts.push(`<text x="${left}" y="${y}" font-size="11">${scale[0]}</text>`);
    left += 6.5 * scale[0].length + 6;
    const ramp = theme.ramps[measure];
    const shade = (at: number) =>
      ramp
        .map((one, place) => {
          const [x, thick] = [at + place * 20, 2 + 2 * place];
          return `<path d="M${x} ${y - 4}h20" stroke="${css(one)}" stroke-width="${thick}"/>`;
        })
        .join("");
    add(20 * ramp.length, shade, `${scale[1]}: ${name}`);
  }
  if (chosen)
    add(
      24,
      (at) => `<path d="M${at} ${y - 4}h24" stroke="${css(theme.accent)}" stroke-width="2.2"/>`,
      chosen,
    );
  if (!hasTrees) return parts.join("");
  const star = (at: number) => {
    const points = starPoints(at + 6, y - 4, 7).map((point) =>
      point.map((value) => digits(value, 5)).join(","),
    );
    return `<polygon points="${points.join(" ")}" fill="${colour}"/>`;
  };
  const circle = (look: string) => (at: number) =>
    `<circle cx="${at + 5}" cy="${y - 4}" r="4.5" ${look}/>`;
  add(12, star, "root");
  add(10, circle(`fill="${colour}"`), "contributor");
  add(10, circle(`fill="none" stroke="${ink}" stroke-width="1.6"`), "host with victims");
  return parts.join("");
}

/** Text that no XML parser sees a tag in. Characters that XML forbids are replaced. */
export function escaped(text: string): string {
  return isolated(text)
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
    .replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
