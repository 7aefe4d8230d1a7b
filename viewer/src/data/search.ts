/** Index of the first value above a limit; the values ascend. */
export function upperBound(values: ArrayLike<number>, limit: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Rows ordered by a key below `keys`, and where each key starts; rows of one key keep their order. */
export function countingOrder(
  of: ArrayLike<number>,
  keys: number,
): { order: Uint32Array; starts: Uint32Array } {
  const starts = new Uint32Array(keys + 1);
  for (let row = 0; row < of.length; row++) starts[of[row] + 1]++;
  for (let key = 0; key < keys; key++) starts[key + 1] += starts[key];
  const next = starts.slice();
  const order = new Uint32Array(of.length);
  for (let row = 0; row < of.length; row++) order[next[of[row]]++] = row;
  return { order, starts };
}
