import { Fragment } from "preact";
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
  /** Whether only CSV has it, because the page shows its values together with those of another one. */
  isFileOnly?: boolean;
  /** Whether a value is good or bad; the text says so, too. */
  judge?(value: Cell): "good" | "bad" | undefined;
}

export interface Row {
  id: string;
  cells: Cell[];
  /** What the page shows instead of a value, by the place of the column. */
  texts?: Record<number, string>;
  /** Sentences below the values, over the width of the table. */
  more?: string;
  onSelect?(): void;
  isSelected?: boolean;
}

/** All rows of a table of which the page has the first ones: how many, and their values. */
export interface Whole {
  count: number;
  cells(): Cell[][];
}

/** Rows that the page has of a table; only the file has more. */
const MOST_ROWS = 1000;

/** The first rows of a table for the page, and the values of all for the file. */
export function firstRows<One>(
  all: readonly One[],
  cellsOf: (one: One) => Cell[],
  rowOf: (one: One) => Omit<Row, "cells">,
): { rows: Row[]; whole: Whole } {
  const rows = all.slice(0, MOST_ROWS).map((one) => ({ ...rowOf(one), cells: cellsOf(one) }));
  return { rows, whole: { count: all.length, cells: () => all.map(cellsOf) } };
}

/** Columns of a table that is a part of a larger one: the file says so in the heading of the first one. */
export function ofPart([first, ...others]: Column[], part: string): Column[] {
  return [{ ...first, unit: [first.unit, `of ${part}`].filter(Boolean).join(", ") }, ...others];
}

export function CsvButton(props: { title: string; columns: string[]; rows(): Cell[][] }) {
  const { title, columns, rows } = props;
  return (
    <button
      type="button"
      class="small"
      aria-label={`Download ${title} as CSV`}
      onClick={() => saveText(`${fileName(title)}.csv`, csv(columns, rows()), "text/csv")}
    >
      CSV
    </button>
  );
}

/** Where a long word of a heading may be parted on a phone. */
const hyphenated = (name: string) => name.replace(/(\w{6})(\w{6,})/g, "$1\u00ad$2");

const FEW = 12;
/** Rows of a report, which is also read on paper. */
export const FEW_OF_REPORT = 40;
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
  whole?: Whole;
  /** Column by which rows are sorted at first, the largest on top; without it they keep their order. */
  sortBy?: number;
  all?: boolean;
  /** Rows that are shown until all are wanted. */
  few?: number;
}) {
  const { title, columns, rows, whole, few = FEW } = props;
  const [sort, setSort] = useState<{ column: number; down: boolean }>({
    column: props.sortBy ?? UNSORTED,
    down: props.sortBy !== undefined,
  });
  const [all, setAll] = useState(props.all ?? false);
  const order = (a: Cell[], b: Cell[]) =>
    sort.column === UNSORTED ? 0 : compare(a[sort.column], b[sort.column], sort.down);
  const sorted = [...rows].sort((a, b) => order(a.cells, b.cells));
  const count = whole?.count ?? rows.length;
  const isNumeric = columns.map((_, index) =>
    rows.some((row) => typeof row.cells[index] === "number"),
  );
  const shown = all ? sorted : sorted.slice(0, few);
  return (
    <div class="table">
      <div class="scroll" role="region" aria-label={title} tabIndex={0}>
        <table>
          <caption>
            <ShortWords text={title} most={MOST_LETTERS} />
            <CsvButton
              title={title}
              columns={columns.map(({ name, unit }) => (unit ? `${name}, ${unit}` : name))}
              rows={() => (whole?.cells() ?? rows.map(({ cells }) => cells)).sort(order)}
            />
          </caption>
          <thead>
            <tr>
              {columns.map((column, index) =>
                column.isFileOnly ? null : (
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
                ),
              )}
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => (
              <Fragment key={row.id}>
                <tr class={classes(row.isSelected && "selected", row.more && "above")}>
                  {row.cells.map((cell, index) => {
                    const { show, isFileOnly, isName, isText } = columns[index];
                    if (isFileOnly) return null;
                    const whole =
                      row.texts?.[index] ?? show?.(cell) ?? (cell === null ? "" : String(cell));
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
                {row.more && (
                  <tr class="more">
                    <td colSpan={columns.filter((column) => !column.isFileOnly).length}>
                      <p>{row.more}</p>
                    </td>
                  </tr>
                )}
              </Fragment>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length === 0 && <p class="none">No rows.</p>}
      {shown.length < count && (
        <p class="printed">
          The first {shown.length} of {count} rows.
        </p>
      )}
      {rows.length > few && !props.all && (
        <button type="button" class="small" aria-expanded={all} onClick={() => setAll(!all)}>
          {all
            ? "Show fewer"
            : count > rows.length
              ? `Show ${rows.length} of ${count}`
              : `Show all ${count}`}
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
