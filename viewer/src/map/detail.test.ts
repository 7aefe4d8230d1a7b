import { expect, test, vi } from "vitest";
import { Detail } from "./detail";

test("quick frames are drawn finely", () => {
  const detail = new Detail(() => {
    throw new Error("nothing to redraw");
  });
  expect([0, 16, 32, 48].map((now) => detail.at(now))).toEqual([1, 1, 1, 1]);
});

test("slow frames are drawn coarsely, and finely again when the map rests", () => {
  vi.useFakeTimers();
  let redrawn = 0;
  const detail = new Detail(() => redrawn++);
  expect([0, 100, 200, 230].map((now) => detail.at(now))).toEqual([1, 1, 0.5, 0.5]);
  vi.advanceTimersByTime(170);
  expect(redrawn).toBe(0);
  vi.advanceTimersByTime(20);
  expect(redrawn).toBe(1);
  expect(detail.at(420)).toBe(1);
  vi.useRealTimers();
});

test("single frames after a rest are drawn finely", () => {
  const detail = new Detail(() => {});
  expect([0, 1000, 2000, 3000].map((now) => detail.at(now))).toEqual([1, 1, 1, 1]);
});
