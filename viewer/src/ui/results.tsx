import type { Table } from "apache-arrow";
import { partOf } from "../data/cut";
import { measureParts } from "../data/headings";
import type { RunFacts } from "../data/page";
import type { Run } from "../data/run";
import { clock, count, digits, gbps, instant } from "../data/units";
import * as state from "../state";
import type { Cell } from "./download";
import { FACT_COLUMNS, plainFacts, type Fact } from "./facts";
import { CsvButton, DataTable, firstRows, ofPart, type Column } from "./table";

const OF_JOBS = ["programs", "ranks"];

/** Flows and sequences as they are; programs have a panel of their own. */
export function Extras() {
  const extras = [...state.run.value.extras].filter(([name]) => !OF_JOBS.includes(name));
  return (
    <>
      {extras.map(([name, table]) => {
        const part = partOf(state.run.value, name, table.numRows);
        const columns = table.schema.fields.map((field) => plainColumn(field.name));
        return (
          <section key={name}>
            <h2>{name[0].toUpperCase() + name.slice(1)}</h2>
            <DataTable
              title={part === null ? name : `${name}, ${part}`}
              columns={part === null ? columns : ofPart(columns, `${part} ${name}`)}
              {...plainRows(table)}
            />
          </section>
        );
      })}
    </>
  );
}

function plainRows(table: Table) {
  const columns = table.schema.fields.map((field) => table.getChild(field.name)!);
  const cells = (row: number) =>
    columns.map((column, at) => {
      const value = plain(column.get(row));
      return isTime(table.schema.fields[at].name) && value !== null
        ? Number(value) / clock.ps
        : value;
    });
  const rows = Array.from({ length: table.numRows }, (_, row) => row);
  return firstRows(rows, cells, (row) => ({ id: String(row) }));
}

const isTime = (name: string) => name.endsWith("_ps");

/** A column of a table of the result; times are in the unit of the page. */
function plainColumn(name: string): Column {
  const show = (value: Cell) =>
    typeof value === "number" ? digits(value, 6) : String(value ?? "");
  const words = name.replaceAll("_", " ");
  if (isTime(name)) return { name: `${words.slice(0, -" ps".length)}, ${clock.name}`, show };
  // Whole numbers, such as bytes, are shown as they are.
  return { name: words, show: (value) => (Number.isInteger(value) ? String(value) : show(value)) };
}

function plain(value: unknown): Cell {
  if (value === null || typeof value === "number" || typeof value === "string") return value;
  return String(value);
}

function diagnosed(facts: RunFacts, { began }: NonNullable<RunFacts["diagnosis"]>): Fact[] {
  return [
    ["subnet", facts.name],
    ["instant 0", began],
    ["hosts", count(facts.hosts), facts.hosts],
    ["observed", instant(facts.duration_ps), facts.duration_ps / clock.ps, clock.name],
    ["fastest link", gbps(facts.link_gbps), facts.link_gbps, "Gbit/s"],
  ];
}

/** The rate of all cables, or the lowest and the highest. */
function linkRates(run: Run): Fact[] {
  const rate = (name: string, value: number): Fact => [name, gbps(value), value, "Gbit/s"];
  let [least, most] = [Infinity, 0];
  for (let row = 0; row < run.ports; row++) {
    least = Math.min(least, run.rate[row]);
    most = Math.max(most, run.rate[row]);
  }
  if (!run.ports) return [rate("link rate", run.facts.link_gbps)];
  if (least === most) return [rate("link rate", most)];
  return [rate("lowest link rate", least), rate("highest link rate", most)];
}

export function Facts() {
  const { facts } = state.run.value;
  const own: Fact[] = [
    ["scenario", facts.name],
    ["description", facts.description],
    ["congestion control", facts.live_is_off ? "off (Threshold 0)" : facts.scheme],
    ["seed", String(facts.seed)],
    ["hosts", count(facts.hosts), facts.hosts],
    ["simulated time", instant(facts.duration_ps), facts.duration_ps / clock.ps, clock.name],
    ...linkRates(state.run.value),
    ...Object.entries(facts.rates_gbps).map(([name, value]): Fact => [
      `${measureParts(name)[0]}, payload`,
      gbps(value),
      value,
      "Gbit/s",
    ]),
  ];
  const rows: Fact[] = [
    ...(facts.diagnosis ? diagnosed(facts, facts.diagnosis) : own),
    ["silvan", facts.version],
  ];
  return (
    <section aria-labelledby="run-title">
      <h2 id="run-title">
        {facts.diagnosis ? "Subnet" : "Run"}
        <CsvButton
          title={facts.diagnosis ? "Subnet" : "Run"}
          columns={FACT_COLUMNS}
          rows={() => plainFacts(rows)}
        />
      </h2>
      {facts.merged_samples > 1 && (
        <p>
          Each sample of the ports covers {facts.merged_samples} of the run
          {state.run.value.series && !facts.diagnosis && "; queues are those at its end"}.
        </p>
      )}
      {facts.skipped_trees > 1 && <p>One of {facts.skipped_trees} samples of the trees is kept.</p>}
      <dl>
        {rows
          .filter(([, value]) => value !== "")
          .map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
      {facts.scenario && (
        <details>
          <summary>Scenario</summary>
          <pre tabIndex={0}>{facts.scenario}</pre>
        </details>
      )}
    </section>
  );
}
