import { useEffect, useMemo, useRef } from "preact/hooks";
import { divisorOf, measureName } from "../data/headings";
import type { CurveFacts, Report, SectionFacts, TableFacts, TargetFacts } from "../data/report";
import { digits, isolated, NAME } from "../data/units";
import * as state from "../state";
import { Chart, type Line } from "./chart";
import { saveText, type Cell } from "./download";
import { beside, coloursOf } from "./lines";
import { SweepCurves } from "./sweep";
import { DataTable, FEW_OF_REPORT, type Column, type Row } from "./table";

// A range of x that is drawn on a logarithmic axis.
const DECADES = 100;
// The same of values over names.
const LOG_NAMES = 20;
// Curves of more points have no dots.
const MOST_DOTS = 40;
const TIME = "ms";
// Milliseconds from which an axis is in seconds.
const LONG = 5000;
// Screens on which the run is below the report.
const ONE_COLUMN = "(max-width: 900px)";

export function ReportView({ report }: { report: Report }) {
  const { facts } = report;
  return (
    <main class="report">
      <article>
        <p class="faint">{facts.made_by}</p>
        {facts.warnings.map((text) => (
          <p key={text} class="warning">
            {text}
          </p>
        ))}
        {facts.notes.map((text) => (
          <p key={text}>{text}</p>
        ))}
        {facts.sections.length > 1 && (
          <nav aria-label="Sections">
            {facts.sections.map((section) => (
              <button key={section.id} type="button" class="link" onClick={() => show(section.id)}>
                {section.id}
              </button>
            ))}
          </nav>
        )}
        {facts.sections.map((section) => (
          <Section key={section.id} report={report} section={section} />
        ))}
      </article>
      <ChosenRun report={report} />
    </main>
  );
}

function show(id: string): void {
  const heading = document.getElementById(`section-${id}`)!;
  heading.scrollIntoView();
  heading.focus();
}

function choose(title: string, runs: number[]): void {
  if (runs.length) state.chosen.value = { title, runs, at: 0 };
}

function Section({ report, section }: { report: Report; section: SectionFacts }) {
  const charts = useMemo(() => chartsOf(section.curves), [section]);
  const id = `section-${section.id}`;
  return (
    <section aria-labelledby={id}>
      <h2 id={id} tabIndex={-1}>
        {section.title}
      </h2>
      <p>
        <code>{section.command}</code>
      </p>
      {section.notes.map((text) => (
        <p key={text} class="faint">
          {text}
        </p>
      ))}
      {section.targets.length > 0 && <Targets section={section} />}
      {report.facts.sweep && <SweepCurves report={report} onChoose={choose} />}
      <div class="charts">
        {charts.map(([name, curves]) => (
          <CurveChart key={name} name={name} curves={curves} />
        ))}
      </div>
      {section.tables.map((table) => (
        <Values key={table.title} table={table} />
      ))}
      {section.figures.map((address, index) => (
        <img key={index} src={address} alt={`${section.title}, drawing ${index + 1}`} />
      ))}
      {!report.facts.sweep && Object.keys(section.cases).length > 0 && (
        <Cases report={report} cases={section.cases} />
      )}
    </section>
  );
}

const number = (value: Cell) => (value === null ? "" : digits(Number(value)));
const percent = (value: Cell) => (value === null ? "" : `${digits(100 * Number(value), 3)} %`);
const signed = (value: Cell) => (value !== null && Number(value) > 0 ? "+" : "") + percent(value);
const judge = (value: Cell) => (value === "yes" ? ("good" as const) : ("bad" as const));

const WHAT = 1;
const MEASURED = 3;

function Targets({ section }: { section: SectionFacts }) {
  const columns: Column[] = [
    { name: "target" },
    { name: "what", isText: true },
    { name: "paper", show: number },
    { name: "measured", show: number },
    { name: "standard deviation", isFileOnly: true },
    { name: "seeds" },
    { name: "difference", unit: "share", show: signed },
    { name: "tolerance", unit: "share", show: percent },
    { name: "within", judge },
    { name: "steady state", show: number },
    { name: "steady state within", judge },
    { name: "calibration" },
  ];
  return (
    <DataTable
      all
      title={`Paper and measurement, ${section.id}`}
      columns={columns}
      rows={section.targets.map((target) => ({
        id: target.id,
        cells: cellsOf(target),
        texts: textsOf(target),
        more: remarks(target),
      }))}
    />
  );
}

/** The mean over the seeds is shown with their standard deviation, remarks below the row. */
function textsOf({ what, measured, spread }: TargetFacts): Record<number, string> {
  const texts: Record<number, string> = { [WHAT]: what };
  if (measured !== null && spread !== null) texts[MEASURED] = withDeviation(measured, spread);
  return texts;
}

function remarks(target: TargetFacts): string {
  const words = [
    target.note,
    target.rule && `Rule: ${target.rule}.`,
    target.found && `Found: ${target.found}.`,
    target.found_steady && `Steady state: ${target.found_steady}.`,
  ];
  return words.filter(Boolean).join(" · ");
}

function withDeviation(mean: number, deviation: number): string {
  return `${digits(mean)} ± ${digits(deviation, 2)}`;
}

function cellsOf(target: TargetFacts): Cell[] {
  const yes = (value: boolean) => (value ? "yes" : "no");
  return [
    target.id,
    [target.what, remarks(target)].filter(Boolean).join(" · "),
    target.paper,
    target.measured,
    target.spread,
    target.values.length || null,
    target.rel_diff,
    target.tol,
    yes(target.within_tolerance),
    target.steady,
    yes(target.within_tolerance_steady),
    target.calibrated ? "used" : "not used",
  ];
}

function chartsOf(curves: CurveFacts[]): [string, CurveFacts[]][] {
  const charts = new Map<string, CurveFacts[]>();
  for (const curve of curves) charts.set(curve.chart, [...(charts.get(curve.chart) ?? []), curve]);
  return [...charts];
}

/** Curves over names stand next to each other, at their name. */
function shift(curves: CurveFacts[], place: number): number {
  return curves[0].names.length ? beside(place, curves.length) : 0;
}

/** Whether values are spread so far that a logarithmic axis shows more. */
function spansDecades(values: number[], factor: number): boolean {
  return Math.min(...values) > 0 && Math.max(...values) >= factor * Math.min(...values);
}

/** Measured curves, and the paper's numbers as diamonds in their colours. */
function CurveChart({ name, curves }: { name: string; curves: CurveFacts[] }) {
  const isLong =
    curves[0].axis === TIME && curves.some(({ points }) => points.some(({ x }) => x >= LONG));
  const divisor = isLong ? 1000 : 1;
  const colours = useMemo(() => coloursOf(curves), [curves]);
  const lines = useMemo<Line[]>(
    () => [
      ...curves.map((curve, place): Line => ({
        label: curve.label,
        colour: colours[place],
        x: curve.points.map((point) => point.x / divisor + shift(curves, place)),
        y: curve.points.map((point) => point.y),
        points: curve.names.length
          ? ("discs" as const)
          : curve.points.length <= MOST_DOTS
            ? ("on" as const)
            : undefined,
      })),
      ...curves.flatMap((curve, place) => {
        const sorted = [...curve.paper].sort((a, b) => a[0] - b[0]);
        if (!sorted.length) return [];
        return [
          {
            label: `paper: ${curve.label}`,
            colour: colours[place],
            x: sorted.map(([x]) => x / divisor + shift(curves, place)),
            y: sorted.map(([, y]) => y),
            points: "only" as const,
          },
        ];
      }),
    ],
    [curves],
  );
  const all = lines.flatMap((line) => Array.from(line.x));
  const values = lines.flatMap((line) => Array.from(line.y as number[]));
  const { unit, names } = curves[0];
  const axis = isLong ? "s" : curves[0].axis;
  return (
    <Chart
      title={name}
      xLabel={axis}
      yLabel={unit}
      height={220}
      lines={lines}
      names={names.length ? names : undefined}
      logY={names.length > 0 && spansDecades(values, LOG_NAMES)}
      logX={curves[0].axis !== TIME && !names.length && spansDecades(all, DECADES)}
      onPoints={(found) => {
        const points = found.map(({ line, at }) => ({ ...curves[line].points[at], line }));
        const title = points.map(({ line, x, y }) => {
          const place = names.length ? names[x] : `${axis} ${digits(x / divisor)}`;
          return `${curves[line].label}, ${place}: ${digits(y)} ${unit}`;
        });
        choose(`${name}: ${title.join("; ")}`, [...new Set(points.flatMap(({ runs }) => runs))]);
      }}
    />
  );
}

function Values({ table }: { table: TableFacts }) {
  const rows = table.rows.map((cells, index): Row => {
    const runs = table.runs[index] ?? [];
    return {
      id: String(index),
      cells,
      texts: meansOf(table, cells),
      onSelect: runs.length ? () => choose(`${table.title}: ${cells[0]}`, runs) : undefined,
    };
  });
  const fileOnly = new Set(table.file_only);
  const columns = table.columns.map((name, at) => ({
    name: name.replaceAll("_", " "),
    isFileOnly: fileOnly.has(at),
    isText: table.rows.some((cells) => String(cells[at] ?? "").length > NAME),
    show: (value: Cell) => (typeof value === "number" ? digits(value) : (value ?? "")),
  }));
  return <DataTable title={table.title} columns={columns} rows={rows} few={FEW_OF_REPORT} />;
}

/** What is shown of the means of a row that have a standard deviation. */
function meansOf(table: TableFacts, cells: Cell[]): Record<number, string> {
  const texts: Record<number, string> = {};
  for (const [at, place] of Object.entries(table.deviations)) {
    const [mean, deviation] = [cells[Number(at)], cells[place]];
    if (typeof mean === "number" && typeof deviation === "number")
      texts[Number(at)] = withDeviation(mean, deviation);
  }
  return texts;
}

/** The runs by case: every point of every curve is one of them. */
function Cases({ report, cases }: { report: Report; cases: Record<string, number[]> }) {
  const chosen = state.chosen.value;
  const now = chosen?.runs[chosen.at];
  return (
    <DataTable
      title="Runs by case"
      few={FEW_OF_REPORT}
      columns={["case", "seeds", "with map"].map((name) => ({ name }))}
      rows={Object.entries(cases).map(([label, runs]) => ({
        id: label,
        cells: [label, runs.length, runs.filter((run) => report.runs[run].place >= 0).length],
        isSelected: now !== undefined && runs.includes(now),
        onSelect: () => choose(label, runs),
      }))}
    />
  );
}

/** The run behind the chosen point: what it is, the command that makes it, and its map. */
function ChosenRun({ report }: { report: Report }) {
  const chosen = state.chosen.value;
  const panel = useRef<HTMLElement>(null);
  useEffect(() => {
    // Below the report it would not be seen.
    if (chosen && matchMedia(ONE_COLUMN).matches) panel.current?.scrollIntoView();
  }, [chosen?.title, chosen?.runs]);
  if (!chosen)
    return (
      <aside class="panels" aria-label="Run behind a point">
        <p class="none">A click on a point of a curve, or on a case, shows the run behind it.</p>
      </aside>
    );
  const run = report.runs[chosen.runs[chosen.at]];
  const rows = [
    ["seed", String(run.seed)],
    ["scenario", run.hash.slice(0, 16)],
    ...Object.entries(run.facts).map(([name, value]) => [
      measureName(name),
      typeof value === "number" ? (value / divisorOf(name)).toLocaleString("en-GB") : value,
    ]),
  ];
  return (
    <aside ref={panel} class="panels" aria-label="Run behind a point" aria-live="polite">
      <section>
        <h2>{isolated(chosen.title)}</h2>
        {chosen.runs.length > 1 && (
          <label>
            Run
            <select
              value={chosen.at}
              onChange={(event) =>
                (state.chosen.value = { ...chosen, at: Number(event.currentTarget.value) })
              }
            >
              {chosen.runs.map((place, at) => (
                <option key={place} value={at}>
                  {isolated(report.runs[place].label)}
                </option>
              ))}
            </select>
          </label>
        )}
        {run.label !== chosen.title && <h3>{isolated(run.label)}</h3>}
        <dl>
          {rows.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
        {run.place >= 0 ? (
          <button
            type="button"
            onClick={() => {
              state.openRun.value(run.place);
              state.view.value = "map";
            }}
          >
            Show its map
          </button>
        ) : (
          <p class="none">Its tables are not in this page; this command makes them:</p>
        )}
        {run.scenario && (
          <>
            <pre class="command" tabIndex={0}>
              {run.command}
            </pre>
            <button
              type="button"
              onClick={() => saveText(run.file, run.scenario, "application/toml")}
            >
              Download {run.file}
            </button>
            <details>
              <summary>Scenario</summary>
              <pre tabIndex={0}>{run.scenario}</pre>
            </details>
          </>
        )}
      </section>
    </aside>
  );
}
