// Names that do not cover each other.

/** A rectangle in pixels: left, top, right, bottom. */
export type Box = [number, number, number, number];

/** Which boxes stay if each must be clear of those before it that stay. */
export function clear(boxes: readonly Box[]): boolean[] {
  const kept: Box[] = [];
  return boxes.map((box) => {
    const isFree = kept.every((other) => !touches(box, other));
    if (isFree) kept.push(box);
    return isFree;
  });
}

function touches(one: Box, other: Box): boolean {
  return one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3];
}
