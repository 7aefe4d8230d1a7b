// Units of bytes, of time, of rates in bit/s and of lengths in metres.
const DIMENSIONS: Record<string, number>[] = [
  {
    B: 1,
    kB: 1e3,
    KiB: 1024,
    MB: 1e6,
    MiB: 1024 ** 2,
    GB: 1e9,
    GiB: 1024 ** 3,
    TB: 1e12,
    TiB: 1024 ** 4,
  },
  { ps: 1e-12, ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1 },
  {
    "bit/s": 1,
    "kbit/s": 1e3,
    "Mbit/s": 1e6,
    "Gbit/s": 1e9,
    "Tbit/s": 1e12,
    "B/s": 8,
    "kB/s": 8e3,
    "MB/s": 8e6,
    "GB/s": 8e9,
    "TB/s": 8e12,
    "KiB/s": 8 * 1024,
    "MiB/s": 8 * 1024 ** 2,
    "GiB/s": 8 * 1024 ** 3,
  },
  { mm: 1e-3, cm: 1e-2, m: 1, km: 1e3 },
];
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
    const factor = factorBetween(part[2] ?? "", unit);
    if (factor === undefined) return null;
    numbers.push(Number(part[1]) * factor);
  }
  return numbers.length ? { unit, numbers } : null;
}

/** How many of another unit a unit is, if both are of the same dimension. */
function factorBetween(own: string, unit: string): number | undefined {
  if (own === unit) return 1;
  const factors = DIMENSIONS.find((one) => own in one && unit in one);
  return factors && factors[own] / factors[unit];
}
