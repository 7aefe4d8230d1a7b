// Marks are as large as the distances between nodes allow.

export interface Room {
  hosts: number;
  switches: number;
}

/** The part of the nodes of a kind that may have less room: those of few crowded places make no others small. */
const CROWDED = 0.1;
/** Nodes of a smaller distance are at one place. */
const SAME = 1e-4;

export function roomOf(
  switches: readonly { x: number; y: number }[],
  hosts: Iterable<Float32Array>,
): Room {
  const places: [x: number, y: number, isHost: boolean][] = switches.map(({ x, y }) => [
    x,
    y,
    false,
  ]);
  for (const one of hosts)
    for (let at = 0; at < one.length; at += 2) places.push([one[at], one[at + 1], true]);
  places.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const found: Record<keyof Room, number[]> = { hosts: [], switches: [] };
  places.forEach(([, , isHost], at) => {
    const nearest = Math.min(toOne(places, at, 1), toOne(places, at, -1));
    if (nearest < Infinity) found[isHost ? "hosts" : "switches"].push(nearest);
  });
  const all = lowest([...found.hosts, ...found.switches]) ?? 1;
  return { hosts: lowest(found.hosts) ?? all, switches: lowest(found.switches) ?? all };
}

/** Distance to the nearest place before or after one, in the order of x. */
function toOne(places: readonly [number, number, boolean][], from: number, step: 1 | -1): number {
  const [x, y] = places[from];
  let nearest = Infinity;
  for (let at = from + step; at >= 0 && at < places.length; at += step) {
    const [dx, dy] = [places[at][0] - x, places[at][1] - y];
    if (Math.abs(dx) >= nearest) break;
    const distance = Math.hypot(dx, dy);
    if (distance > SAME) nearest = Math.min(nearest, distance);
  }
  return nearest;
}

function lowest(distances: number[]): number | undefined {
  return distances.sort((a, b) => a - b)[Math.floor(CROWDED * distances.length)];
}
