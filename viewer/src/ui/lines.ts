import type { Line } from "./chart";

type Spot = [x: number, y: number];

/** Where lines of a chart lie on each other, with the colours of all lines there. */
export interface Overlaps {
  paths: { places: Spot[]; colours: number[] }[];
  points: { place: Spot; colours: number[] }[];
}

// Pixels below which a line or a point hides another one.
const HIDES = 1;

/** Find the parts and points that later lines would hide, by where values are in pixels. */
export function overlaps(lines: Line[], placeOf: (x: number, y: number) => Spot): Overlaps {
  const columns = new Map<number, Spot[]>();
  // The same place for all values that are not seen apart.
  const same = (x: number, y: number): Spot => {
    const place = placeOf(x, y);
    const column = columns.get(x) ?? [];
    columns.set(x, column);
    const found = column.find((other) => Math.abs(other[1] - place[1]) < HIDES);
    if (!found) column.push(place);
    return found ?? place;
  };
  const parts = new Map<string, { ends: [Spot, Spot]; of: number[] }>();
  const dots = new Map<string, { place: Spot; of: number[] }>();
  lines.forEach((line, index) => {
    if (line.points === "only" || line.right) return;
    let last: Spot | null = null;
    for (let at = 0; at < line.y.length; at++) {
      const y = line.y[at];
      // A curve goes on beyond places where it has no value.
      if (y === null) continue;
      const place = same(line.x[at], y);
      if (line.points) noted(dots, place.join(), { place }, index);
      if (last && line.points !== "discs")
        noted(parts, [...last, ...place].join(), { ends: [last, place] }, index);
      last = place;
    }
  });
  const coloursOf = (of: number[]) => of.map((index) => lines[index].colour ?? index);
  const paths: { lines: string; places: Spot[]; colours: number[] }[] = [];
  for (const { ends, of } of parts.values()) {
    if (of.length < 2) continue;
    // Parts next to each other are one path, so that its dashes go on.
    const before = paths.find((path) => path.lines === of.join() && path.places.at(-1) === ends[0]);
    if (before) before.places.push(ends[1]);
    else paths.push({ lines: of.join(), places: [...ends], colours: coloursOf(of) });
  }
  return {
    paths: paths.map(({ places, colours }) => ({ places, colours })),
    points: [...dots.values()]
      .filter(({ of }) => of.length > 1)
      .map(({ place, of }) => ({ place, colours: coloursOf(of) })),
  };
}

function noted<Of extends object>(
  all: Map<string, Of & { of: number[] }>,
  key: string,
  one: Of,
  index: number,
): void {
  const found = all.get(key);
  if (!found) all.set(key, { ...one, of: [index] });
  else if (!found.of.includes(index)) found.of.push(index);
}

/** Distances of ticks where there is nothing between whole numbers, as between seeds. */
export const STEPS = [1, 2, 5].flatMap((step) =>
  [0, 1, 2, 3, 4, 5].map((power) => step * 10 ** power),
);
STEPS.sort((a, b) => a - b);
// Points up to which ticks are at whole numbers.
const FEW = 20;

/** Whether a chart has few points, all of them at whole numbers. */
export function areWhole(x: (number | null)[]): boolean {
  // A live page has no samples at first.
  return x.length > 1 && x.length <= FEW && x.every(Number.isInteger);
}

// Colours of the figures, by the places of those that the page has for them on its own background.
const OF_FIGURES: Record<string, number> = {
  "#0072B2": 0,
  "#56B4E9": 0,
  "#D55E00": 1,
  "#E69F00": 1,
  "#009E73": 2,
  "#CC79A7": 3,
  "#7A35D8": 4,
  "#000000": 5,
  "#333333": 5,
};
// In every figure.
const CONTROL: [RegExp, number][] = [
  [/\bCC off\b/, 1],
  [/\bCC on\b/, 0],
];
const COLOURS = 6;

/** Places of the figures' colours; others take their label's colour if it is free, or another free one. */
export function coloursOf(curves: readonly { label: string; colour?: string }[]): number[] {
  const given = curves.map(({ colour }) => OF_FIGURES[colour ?? ""] ?? -1);
  const taken = new Set(given);
  const found = curves.map(({ label }, at) => {
    if (given[at] >= 0) return given[at];
    const place = CONTROL.find(([pattern]) => pattern.test(label))?.[1] ?? -1;
    if (place < 0 || taken.has(place)) return -1;
    taken.add(place);
    return place;
  });
  const free = Array.from({ length: COLOURS }, (_, place) => place);
  const rest = free.filter((place) => !taken.has(place));
  // Beyond that many, curves have the colours of others again.
  let next = 0;
  return found.map((place) => {
    if (place >= 0) return place;
    next += 1;
    return next <= rest.length ? rest[next - 1] : (next - rest.length - 1) % COLOURS;
  });
}

// Lines, and gaps between them, of curves that have the same colour.
const DASHES = [[], [5, 4], [1.5, 3], [10, 3, 1.5, 3]];

/** Dashes of lines: those that they have, or others where a line before has the same ones in the same colour. */
export function dashesOf(lines: readonly Pick<Line, "colour" | "dash">[]): number[][] {
  const taken = new Set<string>();
  return lines.map(({ colour, dash = [] }, at) => {
    const nameOf = (one: number[]) => `${(colour ?? at) % COLOURS}: ${one.join()}`;
    const found = [dash, ...DASHES].find((one) => !taken.has(nameOf(one))) ?? dash;
    taken.add(nameOf(found));
    return found;
  });
}

// Distance of two curves over names, and of the outermost ones, where names have the distance 1.
const BESIDE = 0.16;
const MOST_BESIDE = 0.9;

/** How far a curve over names is beside the name, so that curves do not hide each other. */
export function beside(place: number, count: number): number {
  return Math.min(BESIDE, MOST_BESIDE / count) * (place - (count - 1) / 2);
}
