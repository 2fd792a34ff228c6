const number = (value: unknown): number => (typeof value === "string" && value.trim() === "" ? Number.NaN : Number(value));
const text = (value: unknown): string => String(value ?? "");
const finite = (value: number): number | string => (Number.isFinite(value) ? value : "");
const numbers = (values: unknown[]): number[] => values.map(number).filter((value) => Number.isFinite(value));

/** The middle of sorted numbers, at a part of their length. */
export function quantile(sorted: number[], part: number): number {
  const at = (sorted.length - 1) * part;
  const [low, high] = [sorted[Math.floor(at)] ?? Number.NaN, sorted[Math.ceil(at)] ?? Number.NaN];
  return low + (high - low) * (at - Math.floor(at));
}

/** Functions of the formula language that look at one case. */
export const FUNCTIONS: Record<string, (...args: unknown[]) => unknown> = {
  abs: (x) => finite(Math.abs(number(x))),
  ceil: (x) => finite(Math.ceil(number(x))),
  floor: (x) => finite(Math.floor(number(x))),
  sqrt: (x) => finite(Math.sqrt(number(x))),
  exp: (x) => finite(Math.exp(number(x))),
  ln: (x) => finite(Math.log(number(x))),
  log: (x) => finite(Math.log10(number(x))),
  sin: (x) => finite(Math.sin(number(x))),
  cos: (x) => finite(Math.cos(number(x))),
  pow: (x, y) => finite(number(x) ** number(y)),
  round: (x, digits = 0) => finite(Math.round(number(x) * 10 ** number(digits)) / 10 ** number(digits)),
  if: (test, then, otherwise = "") => (test === true || test === "true" ? then : otherwise),
  includes: (all, part) => text(all).includes(text(part)),
  beginsWith: (all, part) => text(all).startsWith(text(part)),
  endsWith: (all, part) => text(all).endsWith(text(part)),
  concat: (...parts) => parts.map(text).join(""),
  toUpper: (all) => text(all).toUpperCase(),
  toLower: (all) => text(all).toLowerCase(),
  stringLength: (all) => text(all).length,
  isMissing: (value) => text(value) === "",
  number: (value) => finite(number(value)),
  string: text,
};

/** Functions of the formula language that look at all cases. */
export const AGGREGATES: Record<string, (values: unknown[]) => unknown> = {
  count: (values) => values.filter((value) => text(value) !== "").length,
  sum: (values) => numbers(values).reduce((sum, value) => sum + value, 0),
  mean: (values) => finite(numbers(values).reduce((sum, value) => sum + value, 0) / numbers(values).length),
  median: (values) => finite(quantile(numbers(values).sort((a, b) => a - b), 0.5)),
  min: (values) => finite(numbers(values).reduce((least, value) => Math.min(least, value), Number.POSITIVE_INFINITY)),
  max: (values) => finite(numbers(values).reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY)),
};
