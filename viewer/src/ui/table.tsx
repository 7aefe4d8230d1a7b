// A table that a reader sorts by its columns, and downloads.

import { useState } from "preact/hooks";
import { NAME } from "../data/units";
import { csv, fileName, saveText, type Cell } from "./download";
import { Short, ShortWords } from "./short";

export interface Column {
  name: string;
  /** How a value is shown; CSV holds the value itself. */
  show?(value: Cell): string;
  /** Whether only wide screens have room for it. */
  isSpare?: boolean;
  /** Whether it holds names of a fabric, of which long ones are shortened. */
  isName?: boolean;
  /** Whether it holds sentences, which are shown whole. */
  isText?: boolean;
  /** Unit of the values in CSV, where the heading has none. */
  unit?: string;
  /** Whether a value is good or bad; the text says so, too. */
  judge?(value: Cell): "good" | "bad" | undefined;
}

export interface Row {
  id: string;
  cells: Cell[];
  onSelect?(): void;
  isSelected?: boolean;
}

/** Downloads rows as CSV. */
export function CsvButton(props: { title: string; columns: string[]; rows: Cell[][] }) {
  const { title, columns, rows } = props;
  return (
    <button
      type="button"
      class="small"
      aria-label={`Download ${title} as CSV`}
      onClick={() => saveText(`${fileName(title)}.csv`, csv(columns, rows), "text/csv")}
    >
      CSV
    </button>
  );
}

/** Where a long word of a heading may be parted on a phone. */
const hyphenated = (name: string) => name.replace(/(\w{6})(\w{6,})/g, "$1\u00ad$2");

const FEW = 12;
/** Letters of a cell that are shown; those of a row to select have fewer. */
const MOST_LETTERS = 300;
const MOST_OF_ROW = 80;
/** Letters of a name that stands in one line. */
const WHOLE_NAME = 16;
const UNSORTED = -1;

export function DataTable(props: {
  title: string;
  columns: Column[];
  rows: Row[];
  /** Column by which rows are sorted at first, the largest on top; without it they keep their order. */
  sortBy?: number;
  /** Show all rows from the start. */
  all?: boolean;
}) {
  const { title, columns, rows } = props;
  const [sort, setSort] = useState<{ column: number; down: boolean }>({
    column: props.sortBy ?? UNSORTED,
    down: props.sortBy !== undefined,
  });
  const [all, setAll] = useState(props.all ?? false);
  const sorted = [...rows];
  if (sort.column !== UNSORTED) {
    sorted.sort((a, b) => compare(a.cells[sort.column], b.cells[sort.column], sort.down));
  }
  const isNumeric = columns.map((_, index) =>
    rows.some((row) => typeof row.cells[index] === "number"),
  );
  const shown = all ? sorted : sorted.slice(0, FEW);
  return (
    <div class="table">
      <div class="scroll" role="region" aria-label={title} tabIndex={0}>
        <table>
          <caption>
            <ShortWords text={title} most={MOST_LETTERS} />
            <CsvButton
              title={title}
              columns={columns.map(({ name, unit }) => (unit ? `${name}, ${unit}` : name))}
              rows={sorted.map((row) => row.cells)}
            />
          </caption>
          <thead>
            <tr>
              {columns.map((column, index) => (
                <th
                  key={column.name}
                  scope="col"
                  class={classOf(column, isNumeric[index])}
                  aria-sort={
                    sort.column === index ? (sort.down ? "descending" : "ascending") : undefined
                  }
                >
                  <button
                    type="button"
                    onClick={() =>
                      setSort({ column: index, down: sort.column === index ? !sort.down : true })
                    }
                  >
                    <ShortWords text={hyphenated(column.name)} most={MOST_OF_ROW} />
                    <span aria-hidden="true">
                      {sort.column === index ? (sort.down ? " ▾" : " ▴") : ""}
                    </span>
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => (
              <tr key={row.id} class={row.isSelected ? "selected" : undefined}>
                {row.cells.map((cell, index) => {
                  const { show, isName, isText } = columns[index];
                  const whole = show?.(cell) ?? (cell === null ? "" : String(cell));
                  const text = isText ? (
                    whole
                  ) : isName ? (
                    <Short text={whole} most={NAME} />
                  ) : (
                    <ShortWords text={whole} most={row.onSelect ? MOST_OF_ROW : MOST_LETTERS} />
                  );
                  const content =
                    index === 0 && row.onSelect ? (
                      <button type="button" class="link" onClick={row.onSelect}>
                        {text}
                      </button>
                    ) : (
                      text
                    );
                  return (
                    <td
                      key={index}
                      class={classes(
                        columns[index].judge?.(cell) ?? classOf(columns[index], isNumeric[index]),
                        isText && "text",
                        !isText && whole.length > (isName ? WHOLE_NAME : NAME) && "long",
                      )}
                    >
                      {content}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length === 0 && <p class="none">No rows.</p>}
      {shown.length < rows.length && (
        <p class="printed">
          The first {shown.length} of {rows.length} rows.
        </p>
      )}
      {rows.length > FEW && !props.all && (
        <button type="button" class="small" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "Show fewer" : `Show all ${rows.length}`}
        </button>
      )}
    </div>
  );
}

function classOf(column: Column, isNumeric: boolean): string | undefined {
  return column.isSpare ? "spare" : isNumeric ? "number" : undefined;
}

const classes = (...names: (string | false | undefined)[]) =>
  names.filter(Boolean).join(" ") || undefined;

function compare(a: Cell, b: Cell, down: boolean): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  const order =
    typeof a === "number" && typeof b === "number"
      ? a - b
      : String(a).localeCompare(String(b), "en", { numeric: true });
  return down ? -order : order;
}
