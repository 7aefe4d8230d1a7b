import type { Table } from "apache-arrow";

export interface TargetFacts {
  id: string;
  what: string;
  paper: number | null;
  measured: number | null;
  spread: number | null;
  rel_diff: number | null;
  within_tolerance: boolean;
  tol: number | null;
  calibrated: boolean;
  steady: number | null;
  within_tolerance_steady: boolean;
  values: number[];
  note?: string;
  rule?: string;
  found?: string;
  found_steady?: string;
}

export interface CurveFacts {
  chart: string;
  unit: string;
  axis: string;
  label: string;
  /** Its colour in the figures, if that is not known by its label. */
  colour?: string;
  points: { x: number; y: number; spread: number | null; runs: number[] }[];
  paper: [number, number][];
  /** Names of x = 0, 1, ...; empty if x is a quantity. */
  names: string[];
}

export interface TableFacts {
  title: string;
  columns: string[];
  rows: (string | number | null)[][];
  runs: number[][];
  /** Place of the standard deviations of a column of means, which are shown with them. */
  deviations: Record<number, number>;
  /** Places of the columns that only CSV has. */
  file_only: number[];
}

export interface SectionFacts {
  id: string;
  title: string;
  command: string;
  notes: string[];
  targets: TargetFacts[];
  tables: TableFacts[];
  curves: CurveFacts[];
  /** Drawings as addresses of data. */
  figures: string[];
  cases: Record<string, number[]>;
}

export interface ReportFacts {
  title: string;
  made_by: string;
  warnings: string[];
  notes: string[];
  sections: SectionFacts[];
  sweep: { keys: string[]; measures: string[] } | null;
}

export interface ReportRun {
  label: string;
  seed: number;
  hash: string;
  file: string;
  command: string;
  scenario: string;
  facts: Record<string, string | number>;
  /** Place of its data in the page, or -1. */
  place: number;
}

export class Report {
  readonly runs: ReportRun[];
  /** Places in the page of the runs whose data it holds. */
  readonly places: number[];
  /** Points of a sweep, a row for each run. */
  readonly points: Table | null;

  constructor(
    readonly facts: ReportFacts,
    load: (name: string) => Table,
  ) {
    const table = load("report-runs");
    const column = (name: string) => table.getChild(name)!;
    const [label, seed, hash, file, command, scenario, runFacts, place] = [
      "label",
      "seed",
      "hash",
      "file",
      "command",
      "scenario",
      "facts",
      "place",
    ].map(column);
    this.runs = Array.from({ length: table.numRows }, (_, row) => ({
      label: label.get(row) as string,
      seed: seed.get(row) as number,
      hash: hash.get(row) as string,
      file: file.get(row) as string,
      command: command.get(row) as string,
      scenario: scenario.get(row) as string,
      facts: JSON.parse(runFacts.get(row) as string) as Record<string, string | number>,
      place: place.get(row) as number,
    }));
    this.places = this.runs.map((run) => run.place).filter((one) => one >= 0);
    this.points = facts.sweep ? load("report-points") : null;
  }
}
