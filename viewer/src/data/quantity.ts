// Quantities as scenarios write them: a number with a unit.

const FACTORS: Record<string, number> = {
  ps: 1e-12,
  ns: 1e-9,
  us: 1e-6,
  ms: 1e-3,
  s: 1,
  B: 1,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
  "kbit/s": 1e3,
  "Mbit/s": 1e6,
  "Gbit/s": 1e9,
};
const QUANTITY = /^([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?: (\S+))?$/;

/** Values as numbers in the unit of the first one, or null if one of them is no such number. */
export function quantities(
  values: readonly (string | number | null)[],
): { unit: string; numbers: number[] } | null {
  const parts = values.map((value) => QUANTITY.exec(String(value)));
  const unit = parts[0]?.[2] ?? "";
  const numbers: number[] = [];
  for (const part of parts) {
    if (!part) return null;
    const own = part[2] ?? "";
    const factor = own === unit ? 1 : FACTORS[own] / FACTORS[unit];
    if (!Number.isFinite(factor)) return null;
    numbers.push(Number(part[1]) * factor);
  }
  return numbers.length ? { unit, numbers } : null;
}
