/** Where values stand along an axis. */
export interface Scale {
  readonly ticks: { readonly at: number; readonly text: string }[];
  /** The place of a value, or `undefined` if it has none. */
  place(value: unknown): number | undefined;
}

/** The most categories that an axis names. */
const MAX_CATEGORIES = 40;

/** The value as a number, if it is one. */
export function numberOf(value: unknown): number | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? value : undefined;
  if (typeof value !== "string" || value.trim() === "") return undefined;
  const number = Number(value);
  return Number.isFinite(number) ? number : undefined;
}

/** Whether most of the values are numbers. */
export function isNumeric(values: unknown[]): boolean {
  const there = values.filter((value) => value !== "" && value !== null && value !== undefined);
  return there.length > 0 && there.filter((value) => numberOf(value) !== undefined).length * 2 > there.length;
}

/** A round step that divides a span into about so many parts. */
function step(span: number, parts: number): number {
  const rough = span / parts || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  return ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
}

/** A scale of numbers between two places. */
export function linear(values: number[], from: number, to: number, zero = false): Scale {
  const least = values.reduce((one, other) => Math.min(one, other), zero ? 0 : Number.POSITIVE_INFINITY);
  const most = values.reduce((one, other) => Math.max(one, other), zero ? 1 : Number.NEGATIVE_INFINITY);
  const [low, high] = Number.isFinite(least) ? [least, most === least ? least + 1 : most] : [0, 1];
  const by = step(high - low, 5);
  const [first, last] = [Math.floor(low / by) * by, Math.ceil(high / by) * by];
  const place = (value: unknown) => {
    const number = numberOf(value);
    return number === undefined ? undefined : from + ((number - first) / (last - first)) * (to - from);
  };
  const ticks = [];
  for (let at = first; at <= last + by / 2 && ticks.length < 20; at += by) {
    const value = Number(at.toPrecision(12));
    ticks.push({ at: place(value) ?? from, text: String(value) });
  }
  return { ticks, place };
}

/** A scale of categories, in the order in which they occur. */
export function categories(values: unknown[], from: number, to: number): Scale {
  const names = [...new Set(values.map(String).filter((value) => value !== ""))].slice(0, MAX_CATEGORIES);
  const width = (to - from) / Math.max(names.length, 1);
  const place = (value: unknown) => {
    const at = names.indexOf(String(value));
    return at < 0 ? undefined : from + (at + 0.5) * width;
  };
  return { ticks: names.map((text) => ({ at: place(text) ?? from, text })), place };
}
