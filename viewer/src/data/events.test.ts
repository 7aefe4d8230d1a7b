import { expect, test } from "vitest";
import { nearest } from "./events";

test("events near an instant are the nearest ones, that of the instant first", () => {
  const events = Array.from({ length: 100 }, (_, at) => ({ time: at, kind: "traffic", text: "" }));
  for (const now of [0, 3, 50, 99]) {
    const { events: near, more } = nearest(events, now, 20, 4);
    const distances = events.map(({ time }) => Math.abs(time - now)).sort((a, b) => a - b);
    expect(near[0].time).toBe(now);
    expect(near.map(({ time }) => Math.abs(time - now))).toEqual(distances.slice(0, 4));
    expect(near.length + more).toBe(distances.filter((distance) => distance <= 20).length);
  }
  expect(nearest(events, 200, 20, 4)).toEqual({ events: [], more: 0 });
});
