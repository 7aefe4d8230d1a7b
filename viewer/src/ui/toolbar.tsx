import { useComputed } from "@preact/signals";
import { hasMeasure } from "../data/measures";
import type { LayoutName } from "../layout/layout";
import { css, type ColourBy } from "../map/colours";
import { liveStatus } from "../live/connection";
import { legendOf, MEASURES } from "../map/svg";
import * as state from "../state";
import { cameraOf, makerOf, mapSize, moveTo, saveDrawing } from "./map";
import { Search } from "./search";

const LAYOUTS: Record<LayoutName, string> = { unfolded: "unfolded", cabled: "as cabled" };

export function Toolbar() {
  return (
    <div class="toolbar" role="toolbar" aria-label="Map">
      <Search />
      <label>
        Layout
        <select
          value={state.layoutName.value}
          onChange={(event) => {
            state.layoutName.value = event.currentTarget.value as LayoutName;
            state.camera.value = null;
          }}
        >
          {Object.entries(LAYOUTS).map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label>
        Colour
        <select
          value={state.colourBy.value}
          onChange={(event) => (state.colourBy.value = event.currentTarget.value as ColourBy)}
        >
          {Object.entries(MEASURES).map(([value, name]) => (
            <option
              key={value}
              value={value}
              disabled={value === "queue" && !hasMeasure(state.run.value, value)}
            >
              {name}
            </option>
          ))}
        </select>
      </label>
      <span class="buttons">
        <button
          type="button"
          disabled={state.isStill.value}
          aria-label="Zoom in"
          onClick={() => zoom(0.5)}
        >
          +
        </button>
        <button
          type="button"
          disabled={state.isStill.value}
          aria-label="Zoom out"
          onClick={() => zoom(-0.5)}
        >
          −
        </button>
        <button
          type="button"
          disabled={state.isStill.value}
          onClick={() => (state.camera.value = null)}
        >
          Whole map
        </button>
        <button
          type="button"
          aria-label="Download the map as PNG"
          onClick={() => saveDrawing("png")}
        >
          PNG
        </button>
        <button
          type="button"
          aria-label="Download the map as SVG"
          onClick={() => saveDrawing("svg")}
        >
          SVG
        </button>
      </span>
      {state.isStill.value && <small>This browser has no WebGL, so the map cannot be moved.</small>}
    </div>
  );
}

function zoom(by: number): void {
  const size = mapSize();
  const { layout } = makerOf(state.run.value, state.layoutName.value, size);
  const camera = cameraOf(layout, ...size);
  moveTo({ ...camera, zoom: camera.zoom + by }, layout, ...size);
}

export function Legend() {
  const theme = state.theme.value;
  const measure = state.colourBy.value;
  const run = state.run.value;
  const colour = css(theme.trees[0]);
  const facts = legendOf(run, measure, theme, state.selection.value);
  // Of the whole run, so that the map keeps its height; of a live fabric, of the instant of the map.
  const hasOthers = useComputed(() => {
    const one = state.run.value;
    if (liveStatus.value === null)
      return one.lifetimes.some(({ tree }) => one.colourPlace(tree) === undefined);
    const forest = one.treeTimes.length ? one.forest(one.treeSampleAt(state.time.value)) : null;
    return forest?.trees.some(({ tree }) => one.colourPlace(tree) === undefined) ?? false;
  });
  const isCut = useComputed(() => state.run.value.downRows(state.time.value).length > 0);
  const ink = css(theme.ink);
  return (
    <ul class="legend map-legend" aria-label="Legend">
      {measure === "trees" || !hasMeasure(run, measure) ? (
        <>
          <li>
            <svg width="26" height="12" aria-hidden="true">
              <path d="M0 6h26" stroke={colour} stroke-width="4" />
            </svg>
            branch: the thicker, the more ports behind it
          </li>
          {hasOthers.value && (
            <li>
              <svg width="26" height="12" aria-hidden="true">
                <path d="M0 6h26" stroke={css(theme.otherTrees)} stroke-width="4" />
              </svg>
              tree beyond the {theme.trees.length} at a time that have colours
            </li>
          )}
        </>
      ) : (
        <li>
          {facts.scale[0]}
          <svg width="80" height="12" aria-hidden="true">
            {theme.ramps[measure].map((shade, index, all) => (
              <rect
                key={index}
                x={(index * 80) / all.length}
                y={5 - index}
                width={80 / all.length}
                height={2 + 2 * index}
                fill={css(shade)}
              />
            ))}
          </svg>
          {facts.scale[1]}: {facts.name}
        </li>
      )}
      {facts.hasTrees && (
        <>
          {" "}
          <li>
            <svg width="14" height="14" aria-hidden="true">
              <path
                d="M7 0l1.8 4.9 5.2.2-4.1 3.2 1.4 5L7 10.400l-4.300 2.900 1.400-5L0 5.100l5.200-.2z"
                fill={colour}
              />
            </svg>
            root
          </li>
          <li>
            <svg width="12" height="12" aria-hidden="true">
              <circle cx="6" cy="6" r="4.5" fill={colour} />
            </svg>
            contributor
          </li>
          <li>
            <svg width="12" height="12" aria-hidden="true">
              <circle cx="6" cy="6" r="4.500" fill="none" stroke={ink} stroke-width="1.8" />
            </svg>
            host with victims
          </li>
        </>
      )}
      {facts.chosen && (
        <li>
          <svg width="26" height="12" aria-hidden="true">
            <path d="M0 6h26" stroke={css(theme.accent)} stroke-width="2.2" />
          </svg>
          {facts.chosen}
        </li>
      )}
      {isCut.value && (
        <li>
          <svg width="12" height="12" aria-hidden="true">
            <path d="M2 2l8 8m0-8l-8 8" stroke={ink} stroke-width="2.4" />
          </svg>
          cable down
        </li>
      )}
    </ul>
  );
}
