import { Refusal } from "./model.ts";

/** The values of a request. They come from an agent: nothing about them is certain. */
export class Values {
  readonly #members: Record<string, unknown>;

  constructor(value: unknown, what: string) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Refusal(`the values of ${what} must be an object`);
    this.#members = value as Record<string, unknown>;
  }

  get members(): Record<string, unknown> {
    return this.#members;
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#members, name) && this.#members[name] !== undefined;
  }

  get(name: string): unknown {
    return Object.hasOwn(this.#members, name) ? this.#members[name] : undefined;
  }

  text(name: string): string | undefined {
    const value = this.get(name);
    return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
  }

  number(name: string): number | undefined {
    const value = this.get(name);
    return typeof value === "number" && Number.isFinite(value) ? value : undefined;
  }

  list(name: string): unknown[] {
    const value = this.get(name);
    return Array.isArray(value) ? value : [];
  }
}

/** One or several values, as a list. */
export function each(values: unknown, what: string): Values[] {
  if (values === undefined || values === null) throw new Refusal(`${what} needs values`);
  return (Array.isArray(values) ? values : [values]).map((value) => new Values(value, what));
}

/** Ids, given as numbers or as text, alone or as `{id}`. */
export function ids(values: unknown): number[] {
  const one = (value: unknown): number => {
    if (typeof value === "object" && value !== null && "id" in value) return Number(value.id);
    return typeof value === "number" || typeof value === "string" ? Number(value) : Number.NaN;
  };
  if (!Array.isArray(values)) throw new Refusal("the values must be a list of ids");
  return values.map(one);
}
