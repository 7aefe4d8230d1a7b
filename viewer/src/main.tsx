import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import { readMeasures } from "./data/headings";
import { readFacts, readTable, type PageFacts } from "./data/page";
import { Report } from "./data/report";
import { Run } from "./data/run";
import { connect } from "./live/connection";
import { clock } from "./data/units";
import { LiveRun } from "./live/run";
import * as state from "./state";
import "./style.css";
import { App } from "./ui/app";

function start(): void {
  const facts = readFacts();
  readMeasures(facts.measures);
  if (facts.live || facts.runs.some((one) => one.diagnosis))
    Object.assign(clock, { ps: 1e12, name: "s" });
  else if (isShort(facts)) Object.assign(clock, { ps: 1e6, name: "µs" });
  const made = new Map<number, Run>();
  const runAt = (place: number): Run => {
    let run = made.get(place);
    if (!run) {
      run = new (facts.live ? LiveRun : Run)(facts.runs[place], (name) =>
        readTable(`run${place}-${name}`),
      );
      made.set(place, run);
    }
    return run;
  };
  if (facts.report) {
    state.report.value = new Report(facts.report, readTable);
    state.view.value = "report";
  } else {
    state.runs.value = facts.runs.map((_, place) => runAt(place));
    if (state.instants.value.length) state.time.value = busiest(state.runs.value[0]);
    if (!facts.live) showWhatIsKnown();
  }
  // A run of a report is read when its map is shown.
  state.openRun.value = (place) => {
    if (state.shown.value === place) return;
    state.selection.value = state.marked.value = state.camera.value = null;
    state.shown.value = place;
    state.runs.value = [runAt(place)];
    const [run] = state.runs.value;
    state.time.value = busiest(run);
    showWhatIsKnown();
  };
  state.isLive.value = facts.live !== null;
  state.readAddress(location.hash);
  const app = document.getElementById("app")!;
  app.textContent = "";
  render(<App facts={facts} />, app);
  state.followState();
  state.followAddress();
  const [first] = state.runs.value;
  if (facts.live && first instanceof LiveRun) connect(first, facts.live.path);
  document.documentElement.dataset.ready = "true";
}

/** Without trees the map shows the load of the cables. */
function showWhatIsKnown(): void {
  const hasTrees = state.runs.value.some((run) => run.treeTimes.length > 0);
  state.colourBy.value = hasTrees ? "trees" : "utilisation";
}

/** Whether instants in milliseconds would be zeros after the point: of runs of at most 20 µs. */
function isShort({ live, report, runs }: PageFacts): boolean {
  return !live && !report && runs.every((one) => one.duration_ps <= 2e7);
}

/** The instant with most bytes in trees, as a first view. */
function busiest(run: Run): number {
  let best = 0;
  run.treeBytes.forEach((bytes, sample) => {
    if (bytes > run.treeBytes[best]) best = sample;
  });
  return run.treeTimes[best] ?? run.times[0] ?? 0;
}

try {
  start();
} catch (error) {
  const app = document.getElementById("app")!;
  app.textContent = `This page cannot be shown: ${error instanceof Error ? error.message : error}`;
  throw error;
}
