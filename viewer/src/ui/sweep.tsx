import { quantities } from "../data/quantity";
import { divisorOf, isRate, measureName, measureParts } from "../data/headings";
import type { Report } from "../data/report";
import { digits } from "../data/units";
import * as state from "../state";
import { Chart, type Line } from "./chart";
import type { Cell } from "./download";
import { beside } from "./lines";
import { DataTable, FEW_OF_REPORT, firstRows } from "./table";

const MOST_LINES = 12;

export function SweepCurves(props: {
  report: Report;
  onChoose(title: string, runs: number[]): void;
}) {
  const { facts, points, runs } = props.report;
  const { keys, measures } = facts.sweep!;
  const column = (name: string): Cell[] => {
    const divisor = measures.includes(name) ? divisorOf(name) : 1;
    return Array.from(points!.getChild(name)! as Iterable<Cell | boolean>, (value) =>
      typeof value === "boolean"
        ? String(value)
        : typeof value === "number"
          ? value / divisor
          : value,
    );
  };
  const ofKeys = (names: string[]) =>
    names.map((key) => axisOf(key, column(key))).filter(({ numbers }) => new Set(numbers).size > 1);
  // Seeds are no quantity: they are an axis where there is no other. Quantities come before words.
  const varied = ofKeys(keys).sort((a, b) => Number(!!a.names) - Number(!!b.names));
  const axes = varied.length ? varied : ofKeys(["seed"]);
  const axis = axes.find((one) => one.key === state.sweepKey.value) ?? axes[0];
  const key = axis?.key ?? "";
  const measure =
    measures.find((name) => name === state.sweepMeasure.value) ??
    measures.find((name) => isRate(name)) ??
    measures[0] ??
    "";
  const [words, unit] = measureParts(measure);
  const groups = axis && measure ? grouped(keys, axis, column, measure, words) : [];
  const shown = groups.slice(0, MOST_LINES);
  const columns = [...keys, "seed", ...measures].map(column);
  return (
    <>
      <p class="choices">
        <label>
          Curves over
          <select
            value={key}
            onChange={(event) => (state.sweepKey.value = event.currentTarget.value)}
          >
            {axes.map((one) => (
              <option key={one.key}>{one.key}</option>
            ))}
          </select>
        </label>
        <label>
          of
          <select
            value={measure}
            onChange={(event) => (state.sweepMeasure.value = event.currentTarget.value)}
          >
            {measures.map((name) => (
              <option key={name} value={name}>
                {measureName(name)}
              </option>
            ))}
          </select>
        </label>
      </p>
      {groups.length > shown.length && (
        <p class="faint">
          The first {shown.length} of {groups.length} curves.
        </p>
      )}
      {axis ? (
        <Chart
          key={key}
          title={`${measureName(measure)} by ${key}${key === "seed" ? "" : ", mean over the seeds"}`}
          xLabel={axis.unit ? `${key} (${axis.unit})` : key}
          yLabel={unit}
          height={260}
          lines={shown.map(({ line }) => line)}
          names={axis.names}
          onPoints={(found) => {
            const titles = found.map(({ line, at }) => {
              const { x, y, label } = shown[line].line;
              const value = axis.names?.[Math.round(x[at])] ?? `${digits(x[at])} ${axis.unit}`;
              return `${label}, ${`${key} = ${value}`.trim()}: ${digits(y[at]!)}`;
            });
            const behind = found.flatMap(({ line, at }) => shown[line].runs[at]);
            props.onChoose(titles.join("; "), behind);
          }}
        />
      ) : (
        <p class="none">Nothing varies in the points of this sweep.</p>
      )}
      <DataTable
        title="Points of the sweep"
        few={FEW_OF_REPORT}
        columns={[
          { name: "point" },
          ...[...keys, "seed"].map((name) => ({ name })),
          ...measures.map((name) => ({
            name: measureName(name),
            show: (value: Cell) => (value === null ? "" : digits(Number(value))),
          })),
        ]}
        {...firstRows(
          [...runs.keys()],
          (row) => [`#${row + 1}`, ...columns.map((values) => values[row])],
          (row) => ({
            id: String(row),
            onSelect: () => props.onChoose(runs[row].label, [row]),
          }),
        )}
      />
    </>
  );
}

interface Axis {
  key: string;
  unit: string;
  numbers: number[];
  /** Words that are the values 0, 1, ...; without them values are quantities. */
  names?: string[];
}

function axisOf(key: string, values: Cell[]): Axis {
  const found = quantities(values);
  if (found) return { key, ...found };
  const names = [...new Set(values.map(String))];
  return { key, unit: "", names, numbers: values.map((value) => names.indexOf(String(value))) };
}

interface Group {
  line: Line;
  /** Rows behind each point. */
  runs: number[][];
}

/** A curve for each combination of the other keys; a single one has a name of its own. */
function grouped(
  keys: string[],
  axis: Axis,
  column: (name: string) => Cell[],
  measure: string,
  otherwise: string,
): Group[] {
  const others = keys
    .filter((name) => name !== axis.key)
    .map((name) => [name, column(name)] as const);
  const values = column(measure);
  const groups = new Map<string, Map<number, number[]>>();
  axis.numbers.forEach((x, row) => {
    if (values[row] === null) return;
    const label = others.map(([name, of]) => `${name} = ${of[row]}`).join(", ") || otherwise;
    const points = groups.get(label) ?? new Map<number, number[]>();
    groups.set(label, points);
    points.set(x, [...(points.get(x) ?? []), row]);
  });
  const width = Math.min(groups.size, MOST_LINES);
  return Array.from(groups, ([label, points], colour) => {
    const aside = axis.names ? beside(colour, width) : 0;
    const sorted = [...points].sort((a, b) => a[0] - b[0]);
    const mean = (rows: number[]) =>
      rows.reduce((sum, row) => sum + Number(values[row]), 0) / rows.length;
    return {
      line: {
        label,
        colour,
        x: sorted.map(([x]) => x + aside),
        y: sorted.map(([, rows]) => mean(rows)),
        points: axis.names ? "discs" : "on",
      },
      runs: sorted.map(([, rows]) => rows),
    };
  });
}
