import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Detail } from "./detail";

/** What waits for the browser's next painting. */
let waiting: ((now: number) => void)[] = [];

beforeEach(() => {
  waiting = [];
  vi.useFakeTimers();
  vi.stubGlobal("requestAnimationFrame", (work: (now: number) => void) => waiting.push(work));
  vi.stubGlobal("cancelAnimationFrame", () => (waiting = []));
});

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

/** The browser can paint at an instant. */
function free(now: number): void {
  for (const work of waiting.splice(0)) work(now);
}

/** Draw at some instants, each of them as soon as the frame before is on the screen. */
function drawn(detail: Detail, instants: number[]): number[] {
  return instants.map((now) => {
    free(now);
    return detail.at(now);
  });
}

test("quick frames are drawn finely", () => {
  const detail = new Detail(() => {
    throw new Error("nothing to redraw");
  });
  expect(drawn(detail, [0, 16, 32, 48])).toEqual([1, 1, 1, 1]);
});

test("slow frames are drawn coarsely, and finely again when the map rests", () => {
  let redrawn = 0;
  const detail = new Detail(() => redrawn++);
  expect(drawn(detail, [0, 100, 200, 230])).toEqual([1, 1, 0.5, 0.5]);
  free(240);
  vi.advanceTimersByTime(170);
  expect(redrawn).toBe(0);
  vi.advanceTimersByTime(20);
  expect(redrawn).toBe(1);
  expect(detail.at(430)).toBe(1);
});

test("frames that take longer than a rest are drawn coarsely, too, without a fine one between them", () => {
  let redrawn = 0;
  const detail = new Detail(() => redrawn++);
  expect(drawn(detail, [0, 500, 1000])).toEqual([1, 1, 0.5]);
  vi.advanceTimersByTime(500);
  expect(redrawn).toBe(0);
  expect(drawn(detail, [1500])).toEqual([0.5]);
});

test("single frames after a rest are drawn finely", () => {
  const detail = new Detail(() => {});
  for (const now of [0, 1000, 2000, 3000]) {
    expect(detail.at(now)).toBe(1);
    free(now + 100);
  }
});
