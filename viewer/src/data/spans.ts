import type { Run } from "./run";
import { samplesWithin } from "./series";
import { instant } from "./units";

export type Span = [number, number];

/** The part of a window, or the whole, that a run covers; of a window after its end, the window. */
export function spanOf(run: Run, window: Span | null): Span {
  const whole: Span = [run.start, run.facts.duration_ps];
  if (!window) return whole;
  return isAfter(run, window) ? window : [window[0], Math.min(window[1], whole[1])];
}

/** What totals, receive rates and latencies of a run are of: from the end of the warm-up, if the run goes on after it. */
export function measuredSpan(run: Run): Span {
  const { warm_up_ps: warmUp, duration_ps: end } = run.facts;
  return [end > warmUp ? warmUp : 0, end];
}

export function spanWords([from, to]: Span): string {
  return `${instant(from)} to ${instant(to)}`;
}

export function isAfter(run: Run, [from]: Span): boolean {
  return from >= run.facts.duration_ps;
}

/** Why there is nothing of a run in a window, or null if some sample is in it. */
export function whyEmpty(run: Run, times: ArrayLike<number>, window: Span | null): string | null {
  if (!window || !times.length) return null;
  if (isAfter(run, window))
    return `${run.facts.label} ended at ${instant(run.facts.duration_ps)}, before this window.`;
  const [first, last] = samplesWithin(times, window);
  return last < first ? `${run.facts.label} has no sample in this window.` : null;
}
