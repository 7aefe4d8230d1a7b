/** Which part of its square a mark paints. */
export const enum Kind {
  Disc,
  Ring,
  Square,
  Star,
  Cross,
}

/** Look of a mark: radius as a share of the room of its node, and the least and the largest in pixels. */
export interface Look {
  kind: Kind;
  share: number;
  least: number;
  most: number;
}

/** Widest branch of a tree, in pixels times `thickness`. */
export const TRUNK = 7;
/** Radius of the corners between the points of a star, as a share of that of the points. */
export const STAR_WAIST = 0.42;

export const LOOKS = {
  host: { kind: Kind.Disc, share: 0.27, least: 0.9, most: 9 },
  switch: { kind: Kind.Square, share: 0.3, least: 1.5, most: 12 },
  contributor: { kind: Kind.Disc, share: 0.36, least: 1.8, most: 11 },
  victim: { kind: Kind.Ring, share: 0.43, least: 2.6, most: 13 },
  // A star covers the end of the widest branch, and no neighbour that has a radius of half of the room.
  root: { kind: Kind.Star, share: 0.5, least: 9, most: 20 },
  down: { kind: Kind.Cross, share: 0.4, least: 6, most: 11 },
  ring: { kind: Kind.Ring, share: 0.62, least: 11, most: 25 },
} satisfies Record<string, Look>;

/** Pixels around a star that have the colour of the page, so that it is seen on a branch of its own colour. */
export const HALO = 2;

/** Radius of a mark in pixels, where its node has `room` of them. */
export function radiusOf({ share, least, most }: Look, room: number): number {
  return Math.min(most, Math.max(least, share * room));
}

/** Pixels of a unit of a large map at first sight. */
const FIRST = 24;

/** Widening of strokes at `scale` pixels per unit: slow, and within the stars, for which hosts have `room` pixels. */
export function thickness(scale: number, room: number): number {
  const { least } = LOOKS.root;
  return Math.max(1, Math.min(Math.sqrt(scale / FIRST), radiusOf(LOOKS.root, room) / least));
}

export function starPoints(x: number, y: number, radius: number): [number, number][] {
  return Array.from({ length: 10 }, (_, corner) => {
    const angle = (Math.PI * corner) / 5 - Math.PI / 2;
    const reach = corner % 2 ? STAR_WAIST * radius : radius;
    return [x + reach * Math.cos(angle), y + reach * Math.sin(angle)];
  });
}
