// A chart over time or another quantity, drawn by uPlot.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { upperBound } from "../data/search";
import { digits, isolated } from "../data/units";
import { css } from "../map/colours";
import { textScale, theme, themeName } from "../state";
import { csv, fileName, saveText } from "./download";
import { areWhole, dashesOf, STEPS } from "./lines";
import { drawDiamonds, drawMarks, drawOverlaps, WIDTH } from "./marks";
import { ShortWords } from "./short";

export interface Line {
  label: string;
  x: ArrayLike<number>;
  y: ArrayLike<number | null>;
  dash?: number[];
  /** Index of the colour; by default its place. */
  colour?: number;
  steps?: boolean;
  /** Whether it is counted by the axis on the right. */
  right?: boolean;
  /** Points on the line, or without a line: diamonds, or discs. */
  points?: "on" | "only" | "discs";
}

export interface ChartPoint {
  line: number;
  at: number;
}

export interface ChartProps {
  title: string;
  xLabel: string;
  yLabel: string;
  /** Name of the axis on the right, if some line is counted by it. */
  rightLabel?: string;
  lines: Line[];
  height?: number;
  /** A vertical line at this x, and the range that is shaded. */
  at?: number;
  /** Whether a value holds until the next one, so that the legend shows the last one before the line. */
  holds?: boolean;
  shaded?: [number, number] | null;
  /** Whether lines are cumulative, in % of what the words say: texts then name quantiles. */
  cumulated?: string;
  logX?: boolean;
  logY?: boolean;
  /** Names of x = 0, 1, ...; without them x is a quantity. */
  names?: readonly string[];
  /** What the axis of x covers; without it, what the lines do. */
  range?: [number, number];
  /** What is said where there are no lines, if that is not because nothing was recorded. */
  none?: string;
  onPick?(x: number): void;
  /** A click next to a point, with all others at the same place. */
  onPoints?(points: ChartPoint[]): void;
  onRange?(range: [number, number]): void;
  /** Vertical marks with a text. */
  events?: { x: number; text: string }[];
}

export function Chart(props: ChartProps) {
  const { title, xLabel, yLabel, rightLabel, lines, logX = false, logY = false, names } = props;
  // Names that do not fit next to each other stand upright below the chart.
  const longest = Math.max(0, ...(names ?? []).map((name) => name.length)) * LETTER;
  const upright = longest * (names?.length ?? 0) > NARROW;
  const scale = textScale.value;
  const foot = scale * (upright ? longest + 14 : 34);
  const height = Math.round(scale * ((props.height ?? 150) - 34) + foot);
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const marker = useRef(document.createElement("div"));
  const latest = useRef(props);
  latest.current = props;
  const [hovered, setHovered] = useState<number | null>(null);
  const dashes = useMemo(() => dashesOf(lines), [lines]);
  const shade = theme.value;
  const unitOf = (line: Line) => (line.right && rightLabel ? rightLabel : yLabel);
  const heading = (line: Line) => {
    const unit = unitOf(line);
    return unit ? `${line.label} (${unit})` : line.label;
  };
  const joined = useMemo(() => (lines.length > 0 ? join(lines) : null), [lines]);
  // Lines can have 100,000 points, and the chart follows the instant.
  const looks = useMemo(() => lines.map(appearance).join("\n"), [lines]);
  const words = useMemo(
    () =>
      props.cumulated
        ? quantiles(title, xLabel, props.cumulated, lines)
        : summary(title, unitOf, lines),
    [title, xLabel, yLabel, rightLabel, lines],
  );
  const data = useRef(joined);
  data.current = joined;

  useEffect(() => {
    const element = host.current;
    if (!element || !joined) return;
    const ink = css(shade.faint);
    const axis: uPlot.Axis = {
      stroke: ink,
      grid: { stroke: css(shade.cable) + "66", width: 1 },
      ticks: { stroke: css(shade.cable), width: 1 },
      font: `${11 * scale}px system-ui, sans-serif`,
      labelFont: `${11 * scale}px system-ui, sans-serif`,
      labelSize: 16 * scale,
      size: 34 * scale,
    };
    let held = false;
    const space = scale * ((props.height ?? 150) < FLAT ? 14 : 30);
    const made = new uPlot(
      {
        width: element.clientWidth || 300,
        height,
        legend: { show: false },
        cursor: {
          y: false,
          // A drag goes on beyond the chart, and ends at its edges.
          move: ({ over }, left, top) => [
            held ? Math.max(0, Math.min(over.clientWidth, left)) : left,
            top,
          ],
          drag: { x: props.onRange !== undefined, y: false, setScale: false },
          points: { size: 5 },
        },
        scales: {
          x: {
            time: false,
            distr: logX ? 3 : 1,
            range: names
              ? (): uPlot.Range.MinMax => [-0.5, names.length - 0.5]
              : props.range && ((_, least, most) => wholeRange(latest.current, least, most)),
          },
          y: logY ? { distr: 3 } : { range: fromZero },
          right: { range: fromZero },
        },
        axes: [
          names
            ? {
                ...axis,
                size: foot,
                rotate: upright ? -90 : 0,
                splits: () => [...names.keys()],
                values: (_: uPlot, places: number[]) =>
                  places.map((place) => isolated(names[place])),
              }
            : {
                ...axis,
                label: isolated(xLabel),
                ...(areWhole(joined[0]) ? { incrs: STEPS } : {}),
              },
          { ...axis, label: isolated(yLabel), size: 46 * scale, values: shortened, space },
          ...(rightLabel
            ? [
                {
                  ...axis,
                  label: isolated(rightLabel),
                  size: 46 * scale,
                  values: shortened,
                  space,
                  scale: "right",
                  side: 1 as const,
                  grid: { show: false },
                },
              ]
            : []),
        ],
        series: [
          {},
          ...lines.map((line, index) => ({
            label: line.label,
            scale: line.right ? "right" : "y",
            stroke: shade.lines[(line.colour ?? index) % shade.lines.length],
            width: WIDTH,
            dash: dashes[index],
            points: pointsOf(line, shade.lines[(line.colour ?? index) % shade.lines.length]),
            spanGaps: true,
            paths: pathsOf(line),
          })),
        ],
        hooks: {
          draw: [
            (drawn) => drawMarks(drawn, latest.current, css(shade.faint)),
            (drawn) => drawDiamonds(drawn, latest.current.lines, shade.lines),
            // Where a click leads to the runs behind points, each of them has to be seen.
            (drawn) =>
              latest.current.onPoints && drawOverlaps(drawn, latest.current.lines, shade.lines),
            // New values change the axis only now.
            (drawn) => placeMarker(drawn, marker.current, latest.current.at),
          ],
          setCursor: [(moved) => setHovered(moved.cursor.idx ?? null)],
          setSelect: [
            (chosen) => {
              const { left, width } = chosen.select;
              if (width < 4) return;
              const [from, to] = [left, left + width].map((place) => chosen.posToVal(place, "x"));
              latest.current.onRange?.([from, to]);
              chosen.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            },
          ],
        },
      },
      joined as uPlot.AlignedData,
      element,
    );
    if (props.onRange) {
      // Without it, a drag would snap to an edge where the pointer leaves the chart above or below.
      made.over.addEventListener("pointerdown", ({ button, pointerId }) => {
        if (button === 0) made.over.setPointerCapture(pointerId);
      });
      made.over.addEventListener("gotpointercapture", () => (held = true));
      made.over.addEventListener("lostpointercapture", () => (held = false));
    }
    // Half of a point at an edge is outside of the area of the lines.
    made.root.addEventListener("click", (event) => {
      if (event.detail !== 1) return;
      const { onPoints, onPick } = latest.current;
      const { left, top } = made.over.getBoundingClientRect();
      const place: [number, number] = [event.clientX - left, event.clientY - top];
      const found = onPoints ? pointsNear(made, latest.current.lines, place) : [];
      if (found.length) onPoints!(found);
      else if (event.target === made.over) onPick?.(made.posToVal(place[0], "x"));
    });
    plot.current = made;
    element.dataset.theme = themeName.peek();
    marker.current.className = "marker";
    made.over.append(marker.current);
    const resize = (width = element.clientWidth || 300) => {
      made.setSize({ width, height });
      placeMarker(made, marker.current, latest.current.at);
    };
    const sizes = new ResizeObserver(() => resize());
    sizes.observe(element);
    // Paper is laid out when it is too late to draw: letters have their size if the width is nearly that of the paper.
    const toPaper = () => resize(element.closest(".charts") ? HALF_OF_PAPER : PAPER);
    const toScreen = () => resize();
    addEventListener("beforeprint", toPaper);
    addEventListener("afterprint", toScreen);
    return () => {
      removeEventListener("beforeprint", toPaper);
      removeEventListener("afterprint", toScreen);
      sizes.disconnect();
      made.destroy();
      plot.current = null;
    };
    // The plot is made again if what it looks like changes; new values are set below.
  }, [shade, looks, joined === null, xLabel, yLabel, logX, logY, scale]);

  useEffect(() => {
    if (joined) plot.current?.setData(joined as uPlot.AlignedData);
  }, [lines]);
  useEffect(() => plot.current?.redraw(false), [props.shaded, props.events]);
  // The instant is a line above the chart, which need not be drawn again when it moves.
  useEffect(() => {
    if (plot.current) placeMarker(plot.current, marker.current, props.at);
  });

  const find = props.holds ? lastBefore : nearest;
  const at =
    hovered ?? (props.at === undefined || !joined ? null : find(joined[0] as number[], props.at));
  const shown = (index: number): number | null => {
    if (at === null || !joined) return null;
    const column = joined[index + 1];
    let row = at;
    // Lines that are joined have no value where only the others have one.
    while (props.holds && row > 0 && column[row] == null) row--;
    return column[row] ?? (props.holds ? null : valueBetween(joined[0], column, row));
  };
  return (
    <figure class="chart">
      <figcaption>
        <span>{isolated(title)}</span>
        {joined && (
          <button
            type="button"
            class="small"
            aria-label={`Download ${title} as CSV`}
            onClick={() =>
              saveText(
                `${fileName(title)}.csv`,
                csv(
                  [names ? "name" : xLabel, ...lines.map(heading)],
                  Array.from(joined[0], (x, row) => [
                    names ? names[Math.round(x!)] : x,
                    ...joined.slice(1).map((column) => column[row] ?? null),
                  ]),
                ),
                "text/csv",
              )
            }
          >
            CSV
          </button>
        )}
      </figcaption>
      {joined ? (
        <>
          <div ref={host} class="plot" role="img" aria-label={words} />
          <ul class="legend">
            {lines.map((line, index) => (
              <li key={index}>
                <svg width="18" height="8" aria-hidden="true">
                  {line.points === "only" ? (
                    <path
                      d="M9 0.8 12.2 4 9 7.2 5.8 4Z"
                      fill="none"
                      stroke={shade.lines[(line.colour ?? index) % shade.lines.length]}
                      stroke-width="1.6"
                    />
                  ) : line.points === "discs" ? (
                    <circle
                      cx="9"
                      cy="4"
                      r="3.9"
                      fill={shade.lines[(line.colour ?? index) % shade.lines.length]}
                    />
                  ) : (
                    <line
                      x1="0"
                      x2="18"
                      y1="4"
                      y2="4"
                      stroke={shade.lines[(line.colour ?? index) % shade.lines.length]}
                      stroke-width="2.5"
                      stroke-dasharray={dashes[index].join(" ") || undefined}
                    />
                  )}
                </svg>
                <ShortWords text={line.label} most={WORDS} />
                {shown(index) !== null && <b> {digits(shown(index)!)}</b>}
              </li>
            ))}
          </ul>
        </>
      ) : (
        <p class="none">{props.none ?? NOTHING}</p>
      )}
    </figure>
  );
}

/** What a plot is made again for if it changes. */
function appearance(line: Line): string {
  return [line.label, line.colour, line.points, line.dash, valueCount(line) === 1].join(" ");
}

function valueCount({ y }: Line): number {
  let count = 0;
  for (let at = 0; at < y.length; at++) if (y[at] !== null) count++;
  return count;
}

/** Points where they are wanted, and where there is no line between two. */
function pointsOf(line: Line, colour: string): uPlot.Series.Points {
  const isOnly = line.points === "only";
  const show = !isOnly && (line.points !== undefined || valueCount(line) === 1);
  return { show, size: line.points === "discs" ? 8 : 7, width: 2, stroke: colour, fill: colour };
}

function pathsOf(line: Line): uPlot.Series.PathBuilder | undefined {
  if (line.points === "only" || line.points === "discs") return () => null;
  return line.steps ? uPlot.paths.stepped!({ align: 1 }) : undefined;
}

// Pixels of a chart over the width of a page of A4, and of one of two next to each other.
const PAPER = 680;
const HALF_OF_PAPER = 340;
const NOTHING =
  "Nothing was recorded for this. With --record view, silvan run records all that is shown here.";
// Letters of a label in a legend.
const WORDS = 160;
// Charts of fewer pixels have their marks closer.
const FLAT = 120;
// Pixels of a letter of a name below a chart.
const LETTER = 7;
// Pixels that names have next to each other.
const NARROW = 340;
// Pixels that a click may be away from a point.
const NEAR = 24;
// Points of a smaller distance hide each other.
const SAME = 1;

/** The points that a click is next to: the nearest one, and those that it lies on. */
function pointsNear(plot: uPlot, lines: Line[], place: [number, number]): ChartPoint[] {
  const near: (ChartPoint & { x: number; y: number; away: number })[] = [];
  lines.forEach((line, index) => {
    // What others have stated has no runs.
    if (line.points === "only") return;
    for (let at = 0; at < line.y.length; at++) {
      const value = line.y[at];
      if (value === null) continue;
      const x = plot.valToPos(line.x[at], "x");
      const y = plot.valToPos(value, line.right ? "right" : "y");
      const away = Math.hypot(x - place[0], y - place[1]);
      if (away < NEAR) near.push({ line: index, at, x, y, away });
    }
  });
  if (!near.length) return [];
  const best = near.reduce((a, b) => (b.away < a.away ? b : a));
  return near.filter(({ x, y }) => Math.hypot(x - best.x, y - best.y) < SAME);
}

/** Logarithmic axes leave most of their ticks without a text. */
function shortened(_: uPlot, ticks: (number | null)[]): string[] {
  return ticks.map((tick) => (tick === null ? "" : short(tick)));
}

/** What the axis of x covers. A live page has no time behind it at first. */
function wholeRange({ range }: ChartProps, least: number, most: number): uPlot.Range.MinMax {
  return range && range[1] > range[0] ? range : [least, most];
}

/** From 0 to a little more than the largest value. */
function fromZero(_: uPlot, __: number, most: number | null): uPlot.Range.MinMax {
  return [0, most !== null && most > 0 ? 1.06 * most : 1];
}

/** Lines of one x are taken as they are; others are joined on it. */
function join(lines: Line[]): (number | null)[][] {
  const same = lines.every((line) => line.x === lines[0].x);
  if (same) return [Array.from(lines[0].x), ...lines.map((line) => Array.from(line.y))];
  return uPlot.join(
    lines.map((line) => [Array.from(line.x), Array.from(line.y)] as uPlot.AlignedData),
  ) as (number | null)[][];
}

function nearest(x: number[], at: number): number {
  const after = Math.min(upperBound(x, at), x.length - 1);
  const before = Math.max(0, after - 1);
  return x[after] - at < at - x[before] ? after : before;
}

/** The value next to a row where a line has none, if the line has values on both sides. */
function valueBetween(x: (number | null)[], column: (number | null)[], row: number): number | null {
  const after = column.findIndex((value, at) => at > row && value != null);
  const before = column.findLastIndex((value, at) => at < row && value != null);
  if (after < 0 || before < 0) return null;
  return column[x[after]! - x[row]! <= x[row]! - x[before]! ? after : before];
}

function lastBefore(x: number[], at: number): number {
  // An instant in the unit of the chart may be off in the last digit.
  return Math.max(0, upperBound(x, at * (1 + 1e-12)) - 1);
}

function placeMarker(plot: uPlot, marker: HTMLDivElement, at: number | undefined): void {
  const place = at === undefined ? NaN : plot.valToPos(at, "x");
  // Nor is an instant shown that the axis does not reach.
  marker.hidden = !(place >= -1 && place <= plot.over.clientWidth + 1);
  marker.style.transform = `translateX(${place}px)`;
  // On paper the chart is scaled, and with it the place.
  const { left, top, height } = plot.bbox;
  const { canvas } = plot.ctx;
  const share = (pixels: number, all: number) => `${(100 * pixels) / all}%`;
  marker.style.setProperty("--at", share(left + place * devicePixelRatio, canvas.width));
  marker.style.setProperty("--top", share(top, canvas.height));
  marker.style.setProperty("--bottom", share(canvas.height - top - height, canvas.height));
}

function short(value: number): string {
  for (const [unit, name] of [
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ] as const) {
    if (Math.abs(value) >= unit) return `${digits(value / unit)}${name}`;
  }
  return digits(value);
}

/** What a reader who does not see the chart learns from it. */
function summary(title: string, unitOf: (line: Line) => string, lines: Line[]): string {
  const words = lines.map((line) => {
    const values = Array.from(line.y).filter((value): value is number => value !== null);
    if (!values.length) return `${line.label}: no values`;
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const least = values.reduce((a, b) => Math.min(a, b));
    const most = values.reduce((a, b) => Math.max(a, b));
    return `${line.label}: mean ${digits(mean, 3)}, from ${digits(least, 3)} to ${digits(most, 3)} ${unitOf(line)}`;
  });
  return `Chart of ${title}. ${words.join("; ")}`;
}

/** The same of cumulative lines, whose mean says nothing. */
function quantiles(title: string, unit: string, of: string, lines: Line[]): string {
  const words = lines.map(({ label, x, y }) => {
    const least = (share: number) => {
      const at = Array.from(y).findIndex((value) => value !== null && value >= share);
      return at < 0 ? "no value" : `${digits(x[at], 3)} ${unit}`;
    };
    return `${label}: 50 % of ${of} at most ${least(50)}, 99 % at most ${least(99)}`;
  });
  return `Chart of ${title}. ${words.join("; ")}`;
}
