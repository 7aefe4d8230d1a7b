// Search by name or LID: a text field with a list of what is found.

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { Run } from "../data/run";
import type { Selection } from "../data/selection";
import { fit } from "../map/camera";
import * as state from "../state";
import { makerOf } from "./map";

const MOST_FOUND = 12;
// Pixels of a unit at which what was found is shown.
const CLOSE = 90;

interface Found {
  text: string;
  detail: string;
  selection: Selection;
}

/** Hosts and switches whose name or LID fits, ports (`leaf-01:3`), trees (`tree 7`), flows (`host-01 > host-02`). */
export function find(run: Run, text: string): Found[] {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  const found: Found[] = [];
  const port = run.findPort(text.trim());
  if (port !== undefined) {
    found.push({
      text: run.portName(port),
      detail: "port",
      selection: { kind: "port", row: port },
    });
  }
  const flow = state.findFlow(run, text);
  if (flow)
    found.push({ text: state.selectionName(run, flow)[1], detail: "flow", selection: flow });
  const tree = /^t(?:ree)? ?(\d+)$/.exec(wanted);
  if (tree && run.lifetimes[Number(tree[1])]) {
    const number = Number(tree[1]);
    const { destination } = run.lifetimes[number];
    found.push({
      text: `tree ${number}`,
      detail: destination && `to ${destination}`,
      selection: { kind: "tree", tree: number },
    });
  }
  for (let node = 0; node < run.nodes.length && found.length < MOST_FOUND; node++) {
    const { name, lid } = run.nodes[node];
    if (name.toLowerCase().includes(wanted) || String(lid) === wanted) {
      const kind = run.isHost(node) ? "host" : "switch";
      const detail = lid === null ? kind : `${kind}, LID ${lid}`;
      found.push({ text: name, detail, selection: { kind: "node", node } });
    }
  }
  return found;
}

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
            key={one.text}
            id={`found-${index}`}
            role="option"
            aria-selected={index === current.value}
            onMouseDown={(event) => {
              event.preventDefault();
              choose(one);
            }}
          >
            {one.text} <small>{one.detail}</small>
          </li>
        ))}
      </ul>
      <span role="status" class="nothing">
        {open.value && text.value.trim() && !found.length ? "nothing found" : ""}
      </span>
    </div>
  );
}

/** Move the map to what is selected. */
export function show(chosen: Selection): void {
  const run = state.run.value;
  const { layout } = makerOf(run, state.layoutName.value);
  const map = document.querySelector(".map")!;
  const now = state.camera.value ?? fit(layout, map.clientWidth, map.clientHeight);
  const zoom = Math.max(Math.log2(CLOSE), now.zoom);
  const at = (x: number, y: number) => (state.camera.value = { x, y, zoom });
  if (chosen.kind === "node" && run.isHost(chosen.node)) {
    at(layout.senders[2 * chosen.node], layout.senders[2 * chosen.node + 1]);
  } else if (chosen.kind === "node") {
    const place = layout.switches.find(({ node }) => node === chosen.node);
    if (place) at(place.x, place.y);
  } else if (chosen.kind !== "flow") {
    const row = chosen.kind === "port" ? chosen.row : run.lifetimes[chosen.tree].rootRow;
    const [x0, y0, x1, y1] = layout.lines.subarray(4 * row, 4 * row + 4);
    at((x0 + x1) / 2, (y0 + y1) / 2);
  }
}
