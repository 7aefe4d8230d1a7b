// Marks, which both drawings have: their sizes and their corners.

/** Which part of its square a mark paints. */
export const enum Kind {
  Disc,
  Ring,
  Square,
  Star,
  Cross,
}

/** Look of a mark: radius in units of the map, and the least and the largest in pixels. */
export interface Look {
  kind: Kind;
  radius: number;
  least: number;
  most: number;
  /** Times `thickness`, what the largest is at least: of marks that strokes must not hide. */
  grown: number;
}

/** Widest branch of a tree, in pixels times `thickness`. */
export const TRUNK = 7;
/** Radius of the corners between the points of a star, as a share of that of the points. */
export const STAR_WAIST = 0.42;

export const LOOKS = {
  host: { kind: Kind.Disc, radius: 0.07, least: 0.9, most: 6, grown: 0 },
  switch: { kind: Kind.Square, radius: 0.15, least: 1.5, most: 9, grown: 0 },
  contributor: { kind: Kind.Disc, radius: 0.105, least: 1.8, most: 7.5, grown: 0 },
  victim: { kind: Kind.Ring, radius: 0.125, least: 2.6, most: 9, grown: 0 },
  // A star covers the end of the widest branch.
  root: { kind: Kind.Star, radius: 0.26, least: 9, most: 13, grown: 9.5 },
  down: { kind: Kind.Cross, radius: 0.2, least: 6, most: 11, grown: 0 },
  ring: { kind: Kind.Ring, radius: 0.34, least: 11, most: 16, grown: 12 },
} satisfies Record<string, Look>;

/** Pixels around a star that have the colour of the page, so that it is seen on a branch of its own colour. */
export const HALO = 2;

/** Radius of a mark in pixels, if a unit of the map is `scale` of them. */
export function radiusOf(look: Look, scale: number): number {
  const most = Math.max(look.most, look.grown * thickness(scale));
  return Math.min(most, Math.max(look.least, look.radius * scale));
}

/** How much wider strokes are than at the first sight of a large map: lines grow, but slowly. */
export function thickness(scale: number): number {
  return Math.max(1, Math.sqrt(scale / 24));
}

/** Corners of a star with five points. */
export function starPoints(x: number, y: number, radius: number): [number, number][] {
  return Array.from({ length: 10 }, (_, corner) => {
    const angle = (Math.PI * corner) / 5 - Math.PI / 2;
    const reach = corner % 2 ? STAR_WAIST * radius : radius;
    return [x + reach * Math.cos(angle), y + reach * Math.sin(angle)];
  });
}
