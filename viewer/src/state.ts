// What the reader has chosen. The address of the page holds it, so a view can be cited.

import { batch, computed, effect, signal } from "@preact/signals";
import type { Report } from "./data/report";
import type { Run } from "./data/run";
import { findFlow } from "./data/find";
import { upperBound } from "./data/search";
import { clock, exactInstant } from "./data/units";
import type { Selection } from "./data/selection";
import type { LayoutName } from "./layout/layout";
import { THEMES, type ColourBy, type ThemeName } from "./map/colours";
import type { Camera } from "./map/camera";

export type ThemeChoice = "auto" | ThemeName;

export type View = "report" | "map";

/** What the first view shows, if the page is a report. */
export const report = signal<Report | null>(null);
export const view = signal<View>("map");
/** Runs of the report behind the chosen point, and which of them is shown. */
export const chosen = signal<Chosen | null>(null);
export const shown = signal(-1);
export const openRun = signal<(place: number) => void>(() => {});

/** Key and measure of the curves of a sweep; null for the first ones. */
export const sweepKey = signal<string | null>(null);
export const sweepMeasure = signal<string | null>(null);

export interface Chosen {
  /** What the point is. */
  title: string;
  runs: number[];
  at: number;
}

export const runs = signal<Run[]>([]);
/** The run that panels show, of several. */
export const active = signal(0);
/** Whether the map is a drawing: the browser has no WebGL. */
export const isStill = signal(false);
export const time = signal(0);
/** The instant that panels show: it follows, but not at each frame. */
export const panelTime = signal(0);
/** A stretch of time that sums and rankings are limited to. */
export const marked = signal<[number, number] | null>(null);
export const selection = signal<Selection | null>(null);
export const layoutName = signal<LayoutName>("unfolded");
export const colourBy = signal<ColourBy>("trees");
export const themeChoice = signal<ThemeChoice>("auto");
/** Null: the whole map fits the screen. */
export const camera = signal<Camera | null>(null);
/** Whether the page shows a live fabric, whose newest sample it follows unless an instant is chosen. */
export const isLive = signal(false);
/** Of a live page: the instant that the address names, until the samples of before have come. */
export const wanted = signal<number | null>(null);
export const playing = signal(false);
/** Samples per second. */
export const speed = signal(20);

const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
const systemTheme = signal<ThemeName>(systemIsDark.matches ? "dark" : "light");
systemIsDark.addEventListener("change", (event) => {
  systemTheme.value = event.matches ? "dark" : "light";
});

const textScaleNow = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 14;

/** How much larger text is than at the usual size of 14 pixels: wide screens have larger text. */
export const textScale = signal(textScaleNow());
addEventListener("resize", () => (textScale.value = textScaleNow()));

const printing = signal(false);

export const themeName = computed<ThemeName>(() =>
  printing.value ? "light" : themeChoice.value === "auto" ? systemTheme.value : themeChoice.value,
);
export const theme = computed(() => THEMES[themeName.value]);
export const run = computed(() => runs.value[active.value]);
/** Places of the runs whose maps are shown: two runs are compared; of more, one is shown at a time. */
export const shownRuns = computed(() => (runs.value.length === 2 ? [0, 1] : [active.value]));

/** All instants at which something was sampled, of all runs. */
export const instants = computed(() => {
  const all = runs.value.flatMap((one) => [...one.instants]);
  return Float64Array.from(new Set(all)).sort();
});
export const duration = computed(() =>
  Math.max(0, ...runs.value.map((one) => one.facts.duration_ps)),
);

/** The time that the runs cover: charts over time show all of it. */
export const whole = computed<[number, number]>(() => [
  Math.min(...runs.value.map((one) => one.start)),
  duration.value,
]);

/** The stretch of time that panels sum over: what is marked, or the whole run. */
export const span = computed<[number, number]>(() => marked.value ?? whole.value);

/** Whether the newest sample is shown, so that a live page shows the next one, too. */
export function isNewest(): boolean {
  const all = instants.value;
  return all.length === 0 || time.value >= all[all.length - 1];
}

/** Select by a name, as the address has it: `node:leaf-01`, `port:leaf-01:3`, `tree:7` or `flow:a>b`. */
export function select(kind: string, name: string): boolean {
  const found = kind === "flow" ? findFlow(run.value, name) : findOne(run.value, kind, name);
  if (found) selection.value = found;
  return found !== null;
}

function findOne(one: Run, kind: string, name: string): Selection | null {
  return kind === "node"
    ? wrap(one.findNode(name), (node) => ({ kind: "node", node }))
    : kind === "port"
      ? wrap(one.findPort(name), (row) => ({ kind: "port", row }))
      : kind === "tree" && /^\d+$/.test(name) && one.lifetimes[Number(name)]
        ? { kind: "tree", tree: Number(name) }
        : null;
}

function wrap(index: number | undefined, make: (index: number) => Selection): Selection | null {
  return index === undefined ? null : make(index);
}

/** Name of what is selected, as `select` takes it. */
export function selectionName(one: Run, chosen: Selection): [string, string] {
  if (chosen.kind === "node") return ["node", one.nodes[chosen.node].name];
  if (chosen.kind === "port") return ["port", one.portName(chosen.row)];
  if (chosen.kind === "flow") {
    const [from, to] = [chosen.source, chosen.destination].map((host) => one.nodes[host].name);
    return ["flow", `${from}>${to}`];
  }
  return ["tree", String(chosen.tree)];
}

/** Mark a stretch of time, to the picosecond; what is empty, or none of the runs, is not marked. */
export function mark(from: number, to: number): void {
  const first = Math.max(0, Math.round(Math.min(from, to)));
  // A live page has no duration before its first sample.
  const last = Math.min(duration.value || Infinity, Math.round(Math.max(from, to)));
  if (last > first) marked.value = [first, last];
}

export function step(by: number): void {
  const all = instants.value;
  const here = upperBound(all, time.value) - 1;
  const next = Math.min(all.length - 1, Math.max(0, Math.max(here, 0) + by));
  if (all.length) time.value = all[next];
}

const LAYOUTS: LayoutName[] = ["unfolded", "cabled"];
const MEASURES: ColourBy[] = ["trees", "utilisation", "waiting", "queue"];
const CHOICES: ThemeChoice[] = ["auto", "light", "dark"];
const VIEWS: View[] = ["report", "map"];
/** Two numbers that are not negative, with a dash between them. */
const WINDOW = /^([\d.]+(?:e[+-]?\d+)?)-([\d.]+(?:e[+-]?\d+)?)$/i;

/** Missing or foreign parts leave the state; an address of the page itself says all, also by omission. */
export function readAddress(hash: string): void {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const number = (name: string) => finite(words.get(name) ?? "");
  const oneOf = <T extends string>(name: string, allowed: T[]) =>
    allowed.find((value) => value === words.get(name));
  batch(() => {
    themeChoice.value = oneOf("theme", CHOICES) ?? themeChoice.value;
    if (report.value) {
      sweepKey.value = words.get("over") ?? sweepKey.value;
      sweepMeasure.value = words.get("measure") ?? sweepMeasure.value;
      readReport(number("of"), number("shown"), oneOf("view", VIEWS));
      if (!runs.value.length) return;
    }
    const index = number("run");
    if (index !== null && runs.value[index]) active.value = index;
    if (words.has("layout") && words.has("colour"))
      marked.value = selection.value = camera.value = null;
    const at = number("t");
    if (at !== null) {
      const instant = Math.max(0, Math.round(at * clock.ps));
      if (isLive.value && !instants.value.length) wanted.value = instant;
      else time.value = Math.min(duration.value, instant);
    } else if (isLive.value && words.has("layout") && words.has("colour") && !isNewest())
      time.value = duration.value;
    const [from, to] = (WINDOW.exec(words.get("window") ?? "") ?? []).slice(1).map(Number);
    if (from < to) mark(from * clock.ps, to * clock.ps);
    const [kind, ...name] = (words.get("select") ?? "").split(":");
    if (kind) select(kind, name.join(":"));
    layoutName.value = oneOf("layout", LAYOUTS) ?? layoutName.value;
    colourBy.value = oneOf("colour", MEASURES) ?? colourBy.value;
    const places = (words.get("camera") ?? "").split(",").map(finite);
    const [x, y, zoom] = places;
    if (places.length === 3 && x !== null && y !== null && zoom !== null)
      camera.value = { x, y, zoom };
  });
}

/** A number of the address; null for what is none, or empty. */
function finite(text: string): number | null {
  return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : null;
}

/** Take from the address which run of a report is chosen, and which one its map shows. */
function readReport(of: number | null, place: number | null, wanted: View | undefined): void {
  const label = of === null ? undefined : report.value!.runs[of]?.label;
  if (label !== undefined) chosen.value = { title: label, runs: [of!], at: 0 };
  if (place !== null && report.value!.places.includes(place)) openRun.value(place);
  if (wanted && (wanted === "report" || runs.value.length)) view.value = wanted;
}

export function address(): string {
  const words = new URLSearchParams();
  if (themeChoice.value !== "auto") words.set("theme", themeChoice.value);
  if (report.value) {
    words.set("view", view.value);
    if (sweepKey.value !== null) words.set("over", sweepKey.value);
    if (sweepMeasure.value !== null) words.set("measure", sweepMeasure.value);
    if (chosen.value) words.set("of", String(chosen.value.runs[chosen.value.at]));
    if (shown.value >= 0) words.set("shown", String(shown.value));
    if (!runs.value.length) return words.toString();
  }
  if (runs.value.length > 1) words.set("run", String(active.value));
  if (wanted.value !== null) words.set("t", exactInstant(wanted.value));
  else if (!isLive.value || !isNewest()) words.set("t", exactInstant(time.value));
  if (marked.value) words.set("window", marked.value.map(exactInstant).join("-"));
  if (selection.value) words.set("select", selectionName(run.value, selection.value).join(":"));
  words.set("layout", layoutName.value);
  words.set("colour", colourBy.value);
  if (camera.value) {
    const { x, y, zoom } = camera.value;
    words.set("camera", [x, y, zoom].map((value) => Number(value.toFixed(3))).join(","));
  }
  return words.toString();
}

/** Keep the address up to date, but not at each frame: browsers limit how often it may change. */
export function followAddress(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let written = "";
  effect(() => {
    const text = address();
    // A live page computes it at each sample.
    if (text === written) return;
    written = text;
    clearTimeout(timer);
    timer = setTimeout(() => {
      // The browser's Back leads from a map to its report.
      const here = viewIn(location.hash);
      if (here !== "" && viewIn(text) !== here) history.pushState(null, "", `#${text}`);
      else history.replaceState(null, "", `#${text}`);
    }, 250);
  });
  // What the page has written meanwhile is not what the reader wants.
  addEventListener("hashchange", (event) => readAddress(new URL(event.newURL).hash));
}

/** Which view of a report an address shows; nothing of other pages. */
function viewIn(text: string): string {
  const words = new URLSearchParams(text.replace(/^#/, ""));
  const names = words.get("view") === "map" ? ["view", "shown"] : ["view"];
  return names
    .map((name) => words.get(name) ?? "")
    .join(" ")
    .trim();
}

/** Milliseconds between two instants that panels show. */
const PANELS = 120;

/** Let the panels follow the instant: at once if it rested, else from time to time. */
function followTime(): void {
  let last = -Infinity;
  let timer: ReturnType<typeof setTimeout> | undefined;
  effect(() => {
    const now = time.value;
    const show = () => {
      last = performance.now();
      panelTime.value = now;
    };
    clearTimeout(timer);
    const left = last + PANELS - performance.now();
    if (left <= 0) show();
    else timer = setTimeout(show, left);
  });
}

/** Apply the colours of the page, and advance the time while it plays. */
export function followState(): void {
  followTime();
  effect(() => {
    document.documentElement.dataset.theme = themeName.value;
  });
  // Paper is white.
  addEventListener("beforeprint", () => (printing.value = true));
  addEventListener("afterprint", () => (printing.value = false));
  effect(() => {
    if (!playing.value) return;
    const timer = setInterval(() => {
      const all = instants.value;
      if (time.value >= all[all.length - 1]) playing.value = false;
      else step(1);
    }, 1000 / speed.value);
    return () => clearInterval(timer);
  });
}
