import { expect, test } from "vitest";
import { exactInstant, isolated } from "./units";

test("an exact instant has all picoseconds and no exponent", () => {
  const texts = [0, 1, 1000, 180_000_000, 400e6, 1e9, 10e9, 12_345_678_901].map(exactInstant);
  expect(texts).toEqual(["0", "0.000000001", "0.000001", "0.18", "0.4", "1", "10", "12.345678901"]);
});

test("names leave the direction of the text around them as it is", () => {
  // Oracle: Unicode Standard Annex 9. A PDI ends what began after its FSI; no other character is left that begins more.
  const [hebrew, override] = ["\u05d0\u05d1", "\u202e"];
  expect(isolated(`${override}RTL:1 > host-0001`)).toBe("\ufffdRTL:1 > host-0001");
  expect(isolated(`${hebrew}:12, to ${hebrew}; a`)).toBe(
    `\u2068${hebrew}\u2069:12, to \u2068${hebrew}\u2069; a`,
  );
  expect(isolated(`\u2069${override}${hebrew}:1`)).toBe(`\u2068\ufffd\ufffd${hebrew}\u2069:1`);
  expect(isolated("leaf-01:3 > \u00e9\u4e2d")).toBe("leaf-01:3 > \u00e9\u4e2d");
});
