import type { Table, Vector } from "apache-arrow";
import { countingOrder } from "./search";

export type Numbers = Float64Array | Float32Array | Uint32Array | Uint16Array | Uint8Array;

/** A table with sample numbers: columns are sorted by sample at their first use, and kept so. */
export class SampledRows {
  private readonly order: Uint32Array;
  private readonly starts: Uint32Array;
  private readonly unordered = new Map<string, Vector>();
  private readonly columns = new Map<string, Numbers>();

  constructor(table: Table, samples: number) {
    ({ order: this.order, starts: this.starts } = countingOrder(numbers(table, "sample"), samples));
    for (const { name } of table.schema.fields)
      if (name !== "sample") this.unordered.set(name, table.getChild(name)!);
  }

  /** The values of a column at a sample, without a copy. */
  values(name: string, sample: number): Numbers {
    return this.all(name).subarray(this.starts[sample], this.starts[sample + 1]);
  }

  texts(name: string, sample: number): string[] {
    const rows = this.order.subarray(this.starts[sample], this.starts[sample + 1]);
    const column = this.unordered.get(name)!;
    return Array.from(rows, (row) => String(column.get(row)));
  }

  /** The values of a column at a sample as numbers of a kind. */
  take<T extends Uint32Array | Float64Array>(
    name: string,
    sample: number,
    kind: new (values: Numbers) => T,
  ): T {
    return new kind(this.values(name, sample));
  }

  /** The values of a column at all samples, one after the other. */
  all(name: string): Numbers {
    let column = this.columns.get(name);
    if (!column) {
      column = ordered(this.unordered.get(name)!.toArray() as Numbers, this.order);
      this.columns.set(name, column);
      this.unordered.delete(name);
    }
    return column;
  }
}

function ordered(values: Numbers, order: Uint32Array): Numbers {
  const made = values.slice();
  for (let at = 0; at < order.length; at++) made[at] = values[order[at]];
  return made;
}

/** The numbers of a column, without a copy: tables of the page have one batch. */
export function numbers(table: Table, name: string): Numbers {
  return table.getChild(name)!.toArray() as Numbers;
}

export function floats(table: Table, name: string): Float64Array {
  return numbers(table, name) as Float64Array;
}

export function largest(values: ArrayLike<number>): number {
  let most = 1;
  for (let index = 0; index < values.length; index++) most = Math.max(most, values[index]);
  return most;
}
