// The map as an SVG, for files and for browsers without WebGL.

import type { Run } from "../data/run";
import { digits } from "../data/units";
import type { Layout } from "../layout/layout";
import { css, type Theme } from "./colours";
import { clear, type Box } from "./overlap";
import type { Mark, Scene, Strokes } from "./scene";
import { starPoints } from "./shapes";
import { Kind, lookWidth, LOOKS, radiusOf, thickness } from "./webgl";

const HEAD = 34;
const FOOT = 30;
const MOST_NAMED = 120;
const NAME_SIZE = 8;

/** Draw a scene.
 *
 * @param width Pixels; the height follows from the layout.
 * @param caption What is shown, above the map.
 */
export function svg(
  run: Run,
  layout: Layout,
  scene: Scene,
  theme: Theme,
  width: number,
  caption: string,
): string {
  const [left, top, right, bottom] = layout.bounds;
  const scale = width / (right - left);
  const height = Math.ceil((bottom - top) * scale) + HEAD + FOOT;
  const x = (value: number) => digits((value - left) * scale, 6);
  const y = (value: number) => digits((value - top) * scale + HEAD, 6);
  const lines = (strokes: Strokes) => strokePaths(strokes, thickness(scale), x, y);
  const hosts = [...new Set([layout.senders, layout.receivers])].flatMap((places) =>
    Array.from({ length: run.hosts }, (_, host) => ({
      x: places[2 * host],
      y: places[2 * host + 1],
      name: run.nodes[host].name,
    })),
  );
  const named = layout.switches.length <= MOST_NAMED;
  const title = (text: string) => `<title>${escaped(text)}</title>`;
  const parts = [
    `<rect width="100%" height="100%" fill="${css(theme.page)}"/>`,
    `<text x="12" y="22" font-size="15" font-weight="bold">${escaped(caption)}</text>`,
    ...lines(scene.cables),
    ...lines(scene.branches),
    ...hosts.map(
      (host) =>
        `<circle cx="${x(host.x)}" cy="${y(host.y)}" r="${digits(radiusOf(LOOKS.host, scale))}" fill="${css(theme.idle)}">` +
        `${title(host.name)}</circle>`,
    ),
    ...layout.switches.map((place) => {
      const half = radiusOf(LOOKS.switch, scale);
      const [left, top] = [Number(x(place.x)) - half, Number(y(place.y)) - half];
      return (
        `<rect x="${digits(left, 6)}" y="${digits(top, 6)}" width="${digits(2 * half)}"` +
        ` height="${digits(2 * half)}" fill="${css(theme.switch)}">` +
        `${title(run.nodes[place.node].name)}</rect>`
      );
    }),
    ...lines(scene.chosen),
    ...scene.moving.map((mark) => drawn(mark, x, y, scale)),
    ...scene.labels.map(
      (label) =>
        `<text x="${x(label.x)}" y="${y(label.y)}" dy="22" text-anchor="middle" font-size="12"` +
        ` font-weight="bold">${escaped(label.text)}</text>`,
    ),
    ...(named ? switchNames(run, layout, x, y) : []),
    legend(theme, height - 12),
  ];
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"` +
    ` viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" fill="${css(theme.ink)}">` +
    `${parts.join("\n")}</svg>`
  );
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
  scale: number,
): string {
  const radius = radiusOf(mark.look, scale);
  const colour = css(mark.colour);
  if (mark.look.kind === Kind.Star) {
    const points = starPoints(Number(x(mark.x)), Number(y(mark.y)), radius);
    const text = points.map((point) => point.map((value) => digits(value, 5)).join(",")).join(" ");
    return `<polygon points="${text}" fill="${colour}"/>`;
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

function switchNames(
  run: Run,
  layout: Layout,
  x: (value: number) => string,
  y: (value: number) => string,
): string[] {
  const named = layout.switches.map((place) => ({
    text: run.nodes[place.node].name,
    left: Number(x(place.x)) + 7,
    base: Number(y(place.y)) - 5,
  }));
  const boxes = named.map(({ text, left, base }): Box => [
    left,
    base - NAME_SIZE,
    left + text.length * 0.6 * NAME_SIZE,
    base,
  ]);
  return clear(boxes).flatMap((isFree, at) => {
    if (!isFree) return [];
    const { text, left, base } = named[at];
    return (
      `<text x="${digits(left, 6)}" y="${digits(base, 6)}" font-size="${NAME_SIZE}">` +
      `${escaped(text)}</text>`
    );
  });
}

function legend(theme: Theme, y: number): string {
  const ink = css(theme.ink);
  const colour = css(theme.trees[0]);
  const points = starPoints(18, y - 4, 7)
    .map((point) => point.map((value) => digits(value, 5)).join(","))
    .join(" ");
  return (
    `<polygon points="${points}" fill="${colour}"/><text x="30" y="${y}" font-size="11">root</text>` +
    `<path d="M70 ${y - 4}h24" stroke="${colour}" stroke-width="4"/><text x="100" y="${y}" font-size="11">branch</text>` +
    `<circle cx="156" cy="${y - 4}" r="4.5" fill="${colour}"/><text x="166" y="${y}" font-size="11">contributor</text>` +
    `<circle cx="242" cy="${y - 4}" r="4.5" fill="none" stroke="${ink}" stroke-width="1.6"/>` +
    `<text x="252" y="${y}" font-size="11">host with victims</text>`
  );
}

/** Text that no XML parser sees a tag in. Characters that XML forbids are replaced. */
export function escaped(text: string): string {
  return text
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "\ufffd")
    .replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
