import { expect, test } from "vitest";
import { exactInstant } from "./units";

test("an exact instant has all picoseconds and no exponent", () => {
  const texts = [0, 1, 1000, 180_000_000, 400e6, 1e9, 10e9, 12_345_678_901].map(exactInstant);
  expect(texts).toEqual(["0", "0.000000001", "0.000001", "0.18", "0.4", "1", "10", "12.345678901"]);
});
