// Where names are: next to what they name, clear of each other and of marks.

import type { Camera } from "./camera";
import type { Label, Mark, Scene } from "./scene";
import { Kind, LOOKS, radiusOf, type Look } from "./shapes";

/** A rectangle in pixels: left, top, right, bottom. */
export type Box = [number, number, number, number];

/** Pixels of the room of a host below which names cannot be clear of hosts. */
const LEAST_ROOM = 10;
/** Pixels between a mark and its name. */
const APART = 2;
/** Pixels of the cells in which boxes are looked up. */
const CELL = 64;

export interface View {
  camera: Camera;
  width: number;
  height: number;
}

/** A name, and the middle of its upper edge, in pixels. */
export interface Placed {
  label: Label;
  x: number;
  y: number;
}

/** Marks that names keep clear of: of a map with crowded hosts only those that stand out. */
export function obstacles(scene: Scene, { camera, width, height }: View): Box[] {
  const scale = 2 ** camera.zoom;
  const boxes: Box[] = [];
  const add = (marks: readonly Mark[], isRoomy: boolean) => {
    for (const { x, y, look, room } of marks) {
      if (isRoomy && room * scale < LEAST_ROOM) return;
      const [px, py] = [(x - camera.x) * scale + width / 2, (y - camera.y) * scale + height / 2];
      const radius = radiusOf(look, room * scale);
      if (px < -radius || py < -radius || px > width + radius || py > height + radius) continue;
      boxes.push([px - radius, py - radius, px + radius, py + lowest(look, radius)]);
    }
  };
  for (const marks of [scene.hosts, scene.switches, scene.senders, scene.victims]) add(marks, true);
  add(
    scene.signs.filter(({ look }) => look !== LOOKS.ring),
    false,
  );
  return boxes;
}

/** Below what they name, above, or beside. Those of trees come first and cover fewest marks; others cover none. */
export function placed(
  labels: readonly Label[],
  marks: readonly Box[],
  { camera, width, height }: View,
  measure: (label: Label) => number,
  line: number,
): Placed[] {
  const scale = 2 ** camera.zoom;
  const [ofMarks, ofNames] = [new Boxes(marks), new Boxes([])];
  const found: Placed[] = [];
  for (const label of labels) {
    const x = (label.x - camera.x) * scale + width / 2;
    const y = (label.y - camera.y) * scale + height / 2;
    if (x < -50 || y < -50 || x > width + 50 || y > height + 20) continue;
    const half = measure(label) / 2 + 2;
    const radius = radiusOf(label.of, label.room * scale);
    const aside = radius + APART + half;
    // At the edge of the view a name is not quite in the middle.
    const middle = isWithin(x, width)
      ? Math.min(Math.max(x, half), Math.max(half, width - half))
      : x;
    const below = [middle, y + lowest(label.of, radius) + APART];
    const above = [middle, y - radius - APART - line];
    const beside = [
      [x + aside, y - line / 2],
      [x - aside, y - line / 2],
    ];
    const choices = (label.isAbove ? [above, ...beside, below] : [below, ...beside, above]).map(
      ([middle, top]): Box => [middle - half, top, middle + half, top + line],
    );
    // A name that is partly out of sight is the last choice.
    const isInside = (box: Box) =>
      box[0] >= 0 && box[2] <= width && box[1] >= 0 && box[3] <= height;
    const free = choices.filter((box) => !ofNames.touching(box));
    const costs = free.map((box) => 2 * ofMarks.touching(box) + (isInside(box) ? 0 : 1));
    const least = Math.min(...costs);
    if (!free.length || (least > 1 && !label.bold)) continue;
    const box = free[costs.indexOf(least)];
    ofNames.add(box);
    found.push({ label, x: (box[0] + box[2]) / 2, y: box[1] });
  }
  return found;
}

const isWithin = (place: number, most: number) => place >= 0 && place <= most;

/** How far a mark of some radius reaches down: the lower points of a star end above its lowest reach. */
function lowest({ kind }: Look, radius: number): number {
  return kind === Kind.Star ? Math.cos(Math.PI / 5) * radius : radius;
}

/** Boxes by the cells of a grid that they touch. */
class Boxes {
  private readonly cells = new Map<string, Box[]>();

  constructor(boxes: readonly Box[]) {
    for (const box of boxes) this.add(box);
  }

  add(box: Box): void {
    for (const cell of cellsOf(box)) {
      const own = this.cells.get(cell);
      if (own) own.push(box);
      else this.cells.set(cell, [box]);
    }
  }

  /** How many of them a box touches. */
  touching(box: Box): number {
    const found = new Set<Box>();
    for (const cell of cellsOf(box))
      for (const other of this.cells.get(cell) ?? []) if (touches(box, other)) found.add(other);
    return found.size;
  }
}

export function touches(one: Box, other: Box): boolean {
  return one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3];
}

function* cellsOf([left, top, right, bottom]: Box): Iterable<string> {
  for (let x = Math.floor(left / CELL); x <= Math.floor(right / CELL); x++)
    for (let y = Math.floor(top / CELL); y <= Math.floor(bottom / CELL); y++) yield `${x} ${y}`;
}
