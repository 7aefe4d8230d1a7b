import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { Run } from "../data/run";
import { find, type Found } from "../data/find";
import { chainFrom, heldRows, pathTo } from "../data/paths";
import type { Selection } from "../data/selection";
import { closeUp, fit, plainCamera } from "../map/camera";
import * as state from "../state";
import type { Layout } from "../layout/layout";
import { makerOf, mapSize } from "./map";
import { Short } from "./short";

// Pixels of the room of hosts at which what was found is shown.
const CLOSE = 24;
// Pixels at each edge of the map beyond a tree or a way: stars and their names have room there.
const BEYOND = 34;

export function Search() {
  const text = useSignal("");
  const open = useSignal(false);
  const current = useSignal(0);
  const input = useRef<HTMLInputElement>(null);
  const found = open.value ? find(state.run.value, text.value) : [];

  const choose = (one: Found) => {
    state.selection.value = one.selection;
    text.value = one.text;
    open.value = false;
    show(one.selection);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") current.value = Math.min(found.length - 1, current.value + 1);
    else if (event.key === "ArrowUp") current.value = Math.max(0, current.value - 1);
    else if (event.key === "Enter" && found[current.value]) choose(found[current.value]);
    else if (event.key === "Escape") open.value = false;
    else return;
    event.preventDefault();
  };
  return (
    <div class="search">
      <input
        ref={input}
        type="search"
        role="combobox"
        list={undefined}
        aria-label="Search by name or LID"
        aria-expanded={found.length > 0}
        aria-controls="found"
        aria-autocomplete="list"
        aria-activedescendant={found.length ? `found-${current.value}` : undefined}
        placeholder="Search name or LID"
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          open.value = true;
          current.value = 0;
        }}
        onKeyDown={onKeyDown}
        onBlur={() => (open.value = false)}
      />
      <ul id="found" role="listbox" aria-label="Found" hidden={found.length === 0}>
        {found.map((one, index) => (
          <li
            key={index}
            id={`found-${index}`}
            role="option"
            aria-selected={index === current.value}
            onMouseDown={(event) => {
              event.preventDefault();
              choose(one);
            }}
          >
            <Short text={one.text} />{" "}
            <small>
              <Short text={one.detail} />
            </small>
          </li>
        ))}
      </ul>
      <span role="status" class="nothing">
        {open.value && text.value.trim() && !found.length ? "nothing found" : ""}
      </span>
    </div>
  );
}

/** Move the map to what is selected: all of a tree, of a flow's way, and of a host with what holds it up; the surroundings of the others. */
export function show(chosen: Selection): void {
  const run = state.run.value;
  const [width, height] = mapSize();
  const { layout } = makerOf(run, state.layoutName.value, [width, height]);
  const whole = fit(layout, width, height);
  const boxes = boxesOf(run, layout, chosen);
  if (!boxes.length) return;
  const [left, top] = [0, 1].map((axis) => Math.min(...boxes.map((box) => box[axis])));
  const [right, bottom] = [2, 3].map((axis) => Math.max(...boxes.map((box) => box[axis])));
  const middle: [number, number] = [(left + right) / 2, (top + bottom) / 2];
  const now = state.camera.value?.zoom ?? whole.zoom;
  const close = Math.max(Math.log2(CLOSE / layout.room.hosts), now);
  const isSwitch = chosen.kind === "node" && !run.isHost(chosen.node);
  const isLarge = chosen.kind !== "port" && !isSwitch;
  const room = Math.min(
    (width - 2 * BEYOND) / Math.max(right - left, 1e-9),
    (height - 2 * BEYOND) / Math.max(bottom - top, 1e-9),
  );
  const zoom = isLarge ? Math.max(whole.zoom, Math.min(close, Math.log2(room))) : close;
  state.camera.value = plainCamera(closeUp(middle, zoom, layout, width, height), layout);
}

/** Where a selection is on the map, as left, top, right and bottom of its parts. */
function boxesOf(run: Run, layout: Layout, chosen: Selection): number[][] {
  const point = (places: ArrayLike<number>, host: number) => {
    const [x, y] = [places[2 * host], places[2 * host + 1]];
    return [x, y, x, y];
  };
  const line = (row: number) => {
    const [x0, y0, x1, y1] = layout.lines.subarray(4 * row, 4 * row + 4);
    return [Math.min(x0, x1), Math.min(y0, y1), Math.max(x0, x1), Math.max(y0, y1)];
  };
  if (chosen.kind === "port") return [line(chosen.row)];
  if (chosen.kind === "node" && run.isHost(chosen.node)) {
    const forest = run.forest(run.treeSampleAt(state.time.value));
    const held = run.portsOf(chosen.node).flatMap((row) => chainFrom(forest, row));
    return [point(layout.senders, chosen.node), ...held.map(line)];
  }
  if (chosen.kind === "node")
    return layout.switches
      .filter(({ node }) => node === chosen.node)
      .map(({ x, y }) => [x, y, x, y]);
  if (chosen.kind === "flow")
    return [
      ...run
        .portsOf(chosen.source)
        .flatMap((row) => pathTo(run, row, chosen.destination))
        .map(line),
      point(layout.senders, chosen.source),
      point(layout.receivers, chosen.destination),
    ];
  const forest = run.forest(run.treeSampleAt(state.time.value));
  const senders = forest
    ? [...forest.hosts].filter(
        (_, at) => forest.hostTree[at] === chosen.tree && forest.contributing[at] > 0,
      )
    : [];
  return [
    line(run.lifetimes[chosen.tree].rootRow),
    ...heldRows(run, forest, chosen).map(line),
    ...senders.map((host) => point(layout.senders, host)),
  ];
}
