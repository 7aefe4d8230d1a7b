// The map of one run: canvas, tooltip, and what the mouse, fingers and keys do.

import { effect, useComputed, useSignal, type ReadonlySignal } from "@preact/signals";
import { select } from "d3-selection";
import { zoom, zoomIdentity } from "d3-zoom";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { RunFacts } from "../data/page";
import type { Run } from "../data/run";
import { hasMeasure } from "../data/measures";
import { selectionIn } from "../data/compare";
import type { Selection } from "../data/selection";
import { instant } from "../data/units";
import { cabled } from "../layout/cabled";
import { stretched, stretchFor, type Layout, type LayoutName, type Plan } from "../layout/layout";
import { unfolded } from "../layout/unfolded";
import {
  fit,
  limited,
  names,
  plainCamera,
  roomFor,
  stretchedCamera,
  zoomLimits,
  type Camera,
} from "../map/camera";
import { Picker } from "../map/pick";
import { SceneMaker } from "../map/scene";
import { LOOKS, radiusOf } from "../map/shapes";
import { legendOf, sideBySide, svg, type Drawing } from "../map/svg";
import { Detail } from "../map/detail";
import { Painter, writeNames, writeRows } from "../map/webgl";
import { beforePainting, cancelWork } from "../frames";
import * as state from "../state";
import { fileName, savePng, saveText } from "./download";
import { describe } from "./facts";

// Pixels that a key moves the map, and that a pointer may be away from what it means.
const PAN = 60;
const REACH = 9;
const REACH_OF_FINGER = 16;
// Pixels of a map in a file, before it is drawn as PNG.
const FILE_WIDTH = 1600;
// Milliseconds between two frames with new names, where frames come slowly.
const NAMES = 150;
// A live run is another object at each sample, with the same facts.
const made = new WeakMap<RunFacts, Map<LayoutName, Made>>();

interface Made {
  plan: Plan;
  maker: SceneMaker;
}

export function mapSize(): [number, number] {
  const area = document.querySelector(".map");
  return area ? [area.clientWidth, area.clientHeight] : [0, 0];
}

/** The geometry of a run in the chosen layout, in the shape of a view of so many pixels: made once for each shape. */
export function makerOf(run: Run, name: LayoutName, [width, height] = mapSize()): SceneMaker {
  const own = made.get(run.facts) ?? new Map<LayoutName, Made>();
  made.set(run.facts, own);
  const before = own.get(name);
  const plan = before?.plan ?? (name === "cabled" ? cabled(run) : unfolded(run));
  const { wide, high } = roomFor(plan, width, height);
  const stretch = stretchFor(plan, width && wide, height && high);
  if (before && before.maker.layout.stretch.join() === stretch.join()) return before.maker;
  const maker = new SceneMaker(run, stretched(plan, stretch));
  own.set(name, { plan, maker });
  return maker;
}

/** What is seen of a map: a part of it, or all. */
export function cameraOf(layout: Layout, width: number, height: number): Camera {
  const { value } = state.camera;
  return value
    ? limited(stretchedCamera(value, layout), layout, width, height)
    : fit(layout, width, height);
}

/** Move the camera to the nearest place that shows something of the map. */
export function moveTo(camera: Camera, layout: Layout, width: number, height: number): void {
  state.camera.value = plainCamera(limited(camera, layout, width, height), layout);
}

export function MapView({ index }: { index: number }) {
  const run = state.runs.value[index];
  const parent = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const paper = useRef<HTMLCanvasElement>(null);
  const failed = useSignal(false);
  const tip = useSignal<{ left: number; top: number; lines: string[] } | null>(null);
  const size = useSignal<[number, number]>([0, 0]);
  const maker = useComputed(() => makerOf(run, state.layoutName.value, size.value));
  const picker = useComputed(() => new Picker(run, maker.value.layout, maker.value.pieces));
  const scene = useComputed(() => {
    const { time, colourBy, theme } = state;
    return maker.value.scene(
      time.value,
      colourBy.value,
      theme.value,
      selectionIn(run, state.run.value, state.selection.value),
    );
  });
  const camera = useComputed<Camera>(() => cameraOf(maker.value.layout, ...size.value));

  useEffect(() => {
    const element = parent.current!;
    const measure = () => (size.value = [element.clientWidth, element.clientHeight]);
    measure();
    const sizes = new ResizeObserver(measure);
    sizes.observe(element);
    const stop = follow();
    return () => {
      sizes.disconnect();
      stop();
    };
  }, []);

  /** Draw at each change, but at most once a frame. */
  function follow(): () => void {
    const [ground, text] = [canvas.current!, paper.current!];
    const painter = Painter.on(ground);
    if (!painter) {
      failed.value = state.isStill.value = true;
      return () => {};
    }
    let named = { at: -Infinity, camera: camera.peek(), width: 0 };
    const detail = new Detail(() => beforePainting(draw));
    const draw = (now: number) => {
      const sharp = Math.min(2, devicePixelRatio);
      const part = detail.at(now);
      const ratio = sharp * part;
      fitCanvas(ground, size.peek(), ratio);
      fitCanvas(text, size.peek(), sharp);
      const [shown, seen, theme] = [scene.peek(), camera.peek(), state.theme.peek()];
      painter.load(shown);
      const { layout } = maker.peek();
      painter.draw(seen, layout.room.hosts, theme, ratio, part < 1);
      ground.dataset.theme = text.dataset.theme = state.themeName.peek();
      const [width, height] = size.peek();
      if (part < 1 && now - named.at < NAMES && named.width === width) {
        moveNames(text, named.camera, seen, width, height);
        return;
      }
      text.style.transform = "";
      named = { at: now, camera: seen, width };
      const labels = [...shown.labels, ...names(run, layout, seen, width, height)];
      writeNames(text, shown, labels, seen, theme, sharp, state.textScale.peek());
      writeRows(text, layout, seen, theme, sharp, state.textScale.peek());
    };
    const stop = effect(() => {
      const [width] = size.value;
      void [scene.value, camera.value, state.theme.value];
      if (width) beforePainting(draw);
    });
    const still = pointers(ground, camera, size, maker);
    return () => {
      stop();
      still();
      cancelWork(draw);
      detail.stop();
      painter.destroy();
    };
  }

  const found = (event: MouseEvent): Selection | null => {
    const scale = 2 ** camera.value.zoom;
    const [width, height] = size.value;
    const x = camera.value.x + (event.offsetX - width / 2) / scale;
    const y = camera.value.y + (event.offsetY - height / 2) / scale;
    const mark = radiusOf(LOOKS.root, maker.value.layout.room.hosts * scale);
    const isFinger = "pointerType" in event && event.pointerType === "touch";
    const reach = isFinger ? REACH_OF_FINGER : REACH;
    return picker.value.at(x, y, reach / scale, mark / scale);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const { x, y, zoom } = camera.value;
    const unit = PAN / 2 ** zoom;
    const moves: Record<string, Partial<Camera>> = {
      ArrowLeft: { x: x - unit },
      ArrowRight: { x: x + unit },
      ArrowUp: { y: y - unit },
      ArrowDown: { y: y + unit },
      "+": { zoom: zoom + 0.5 },
      "=": { zoom: zoom + 0.5 },
      "-": { zoom: zoom - 0.5 },
    };
    if (event.key === "0") state.camera.value = null;
    else if (event.key in moves) {
      const moved = { x, y, zoom, ...moves[event.key] };
      moveTo(moved, maker.value.layout, ...size.value);
    } else if (event.key === "Escape") state.selection.value = null;
    else return;
    event.preventDefault();
  };

  return (
    <div
      ref={parent}
      class="map"
      tabIndex={0}
      role="group"
      aria-label={`Map of ${run.facts.label}. Arrow keys move it, plus and minus zoom, 0 shows all of it, Escape clears the selection.`}
      onKeyDown={onKeyDown}
      onMouseLeave={() => (tip.value = null)}
    >
      <canvas
        ref={canvas}
        aria-hidden="true"
        onClick={(event) => {
          const chosen = found(event);
          if (chosen) state.active.value = index;
          state.selection.value = chosen;
        }}
        onMouseMove={(event) => {
          const under = event.buttons ? null : found(event);
          tip.value = under && {
            left: event.offsetX,
            top: event.offsetY,
            lines: describe(run, under, state.time.value),
          };
        }}
      />
      <canvas ref={paper} class="names" aria-hidden="true" />
      {failed.value && (
        <StillMap
          run={run}
          layout={maker.value.layout}
          text={drawing(index, size.value[0] || 800, { legend: false }).text}
        />
      )}
      {tip.value && <Tooltip {...tip.value} wide={size.value[0]} />}
    </div>
  );
}

/** Move names that were written for another camera. */
function moveNames(
  text: HTMLCanvasElement,
  from: Camera,
  to: Camera,
  width: number,
  height: number,
): void {
  const scale = 2 ** to.zoom;
  const stretch = scale / 2 ** from.zoom;
  const x = (from.x - to.x) * scale + (width / 2) * (1 - stretch);
  const y = (from.y - to.y) * scale + (height / 2) * (1 - stretch);
  text.style.transform = `translate(${x}px, ${y}px) scale(${stretch})`;
}

function fitCanvas(canvas: HTMLCanvasElement, size: [number, number], ratio: number): void {
  const [width, height] = size.map((length) => Math.round(length * ratio));
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
}

/** Drag, wheel, pinch and double click move the camera. */
function pointers(
  canvas: HTMLCanvasElement,
  camera: ReadonlySignal<Camera>,
  size: ReadonlySignal<[number, number]>,
  maker: ReadonlySignal<SceneMaker>,
): () => void {
  const behaviour = zoom<HTMLCanvasElement, unknown>().on("zoom", ({ transform }) => {
    const [width, height] = size.peek();
    const [x, y] = [
      (width / 2 - transform.x) / transform.k,
      (height / 2 - transform.y) / transform.k,
    ];
    const moved = { x, y, zoom: Math.log2(transform.k) };
    moveTo(moved, maker.peek().layout, width, height);
  });
  const selected = select(canvas).call(behaviour);
  // The behaviour has a transform of its own, which follows the camera.
  const stop = effect(() => {
    const [width, height] = size.value;
    const { x, y, zoom: level } = camera.value;
    const scale = 2 ** level;
    const [least, most] = zoomLimits(maker.value.layout, width, height);
    behaviour.scaleExtent([2 ** least, 2 ** most]);
    const moved = zoomIdentity
      .translate(width / 2 - x * scale, height / 2 - y * scale)
      .scale(scale);
    selected.property("__zoom", moved);
  });
  return () => {
    stop();
    selected.on(".zoom", null);
  };
}

/** Without WebGL the map is a drawing, which cannot be moved. */
function StillMap({ run, layout, text }: { run: Run; layout: Layout; text: string }) {
  const url = useMemo(
    () => URL.createObjectURL(new Blob([text], { type: "image/svg+xml" })),
    [text],
  );
  useEffect(() => () => URL.revokeObjectURL(url), [url]);
  return (
    <img
      class="still"
      src={url}
      alt={`${run.facts.label}, ${layout.name}. This browser has no WebGL, so the map cannot be moved.`}
    />
  );
}

function Tooltip(props: { left: number; top: number; lines: string[]; wide: number }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const { style, offsetHeight, parentElement } = box.current!;
    style.left = `${Math.min(props.left + 14, Math.max(0, props.wide - 240))}px`;
    const below = props.top + 14;
    const above = Math.max(0, props.top - 14 - offsetHeight);
    style.top = `${below + offsetHeight > parentElement!.clientHeight ? above : below}px`;
  });
  return (
    <div ref={box} class="tooltip">
      {props.lines.map((line, index) =>
        index === 0 ? <b key={index}>{line}</b> : <span key={index}>{line}</span>,
      )}
    </div>
  );
}

/** The map as SVG, as it is now. */
export function drawing(index: number, width: number, parts = { legend: true }): Drawing {
  const run = state.runs.value[index];
  const maker = makerOf(run, state.layoutName.value);
  const { value: theme } = state.theme;
  const selection = selectionIn(run, state.run.value, state.selection.value);
  const scene = maker.scene(state.time.value, state.colourBy.value, theme, selection);
  const stood = run.otherTrees(state.time.value);
  const caption =
    `${run.facts.label}, t = ${instant(state.time.value)}` +
    (stood === null ? "" : `, trees of ${instant(stood)}`);
  const measure = state.colourBy.value;
  const isMeasured = measure !== "trees" && hasMeasure(run, measure);
  const legend = parts.legend
    ? legendOf(run, isMeasured ? measure : "trees", theme, selection)
    : null;
  return svg(run, maker.layout, scene, theme, width, caption, legend);
}

export function saveDrawing(kind: "png" | "svg"): void {
  const shown = state.shownRuns.value;
  const drawings = shown.map((index) => drawing(index, FILE_WIDTH));
  const { text } = drawings.length > 1 ? sideBySide(drawings, state.theme.value) : drawings[0];
  const labels = shown.map((index) => state.runs.value[index].facts.label);
  const name = `${fileName(...labels, instant(state.time.value))}.${kind}`;
  if (kind === "svg") saveText(name, text, "image/svg+xml");
  else void savePng(name, text, 2);
}
