import { expect, test } from "vitest";
import { clear, type Box } from "./overlap";

test("a name stays if it is clear of those before it that stay", () => {
  const boxes: Box[] = [
    [0, 0, 10, 10],
    [5, 5, 15, 15],
    [10, 0, 20, 10],
    [12, 12, 18, 18],
  ];
  // The second covers the first; the fourth covers only the second, which is not there.
  expect(clear(boxes)).toEqual([true, false, true, true]);
});

test("no two names that stay cover each other, and each that goes covers one that stays", () => {
  const boxes = Array.from({ length: 200 }, (_, index): Box => {
    const [x, y] = [(index * 37) % 300, (index * 53) % 200];
    return [x, y, x + 40, y + 12];
  });
  const kept = clear(boxes);
  const covers = (a: Box, b: Box) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
  boxes.forEach((box, index) => {
    const others = boxes.filter((_, at) => kept[at] && at < index && covers(box, boxes[at]));
    expect(others.length === 0).toBe(kept[index]);
  });
});
