import { expect, test } from "vitest";
import type { Run } from "../data/run";
import { placesOf } from "./places";

/** As much of a run as places need: names, and the generator. */
function fabric(generator: string, names: string[]): Run {
  return {
    nodes: names.map((name) => ({ name })),
    facts: { fabric: { generator } },
  } as unknown as Run;
}

function placed(generator: string, names: string[]) {
  const places = placesOf(
    fabric(generator, names),
    names.map((_, node) => node),
  )!;
  return names.map((_, node) => places.at.get(node)!);
}

const distance = ([x0, y0]: number[], [x1, y1]: number[]) => Math.hypot(x1 - x0, y1 - y0);
const two = (value: number) => String(value).padStart(2, "0");
const product = (...sizes: number[]) =>
  sizes.reduce<number[][]>(
    (all, size) => all.flatMap((one) => Array.from({ length: size }, (_, at) => [...one, at])),
    [[]],
  );

test("hosts around two switches never overlap", () => {
  const fabrics: [string, string[]][] = [
    ["dragonfly", product(9, 4).map(([g, s]) => `group-${two(g)}-switch-${two(s)}`)],
    ["dragonfly-plus", product(5, 4).map(([g, s]) => `group-${two(g)}-leaf-${two(s)}`)],
    ["slim-fly", product(2, 5, 5).map((at) => `switch-${at.join("-")}`)],
    ["torus", product(4, 4, 4).map((at) => `switch-${at.join("-")}`)],
    ["hyper-x", product(3, 3, 3, 3).map((at) => `switch-${at.join("-")}`)],
    ["ring", product(7).map((at) => `switch-${at.join("-")}`)],
  ];
  for (const [generator, names] of fabrics) {
    const places = placed(generator, names);
    places.forEach((one, at) => {
      for (const other of places.slice(at + 1)) {
        expect(distance(one, other), generator).toBeGreaterThan(1.5);
      }
    });
  }
});

test("switches of a group are nearer to each other than to any other group", () => {
  const names = product(9, 4).map(([g, s]) => `group-${two(g)}-switch-${two(s)}`);
  const places = placed("dragonfly", names);
  const group = (at: number) => Math.floor(at / 4);
  places.forEach((one, at) => {
    const away = places.map((other) => distance(one, other));
    const own = away.filter((_, other) => group(other) === group(at));
    const others = away.filter((_, other) => group(other) !== group(at));
    expect(Math.max(...own)).toBeLessThan(Math.min(...others));
  });
});

test("a fabric whose names have no coordinates is placed by forces", () => {
  expect(placesOf(fabric("torus", ["a", "b"]), [0, 1])).toBeNull();
  expect(placesOf(fabric("fat-tree-648", ["leaf-00"]), [0])).toBeNull();
});
