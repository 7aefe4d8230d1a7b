// The bar of time: number of trees, bytes in them and events; the instant, playing, and a marked window.
// Unlike the panels, it follows the instant at each frame, as the map does.

import { useComputed } from "@preact/signals";
import * as state from "../state";
import { partOf } from "../data/cut";
import { nearest, type NearEvents } from "../data/events";
import { upperBound } from "../data/search";
import {
  clock,
  count,
  exactInstant,
  inClock,
  instant,
  isolated,
  plainInstant,
} from "../data/units";
import { liveStatus } from "../live/connection";
import { Follow } from "../live/follow";
import { Chart, type Line } from "./chart";

const SPEEDS = [5, 10, 20, 40];
const MOST_EVENTS = 4;
/** Windows that are shorter, in the unit of the clock, are shown to the picosecond. */
const TINY = 1e-3;

export function TimeBar() {
  const lines = useComputed<Line[]>(() => barLines());
  const events = useComputed(() =>
    state.run.value.events.map((event) => ({ x: event.time / clock.ps, text: event.text })),
  );
  const all = state.instants.value;
  const index = Math.max(0, upperBound(all, state.time.value) - 1);
  const marked = state.marked.value;
  const hasForest = state.runs.value.some((run) => run.facts.tables.includes("forest"));
  const nothing = all.length === 0;
  const near = nearEvents();
  const ended = state.runs.value.filter((run) => run.facts.duration_ps < state.time.value);
  const other = state.run.value.otherTrees(state.time.value);
  return (
    <footer class="time" aria-label="Time">
      <div class="controls">
        <button
          type="button"
          disabled={nothing}
          aria-label="One sample back"
          onClick={() => state.step(-1)}
        >
          ◀
        </button>
        <button
          type="button"
          class="play"
          disabled={nothing}
          aria-pressed={state.playing.value}
          onClick={() => play()}
        >
          {state.playing.value ? "Pause" : "Play"}
        </button>
        <button
          type="button"
          disabled={nothing}
          aria-label="One sample on"
          onClick={() => state.step(1)}
        >
          ▶
        </button>
        <label>
          <span class="hidden">Speed</span>
          <select
            value={state.speed.value}
            onChange={(event) => (state.speed.value = Number(event.currentTarget.value))}
          >
            {SPEEDS.map((speed) => (
              <option key={speed} value={speed}>
                {speed} samples/s
              </option>
            ))}
          </select>
        </label>
        <span class="clock">
          <output class="now" aria-live="off">
            t = {instant(state.time.value)}
          </output>
          {other !== null && <small>trees of {instant(other)}</small>}
        </span>
        <Follow />
        <WindowControls marked={marked} />
      </div>
      <input
        class="slider"
        type="range"
        aria-label="Instant"
        aria-valuetext={instant(state.time.value)}
        min={0}
        max={Math.max(0, all.length - 1)}
        step={1}
        value={index}
        disabled={nothing}
        onInput={(event) => {
          state.playing.value = false;
          state.time.value = all[Number(event.currentTarget.value)];
        }}
      />
      <Chart
        title="Congestion over time"
        xLabel={clock.name}
        yLabel={state.run.value.facts.diagnosis ? "Gbit/s" : "MB"}
        rightLabel="trees"
        height={96}
        lines={lines.value}
        none={hasForest ? "No sample of the trees is in this run." : undefined}
        at={state.time.value / clock.ps}
        range={inClock(state.whole.value)}
        holds
        shaded={marked && [marked[0] / clock.ps, marked[1] / clock.ps]}
        events={events.value}
        onPick={(x) => (state.time.value = nearestInstant(x * clock.ps))}
        onRange={([from, to]) => state.mark(from * clock.ps, to * clock.ps)}
      />
      <p class="events" aria-live="polite">
        {[
          ...ended.map(({ facts }) => `${facts.label} ended at ${instant(facts.duration_ps)}`),
          ...near.events.map((event) => `${instant(event.time)}: ${event.text}`),
          ...(near.more ? [`${count(near.more)} more near this instant`] : []),
        ]
          .map(isolated)
          .join("; ")}
      </p>
      <LeftOut />
    </footer>
  );
}

function LeftOut() {
  const run = state.run.value;
  const part = partOf(run, "events", run.events.length);
  if (part === null) return null;
  const last = instant(run.events[run.events.length - 1].time);
  return (
    <p class="none">
      This page has {part} events, up to {last}; a Perfetto trace has all.
    </p>
  );
}

function WindowControls({ marked }: { marked: [number, number] | null }) {
  const [from, to] = state.span.value;
  const isTiny = to - from < TINY * clock.ps;
  const shown = (value: number) => (isTiny ? exactInstant(value) : plainInstant(value / clock.ps));
  const field = (name: string, value: number, change: (ps: number) => void) => (
    <label>
      {name}
      <input
        type="number"
        min={0}
        max={state.duration.value / clock.ps}
        step="any"
        value={shown(value)}
        onChange={(event) => {
          change(Number(event.currentTarget.value) * clock.ps);
          // What cannot be marked leaves the window, and the fields, as they are.
          event.currentTarget.value = shown(state.span.value[name === "from" ? 0 : 1]);
        }}
      />
    </label>
  );
  return (
    <fieldset class="window">
      <legend class="hidden">Window that panels sum over, in {clock.name}</legend>
      {field("from", from, (ps) => state.mark(ps, to))}
      {field("to", to, (ps) => state.mark(from, ps))}
      <span>{clock.name}</span>
      <button type="button" disabled={!marked} onClick={() => (state.marked.value = null)}>
        Whole run
      </button>
    </fieldset>
  );
}

function play(): void {
  const all = state.instants.value;
  if (!state.playing.value && state.time.value >= all[all.length - 1]) state.time.value = all[0];
  state.playing.value = !state.playing.value;
}

function nearestInstant(ps: number): number {
  const all = state.instants.value;
  return all.reduce(
    (best, one) => (Math.abs(one - ps) < Math.abs(best - ps) ? one : best),
    all[0] ?? ps,
  );
}

/** Trees and bytes in trees of each run; without trees, what waits in all ports. */
function barLines(): Line[] {
  const several = state.runs.value.length === 2;
  const shown = several ? state.runs.value : [state.run.value];
  return shown.flatMap((run, index) => {
    if (!run.treeTimes.length) return [];
    const x = run.treeTimes.map((ps) => ps / clock.ps);
    const name = run.facts.diagnosis ? "Gbit/s lost in trees" : "MB in trees";
    const scale = run.facts.diagnosis ? 1 : 1e6;
    const suffix = several ? `, ${run.facts.label}` : "";
    const dash = index > 0 ? [5, 4] : undefined;
    return [
      { label: `trees${suffix}`, x, y: run.treeCount, colour: 2, dash, steps: true, right: true },
      {
        label: `${name}${suffix}`,
        x,
        y: Array.from(run.treeBytes, (amount) => amount / scale),
        colour: 1,
        dash,
      },
    ];
  });
}

/** Events within a fiftieth of the run around the instant, the nearest first; of a live fabric, the last ones. */
function nearEvents(): NearEvents {
  const events = state.run.value.events;
  const now = state.time.value;
  if (liveStatus.value !== null)
    return { events: events.filter((event) => event.time <= now).slice(-MOST_EVENTS), more: 0 };
  return nearest(events, now, state.duration.value / 50, MOST_EVENTS);
}
