import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import { readFacts, readTable } from "./data/page";
import { Run } from "./data/run";
import { connect } from "./live/connection";
import { LiveRun } from "./live/run";
import * as state from "./state";
import "./style.css";
import { App } from "./ui/app";

function start(): void {
  const facts = readFacts();
  const make = facts.live ? LiveRun : Run;
  state.runs.value = facts.runs.map(
    (one, index) => new make(one, (name) => readTable(index, name)),
  );
  const [first] = state.runs.value;
  const all = state.instants.value;
  if (all.length) state.time.value = busiest();
  state.readAddress(location.hash);
  const app = document.getElementById("app")!;
  app.textContent = "";
  render(<App facts={facts} />, app);
  state.followState();
  state.followAddress();
  if (facts.live && first instanceof LiveRun) connect(first, facts.live.path);
  document.documentElement.dataset.ready = "true";
}

/** The instant with most bytes in trees, as a first view. */
function busiest(): number {
  const [run] = state.runs.value;
  let best = 0;
  run.treeBytes.forEach((bytes, sample) => {
    if (bytes > run.treeBytes[best]) best = sample;
  });
  return run.treeTimes[best] ?? state.instants.value[0];
}

try {
  start();
} catch (error) {
  const app = document.getElementById("app")!;
  app.textContent = `This page cannot be shown: ${error instanceof Error ? error.message : error}`;
  throw error;
}
