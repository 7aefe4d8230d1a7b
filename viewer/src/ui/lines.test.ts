import { expect, test } from "vitest";
import { areWhole, coloursOf, dashesOf, overlaps } from "./lines";

const exact = (x: number, y: number): [number, number] => [x, y];

const line = (...y: (number | null)[]) => ({ label: y.join(), x: [0, 1, 2, 3], y });

test("parts and points of several lines have all of their colours", () => {
  const dotted = { ...line(5, 9, 3, 3), points: "on" as const, colour: 7 };
  const { paths, points } = overlaps(
    [
      line(1, 2, 3, 3),
      line(5, 4, 3, 3),
      line(1, 2, 3, 0),
      { ...line(5, 9, 8, 3), points: "on" as const },
      dotted,
    ],
    exact,
  );
  const parts = paths.map(({ places, colours }) => [places.join(" "), colours.join()]);
  expect(parts).toEqual([
    ["0,1 1,2 2,3", "0,2"],
    ["2,3 3,3", "0,1,7"],
    ["0,5 1,9", "3,7"],
  ]);
  expect(points).toEqual([
    { place: [0, 5], colours: [3, 7] },
    { place: [1, 9], colours: [3, 7] },
    { place: [3, 3], colours: [3, 7] },
  ]);
});

test("values that are not seen apart are at one place", () => {
  const lines = [line(1, 2, 3, 4), line(1.004, 1.996, 3.02, 4.5)];
  const { paths, points } = overlaps(lines, (x, y) => [x, 100 * y]);
  expect(paths).toEqual([
    {
      places: [
        [0, 100],
        [1, 200],
      ],
      colours: [0, 1],
    },
  ]);
  expect(points).toEqual([]);
});

test("curves have the colours of the figures, each its own", () => {
  const named = (...labels: string[]) => coloursOf(labels.map((label) => ({ label })));
  expect(named("20 % V, CC off", "20 % V, CC on")).toEqual([1, 0]);
  expect(named("10 moves", "CC on", "50 moves, CC on", "CC off")).toEqual([2, 0, 3, 1]);
  expect(named("a", "b", "c", "d", "e", "f", "g")).toEqual([0, 1, 2, 3, 4, 5, 0]);
  const flows = ["#0072B2", "#009E73", "#E69F00", "#CC79A7"];
  expect(coloursOf(flows.map((colour) => ({ label: "", colour })))).toEqual([0, 2, 1, 3]);
});

test("a colour that a figure gives to two curves is that of both, the second dashed", () => {
  const pair = ["#0072B2", "#7A35D8", "#0072B2"].map((colour) => ({ label: "", colour }));
  const colours = coloursOf([...pair, { label: "CC on" }]);
  expect(colours.slice(0, 3)).toEqual([0, 4, 0]);
  expect([0, 4]).not.toContain(colours[3]);
  const dashes = dashesOf(colours.map((colour) => ({ colour })));
  expect(dashes.map((dash) => dash.length > 0)).toEqual([false, false, true, false]);
});

test("as many curves as there are schemes differ in colour or dashes", () => {
  const curves = Array.from({ length: 24 }, (_, at) => ({ label: `scheme ${at}` }));
  const colours = coloursOf(curves);
  const dashes = dashesOf(colours.map((colour) => ({ colour })));
  const looks = colours.map((colour, at) => `${colour} ${dashes[at].join()}`);
  expect(new Set(looks).size).toBe(24);
  // Without a colour of their own, lines have that of their place.
  const plain: { colour?: number }[] = curves.map(() => ({}));
  expect(new Set(dashesOf(plain.slice(0, 6)).map(String))).toEqual(new Set([""]));
  expect(new Set(dashesOf(plain).map((dash, at) => `${at % 6} ${dash.join()}`)).size).toBe(24);
});

test("dashes that tell two runs apart stay those of the second one", () => {
  const second = [5, 4];
  const both = [{ colour: 0 }, { colour: 1 }, { colour: 0, dash: second }];
  expect(dashesOf(both)).toEqual([[], [], second]);
  const [, , third] = dashesOf([{ colour: 0 }, { colour: 0, dash: second }, { colour: 6 }]);
  expect([[], second]).not.toContainEqual(third);
});

test("lines that only cross, and what a paper states, hide nothing", () => {
  const paper = { ...line(1, 2, 3, 3), points: "only" as const };
  const none = { paths: [], points: [] };
  expect(overlaps([line(1, 2, 1, 2), line(2, 2, 2, 2), paper], exact)).toEqual(none);
});

test("only few points at whole numbers have whole ticks", () => {
  expect(areWhole([1, 2, 5])).toBe(true);
  expect(areWhole([1, 2.5])).toBe(false);
  // A live page begins without samples.
  expect(areWhole([])).toBe(false);
  expect(areWhole(Array.from({ length: 50 }, (_, at) => at))).toBe(false);
});
