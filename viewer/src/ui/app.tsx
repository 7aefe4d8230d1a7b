// The page: map, time and panels.

import * as state from "../state";
import type { PageFacts } from "../data/page";
import { MapView } from "./map";
import { Extras, Facts, Latencies, PortCharts, Rankings, ReceiveRates } from "./panels";
import { Runs } from "./runs";
import { SelectionPanel } from "./selection";
import { TimeBar } from "./timebar";
import { Legend, Toolbar } from "./toolbar";

const THEMES: Record<state.ThemeChoice, string> = {
  auto: "as the system",
  light: "light",
  dark: "dark",
};

export function App({ facts }: { facts: PageFacts }) {
  const several = state.runs.value.length > 1;
  // Two runs are compared; of more, one is shown at a time.
  const shown = state.runs.value.length === 2 ? [0, 1] : [state.active.value];
  return (
    <>
      <header>
        <h1>{facts.title}</h1>
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
                  {run.facts.label}
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
      <main>
        <div class="stage">
          <Toolbar />
          <div class={shown.length > 1 ? "maps several" : "maps"}>
            {shown.map((index) => (
              <figure key={index} class="one-map">
                {several && <figcaption>{state.runs.value[index].facts.label}</figcaption>}
                <MapView index={index} />
              </figure>
            ))}
          </div>
          <Legend />
          <TimeBar />
        </div>
        <div class="panels">
          {several && <Runs />}
          <SelectionPanel />
          <ReceiveRates />
          <PortCharts />
          <Rankings />
          <Latencies />
          <Extras />
          <Facts />
        </div>
      </main>
    </>
  );
}
