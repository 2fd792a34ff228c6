import { ToolError } from "../../worker/toolError.ts";

/** What a whole number or a number has to be. */
interface Range {
  readonly whole?: boolean;
  readonly min?: number;
  readonly over?: number;
}

function kind(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "a list" : typeof value === "object" ? "an object" : `the ${typeof value} ${JSON.stringify(value)}`;
}

/** The arguments of a call, or an object in them. What does not fit is an `invalid_args` error that says what and where.
 * An optional argument that is `null` counts as absent, because models send it so. */
export class Arguments {
  readonly #members: Record<string, unknown>;
  readonly #path: string;

  constructor(value: unknown, path = "") {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw wrong(path || "arguments", `must be an object, and is ${kind(value)}`);
    }
    this.#members = value as Record<string, unknown>;
    this.#path = path;
  }

  /** The members as they came. */
  get members(): Readonly<Record<string, unknown>> {
    return this.#members;
  }

  /** Where the member stands, as errors name it. */
  at(name: string): string {
    return this.#path ? `${this.#path}.${name}` : name;
  }

  #read(name: string): unknown {
    // A member of the object's prototype is no argument.
    const value = Object.hasOwn(this.#members, name) ? this.#members[name] : undefined;
    return value === null ? undefined : value;
  }

  #required<Value>(name: string, value: Value | undefined): Value {
    if (value === undefined) throw wrong(this.at(name), "is missing");
    return value;
  }

  optionalText(name: string): string | undefined {
    const value = this.#read(name);
    if (value !== undefined && typeof value !== "string") throw wrong(this.at(name), `must be a string, and is ${kind(value)}`);
    return value;
  }

  text(name: string): string {
    const value = this.#required(name, this.optionalText(name));
    if (value.trim() === "") throw wrong(this.at(name), "must not be empty");
    return value;
  }

  oneOf<Value extends string>(name: string, values: readonly Value[]): Value | undefined {
    const value = this.optionalText(name);
    if (value === undefined) return undefined;
    const found = values.find((one) => one === value);
    if (found === undefined) throw wrong(this.at(name), `must be one of ${values.join(", ")}, and is ${kind(value)}`);
    return found;
  }

  optionalNumber(name: string, range: Range = {}): number | undefined {
    const value = this.#read(name);
    if (value === undefined) return undefined;
    if (typeof value !== "number" || !Number.isFinite(value)) throw wrong(this.at(name), `must be a number, and is ${kind(value)}`);
    if (range.whole && !Number.isInteger(value)) throw wrong(this.at(name), `must be a whole number, and is ${value}`);
    if (range.min !== undefined && value < range.min) throw wrong(this.at(name), `must be at least ${range.min}, and is ${value}`);
    if (range.over !== undefined && value <= range.over) throw wrong(this.at(name), `must be greater than ${range.over}, and is ${value}`);
    return value;
  }

  number(name: string, range: Range = {}): number {
    return this.#required(name, this.optionalNumber(name, range));
  }

  flag(name: string): boolean {
    const value = this.#read(name) ?? false;
    if (typeof value !== "boolean") throw wrong(this.at(name), `must be true or false, and is ${kind(value)}`);
    return value;
  }

  /** Deleting has to be confirmed. */
  confirmed(): void {
    if (!this.flag("confirmDelete")) throw wrong(this.at("confirmDelete"), "must be true: what is deleted is gone");
  }

  id(name: string): string | number {
    return id(this.#required(name, this.#read(name)), this.at(name));
  }

  ids(name: string): (string | number)[] {
    return this.list(name).map((one, index) => id(one, `${this.at(name)}[${index}]`));
  }

  list(name: string): unknown[] {
    return this.#required(name, this.optionalList(name));
  }

  optionalList(name: string): unknown[] | undefined {
    const value = this.#read(name);
    if (value !== undefined && !Array.isArray(value)) throw wrong(this.at(name), `must be a list, and is ${kind(value)}`);
    return value;
  }

  /** A list that must hold something. */
  filled(name: string): unknown[] {
    const value = this.list(name);
    if (value.length === 0) throw wrong(this.at(name), "must not be empty");
    return value;
  }

  objects(name: string): Arguments[] {
    return this.filled(name).map((one, index) => new Arguments(one, `${this.at(name)}[${index}]`));
  }

  optionalObjects(name: string): Arguments[] | undefined {
    return this.optionalList(name)?.map((one, index) => new Arguments(one, `${this.at(name)}[${index}]`));
  }

  object(name: string): Arguments {
    return this.#required(name, this.optionalObject(name));
  }

  optionalObject(name: string): Arguments | undefined {
    const value = this.#read(name);
    return value === undefined ? undefined : new Arguments(value, this.at(name));
  }

  /** A value to search for or to write. */
  value(name: string): string | number {
    const value = this.#required(name, this.#read(name));
    if (typeof value === "string" || (typeof value === "number" && Number.isFinite(value))) return value;
    throw wrong(this.at(name), `must be a string or a number, and is ${kind(value)}`);
  }
}

function id(value: unknown, path: string): string | number {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (typeof value !== "string" || value === "") throw wrong(path, `must be an id (a string or a number), and is ${kind(value)}`);
  // CODAP 2 compares ids of cases as numbers.
  return /^\d{1,15}$/.test(value) ? Number(value) : value;
}

/** The error of an argument that does not fit. */
export function wrong(argument: string, problem: string): ToolError {
  return new ToolError("invalid_args", `${argument} ${problem}`, { argument });
}

/** The members that are defined: CODAP reads a member that is present and undefined as a wish to clear it. */
export function present<Members extends Record<string, unknown>>(members: Members): { [Name in keyof Members]: Exclude<Members[Name], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as never;
}
