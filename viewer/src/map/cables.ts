import { curve, type Layout } from "../layout/layout";

export interface Cables {
  length: number;
  /** Start and end of each piece: x0, y0, x1, y1. */
  ends: Float32Array;
  of: Uint32Array;
}

/** Cut the cables of some ports into pieces, in the order of the ports. */
export function cablesOf(layout: Layout, rows: readonly number[], pieces: number): Cables {
  if (pieces <= 1) return straight(layout, rows);
  return piecesOf(rows.map((row) => ({ row, line: curve(layout, row, pieces) })));
}

/** Cables of one piece each: of large fabrics, without an object for each of them. */
function straight({ lines }: Layout, rows: readonly number[]): Cables {
  const ends = new Float32Array(4 * rows.length);
  rows.forEach((row, at) => ends.set(lines.subarray(4 * row, 4 * row + 4), 4 * at));
  return { length: rows.length, ends, of: Uint32Array.from(rows) };
}

/** Where the pieces of each port start, of so many ports whose cables are in order. */
export function firstsOf({ of }: Cables, ports: number): Uint32Array {
  const firsts = new Uint32Array(ports + 1);
  for (const row of of) firsts[row + 1]++;
  for (let row = 0; row < ports; row++) firsts[row + 1] += firsts[row];
  return firsts;
}

/** The pieces of some ports, in their order. */
export function picked(all: Cables, firsts: Uint32Array, rows: Uint32Array): Cables {
  const length = rows.reduce((sum, row) => sum + firsts[row + 1] - firsts[row], 0);
  const ends = new Float32Array(4 * length);
  const of = new Uint32Array(length);
  let at = 0;
  for (const row of rows) {
    for (let piece = firsts[row]; piece < firsts[row + 1]; piece++, at++) {
      for (let part = 0; part < 4; part++) ends[4 * at + part] = all.ends[4 * piece + part];
      of[at] = row;
    }
  }
  return { length, ends, of };
}

/** Points of a port's cable, as many for a straight one as for a curve. */
export function cut(layout: Layout, row: number, pieces: number): [number, number][] {
  const line = curve(layout, row, pieces);
  if (line.length > 2) return line;
  const [[x0, y0], [x1, y1]] = line;
  return Array.from({ length: pieces + 1 }, (_, at) => {
    const part = at / pieces;
    return [x0 + part * (x1 - x0), y0 + part * (y1 - y0)];
  });
}

export function joined(first: Cables, second: Cables): Cables {
  if (!second.length) return first;
  const ends = new Float32Array(4 * (first.length + second.length));
  ends.set(first.ends);
  ends.set(second.ends, 4 * first.length);
  const of = new Uint32Array(first.length + second.length);
  of.set(first.of);
  of.set(second.of, first.length);
  return { length: of.length, ends, of };
}

export function piecesOf(cables: { row: number; line: [number, number][] }[]): Cables {
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
export function scattered(values: readonly number[]): number[] {
  const key = (index: number) => (index * 0.6180339887498949) % 1;
  return Array.from(values.keys())
    .sort((a, b) => key(a) - key(b))
    .map((index) => values[index]);
}

export function lengthOf({ ends }: Cables): number {
  let sum = 0;
  for (let at = 0; at < ends.length; at += 4) {
    sum += Math.hypot(ends[at + 2] - ends[at], ends[at + 3] - ends[at + 1]);
  }
  return sum;
}
