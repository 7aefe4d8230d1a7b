import { expect, test } from "vitest";
import { colourPlaces, MOST_COLOURS } from "./colouring";
import type { Lifetime } from "./trees";

const life = (lineage: number, birth: number, death: number) =>
  ({ lineage, birth, death }) as Lifetime;

test("an ended lineage frees its colour", () => {
  const lives = Array.from({ length: 20 }, (_, at) => life(at, 10 * at, 10 * at + 5));
  const places = colourPlaces([...lives.keys()], lives);
  expect(places.size).toBe(20);
  expect(places.get(0)).toBe(0);
  expect(places.get(MOST_COLOURS)).toBe(0);
});

test("no two lineages that stand at one time share a colour, and the largest have one", () => {
  // A linear congruential generator, so that the example is always the same.
  let seed = 7;
  const draw = (most: number) => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % most;
  const lives = Array.from({ length: 200 }, (_, at) => {
    const birth = draw(1000);
    return life(at, birth, birth + draw(150));
  });
  const places = colourPlaces([...lives.keys()], lives);
  for (const one of lives)
    for (const other of lives) {
      const meet = one.birth <= other.death && other.birth <= one.death;
      if (one !== other && meet && places.has(one.lineage))
        expect(places.get(one.lineage)).not.toBe(places.get(other.lineage));
    }
  // One without a colour meets all colours at one time.
  for (const one of lives.filter(({ lineage }) => !places.has(lineage))) {
    const at = lives.map(({ birth }) => Math.max(birth, one.birth));
    const most = Math.max(
      ...at.map(
        (now) =>
          lives.filter(
            (other) =>
              places.has(other.lineage) &&
              other.birth <= now &&
              other.death >= now &&
              now <= one.death,
          ).length,
      ),
    );
    expect(most).toBe(MOST_COLOURS);
  }
});
