// A message of the server: a header in JSON, and columns of numbers.

export type Column = Float64Array | Float32Array | Uint32Array | Uint8Array;

export interface Message {
  /** Simulated time of the sample before, and of this one, in picoseconds. */
  from_ps: number;
  time_ps: number;
  /** Simulated time of the trees, if it is not that of the sample. */
  trees_ps?: number;
  classes: string[];
  /** Whether some switch has marked a packet since the fabric began. */
  has_marked?: boolean;
  dcms: string[];
  columns: Record<string, Column>;
  /** The diagnosis as JSON, of a diagnosed subnet. */
  report?: string;
  /** Which subnet or which routes it is of. A page of another one that gets no new routes is old. */
  version: string;
}

const KINDS: Record<string, new (bytes: ArrayBuffer, start: number, length: number) => Column> = {
  f64: Float64Array,
  f32: Float32Array,
  u32: Uint32Array,
  u8: Uint8Array,
};

/** Read a message; python/silvan/viewer/samples.py describes it. */
export function readMessage(bytes: ArrayBuffer): Message {
  const length = new DataView(bytes).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
  const first = Math.ceil((4 + length) / 8) * 8;
  const columns: Record<string, Column> = {};
  for (const [name, [kind, start, count]] of Object.entries(
    header.columns as Record<string, [string, number, number]>,
  ))
    columns[name] = new KINDS[kind](bytes, first + start, count);
  return { ...header, columns };
}
