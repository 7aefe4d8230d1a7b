// Shapes that both drawings have.

/** Corners of a star with five points. */
export function starPoints(x: number, y: number, radius: number): [number, number][] {
  return Array.from({ length: 10 }, (_, corner) => {
    const angle = (Math.PI * corner) / 5 - Math.PI / 2;
    const reach = corner % 2 ? 0.42 * radius : radius;
    return [x + reach * Math.cos(angle), y + reach * Math.sin(angle)];
  });
}
