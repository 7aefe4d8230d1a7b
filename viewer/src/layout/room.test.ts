import { expect, test } from "vitest";
import { roomOf } from "./room";

test("room is the distance to the nearest node of either kind", () => {
  const hosts = Float32Array.from({ length: 16 }, (_, at) => (at % 2 ? 0 : 1.5 * at));
  expect(roomOf([{ x: 0, y: 2 }], [hosts])).toEqual({ hosts: 2, switches: 2 });
  expect(roomOf([{ x: 0, y: 8 }], [hosts])).toEqual({ hosts: 3, switches: 8 });
});

test("a few crowded nodes, and those at one place, make no others small", () => {
  const row = Array.from({ length: 40 }, (_, at) => [4 * at, 0]);
  const hosts = Float32Array.from([...row, [0.1, 0], [4, 0]].flat());
  expect(roomOf([], [hosts]).hosts).toBeCloseTo(4);
});

test("the nearest of many is that of comparing all with all", () => {
  const places = Array.from({ length: 300 }, (_, at) => [(at * 37) % 101, (at * 53) % 89]);
  const away = places.map(([x, y], at) =>
    Math.min(
      ...places.flatMap(([a, b], other) => (other === at ? [] : [Math.hypot(a - x, b - y)])),
    ),
  );
  const expected = away.sort((a, b) => a - b)[30];
  expect(roomOf([], [Float32Array.from(places.flat())]).hosts).toBeCloseTo(expected, 4);
});
