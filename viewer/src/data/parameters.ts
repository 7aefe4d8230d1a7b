import { quantities } from "./quantity";

export interface RunCurves {
  key: string;
  unit: string;
  curves: RunCurve[];
}

export interface RunCurve {
  /** Values of the other keys in which the runs differ; empty if there are none. */
  label: string;
  x: number[];
  /** Runs behind each point. */
  runs: number[][];
}

/** Keys that say what is recorded and how a run is named, and not what is simulated. */
export const DESCRIBING = /^(name|description|probe\.|run\.seed$)/;
const SEED = "run.seed";

/** Curves over the first quantity with neighbours, one per combination of independent other keys; null without one. */
export function curvesOfRuns(runs: readonly Record<string, string>[]): RunCurves | null {
  const all = Object.keys(runs[0] ?? {});
  const keys = all.filter((key) => !DESCRIBING.test(key));
  // Seeds are no quantity: they are an axis where there is no other.
  const axes = keys.length ? keys : all.filter((key) => key === SEED);
  for (const key of axes) {
    const found = quantities(runs.map((run) => run[key]));
    if (!found) continue;
    const others = keys.filter(
      (name) => name !== key && !isInProportion(runs, name, found.numbers),
    );
    const curves = grouped(runs, others, found.numbers);
    if (curves.some(({ x }) => x.length > 1)) return { key, unit: found.unit, curves };
  }
  return null;
}

/** As thresholds follow the size of a buffer by default. */
function isInProportion(
  runs: readonly Record<string, string>[],
  key: string,
  values: readonly number[],
): boolean {
  const own = quantities(runs.map((run) => run[key]));
  return (
    own !== null &&
    own.numbers.every((value, at) => {
      const [one, other] = [value * values[0], own.numbers[0] * values[at]];
      return Math.abs(one - other) <= 1e-6 * Math.abs(other);
    })
  );
}

function grouped(
  runs: readonly Record<string, string>[],
  others: readonly string[],
  values: readonly number[],
): RunCurve[] {
  const groups = new Map<string, Map<number, number[]>>();
  runs.forEach((run, place) => {
    const label = others.map((key) => `${key} = ${run[key] || "not set"}`).join(", ");
    const points = groups.get(label) ?? new Map<number, number[]>();
    groups.set(label, points);
    points.set(values[place], [...(points.get(values[place]) ?? []), place]);
  });
  return Array.from(groups, ([label, points]) => {
    const sorted = [...points].sort((a, b) => a[0] - b[0]);
    return { label, x: sorted.map(([x]) => x), runs: sorted.map(([, behind]) => behind) };
  });
}
