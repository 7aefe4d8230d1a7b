import * as state from "../state";
import type { PageFacts } from "../data/page";
import { clipped } from "../data/units";
import { DiagnosisPanel } from "./diagnosis";
import { Programs } from "./programs";
import { Limits } from "./limits";
import { MapView } from "./map";
import { Latencies, PortCharts, Rankings, ReceiveRates } from "./panels";
import { ReportView } from "./report";
import { Extras, Facts } from "./results";
import { Runs } from "./runs";
import { Short } from "./short";
import { SelectionPanel } from "./selection";
import { TimeBar } from "./timebar";
import { Legend, Toolbar } from "./toolbar";

const MOST_TITLE = 160;

const THEMES: Record<state.ThemeChoice, string> = {
  auto: "as the system",
  light: "light",
  dark: "dark",
};

export function App({ facts }: { facts: PageFacts }) {
  const several = state.runs.value.length > 1;
  const report = state.report.value;
  const isReport = report !== null && state.view.value === "report";
  return (
    <>
      <header>
        <h1>
          <Short text={facts.title} most={MOST_TITLE} />
        </h1>
        {report && <Views />}
        {several && (
          <label>
            Panels show
            <select
              value={state.active.value}
              onChange={(event) => {
                state.selection.value = null;
                state.active.value = Number(event.currentTarget.value);
              }}
            >
              {state.runs.value.map((run, index) => (
                <option key={index} value={index}>
                  {clipped(run.facts.label)}
                </option>
              ))}
            </select>
          </label>
        )}
        <label class="theme">
          Colours
          <select
            value={state.themeChoice.value}
            onChange={(event) =>
              (state.themeChoice.value = event.currentTarget.value as state.ThemeChoice)
            }
          >
            {Object.entries(THEMES).map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </header>
      {isReport ? (
        <ReportView report={report} />
      ) : (
        <MapPage key={state.shown.value} several={several} />
      )}
    </>
  );
}

/** Switches between a report and the map of one of its runs. */
function Views() {
  const names: [state.View, string][] = [
    ["report", "Report"],
    ["map", "Map of a run"],
  ];
  return (
    <span class="buttons" role="group" aria-label="View">
      {names.map(([value, name]) => (
        <button
          key={value}
          type="button"
          aria-pressed={state.view.value === value}
          disabled={value === "map" && !state.runs.value.length}
          onClick={() => (state.view.value = value)}
        >
          {name}
        </button>
      ))}
      {state.view.value === "map" && (
        <strong>
          <Short text={state.run.value.facts.label} />
        </strong>
      )}
    </span>
  );
}

function MapPage({ several }: { several: boolean }) {
  const shown = state.shownRuns.value;
  return (
    <main>
      <div class="stage">
        <Toolbar />
        <div class={shown.length > 1 ? "maps several" : "maps"}>
          {shown.map((index) => (
            <figure key={index} class="one-map">
              {several && (
                <figcaption>
                  <Short text={state.runs.value[index].facts.label} />
                </figcaption>
              )}
              <MapView index={index} />
            </figure>
          ))}
        </div>
        <Legend />
        <TimeBar />
      </div>
      <div class="panels">
        {several && <Runs />}
        <DiagnosisPanel />
        <SelectionPanel />
        <ReceiveRates />
        <PortCharts />
        <Limits />
        <Programs />
        <Rankings />
        <Latencies />
        <Extras />
        <Facts />
      </div>
    </main>
  );
}
