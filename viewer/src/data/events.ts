export interface Event {
  time: number;
  kind: string;
  text: string;
}

export interface NearEvents {
  events: Event[];
  more: number;
}

/** Events that are no further from an instant than some reach: so many of them, the nearest first. */
export function nearest(
  events: readonly Event[],
  now: number,
  reach: number,
  most: number,
): NearEvents {
  const away = (event: Event) => Math.abs(event.time - now);
  const near = events
    .filter((event) => away(event) <= reach)
    .sort((one, other) => away(one) - away(other));
  return { events: near.slice(0, most), more: Math.max(0, near.length - most) };
}
