import { expect, test } from "vitest";
import { placed, touches, type Box } from "./labels";
import type { Label } from "./scene";
import { LOOKS, radiusOf } from "./shapes";

const VIEW = { camera: { x: 0, y: 0, zoom: 0 }, width: 400, height: 300 };
const [WIDTH, LINE, ROOM] = [50, 13, 40];

const label = (x: number, y: number, bold = false, isAbove = false): Label => ({
  ...{ x, y, text: "name", bold, isAbove },
  of: LOOKS.host,
  room: ROOM,
});

const write = (labels: Label[], marks: Box[] = []) =>
  placed(labels, marks, VIEW, () => WIDTH, LINE).map(({ x, y, label: one }) => ({
    x: x - VIEW.width / 2 - one.x,
    y: y - VIEW.height / 2 - one.y,
  }));

test("a name is below its mark, or above it, as far as there is room", () => {
  const radius = radiusOf(LOOKS.host, ROOM);
  expect(write([label(0, 0)])).toEqual([{ x: 0, y: radius + 2 }]);
  expect(write([label(0, 0, false, true)])).toEqual([{ x: 0, y: -radius - 2 - LINE }]);
  const [beside] = write([label(0, 0)], [[190, 165, 210, 170]]);
  expect(beside.x).toBeGreaterThan(radius);
});

test("a name at the edge of the view is moved into it", () => {
  const [{ x }] = write([label(-195, 0)]);
  expect(x - WIDTH / 2 - 195).toBeGreaterThanOrEqual(-200);
});

test("a name that would cover marks is left out, that of a tree covers as few as it can", () => {
  const around: Box[] = [
    [100, 100, 300, 148],
    [100, 152, 300, 200],
  ];
  expect(write([label(0, 0)], around)).toEqual([]);
  expect(write([label(0, 0, true)], around)).toHaveLength(1);
});

test("no two names cover each other", () => {
  const labels = Array.from({ length: 60 }, (_, at) =>
    label(((at * 37) % 300) - 150, ((at * 53) % 200) - 100),
  );
  const boxes = placed(labels, [], VIEW, () => WIDTH, LINE).map(({ x, y }): Box => [
    x - WIDTH / 2,
    y,
    x + WIDTH / 2,
    y + LINE,
  ]);
  expect(boxes.length).toBeGreaterThan(20);
  boxes.forEach((one, at) => {
    for (const other of boxes.slice(at + 1)) expect(touches(one, other)).toBe(false);
  });
});
