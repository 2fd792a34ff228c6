import { attributesOf, Refusal, type Attribute, type DataContext, type Item } from "./model.ts";
import { FUNCTIONS, AGGREGATES } from "./functions.ts";

/** The longest formula, and the deepest nesting. */
const MAX_LENGTH = 4_000;
const MAX_DEPTH = 60;

type Scope = { context: DataContext; item: Item; index: number; depth: number };
/** A formula that was read: it computes a value for an item. */
export type Formula = (scope: Scope) => unknown;

type Token = { kind: "number" | "string" | "name" | "quoted" | "operator"; text: string };
const TOKEN =
  /\s*(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|`((?:[^`\\]|\\.)*)`|([\p{L}_][\p{L}\p{N}_]*)|(==|!=|<=|>=|≠|≤|≥|[-+*/%^=<>()&|!,×÷]))/uy;

/** Reads the formula language, as far as this page knows it. What it does not know is a refusal that says where. */
export function readFormula(text: string, context: DataContext): Formula {
  if (text.length > MAX_LENGTH) throw new Refusal(`the formula is longer than ${MAX_LENGTH} characters`);
  const parser = new Parser(tokens(text), context);
  return parser.whole();
}

/** The value of an attribute for an item. A formula that fails is shown as its error. */
export function valueOf(context: DataContext, item: Item, attribute: Attribute, index = 0, depth = 0): unknown {
  if (!attribute.formula) return item.values.get(attribute.id) ?? "";
  if (depth > MAX_DEPTH) return "#the formula refers to itself";
  try {
    return compiled(context, attribute.formula)({ context, item, index, depth: depth + 1 });
  } catch (thrown) {
    return `#${(thrown as Error).message}`;
  }
}

const kept = new WeakMap<DataContext, { version: number; formulas: Map<string, Formula> }>();

function compiled(context: DataContext, text: string): Formula {
  let known = kept.get(context);
  if (known?.version !== context.version) kept.set(context, (known = { version: context.version, formulas: new Map() }));
  const formula = known.formulas.get(text) ?? readFormula(text, context);
  known.formulas.set(text, formula);
  return formula;
}

function tokens(text: string): Token[] {
  const found: Token[] = [];
  let at = 0;
  while (text.slice(at).trim() !== "") {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    if (!match) throw new Refusal(`the formula cannot be read at "${text.slice(at, at + 20)}"`);
    const [, number, string, quoted, name, operator] = match;
    if (number !== undefined) found.push({ kind: "number", text: number });
    else if (string !== undefined) found.push({ kind: "string", text: unescaped(string.slice(1, -1)) });
    else if (quoted !== undefined) found.push({ kind: "quoted", text: unescaped(quoted) });
    else if (name !== undefined) found.push({ kind: "name", text: name });
    else found.push({ kind: "operator", text: operator ?? "" });
    at = TOKEN.lastIndex;
  }
  return found;
}

function unescaped(text: string): string {
  const named: Record<string, string> = { n: "\n", t: "\t", r: "\r" };
  return text.replace(/\\(?:u([0-9a-fA-F]{4})|(.))/gs, (_, code: string | undefined, one: string) =>
    code ? String.fromCharCode(Number.parseInt(code, 16)) : (named[one] ?? one));
}

/** Operators from the weakest to the strongest. */
const LEVELS: Record<string, (one: unknown, other: unknown) => unknown>[] = [
  { or: (a, b) => truth(a) || truth(b), "|": (a, b) => truth(a) || truth(b) },
  { and: (a, b) => truth(a) && truth(b), "&": (a, b) => truth(a) && truth(b) },
  {
    "=": equal, "==": equal, "!=": (a, b) => !equal(a, b), "≠": (a, b) => !equal(a, b),
    "<": (a, b) => order(a, b) < 0, "<=": (a, b) => order(a, b) <= 0, "≤": (a, b) => order(a, b) <= 0,
    ">": (a, b) => order(a, b) > 0, ">=": (a, b) => order(a, b) >= 0, "≥": (a, b) => order(a, b) >= 0,
  },
  { "+": plus, "-": (a, b) => numeric(a, b, (x, y) => x - y) },
  {
    "*": (a, b) => numeric(a, b, (x, y) => x * y), "×": (a, b) => numeric(a, b, (x, y) => x * y),
    "/": (a, b) => numeric(a, b, (x, y) => x / y), "÷": (a, b) => numeric(a, b, (x, y) => x / y),
    "%": (a, b) => numeric(a, b, (x, y) => x % y),
  },
];

class Parser {
  #at = 0;
  #depth = 0;

  constructor(readonly tokens: Token[], readonly context: DataContext) {}

  whole(): Formula {
    const formula = this.#level(0);
    const left = this.tokens[this.#at];
    if (left) throw new Refusal(`the formula goes on with "${left.text}" where it should end`);
    return formula;
  }

  #level(level: number): Formula {
    const operators = LEVELS[level];
    if (!operators) return this.#signed();
    let formula = this.#level(level + 1);
    for (;;) {
      const token = this.tokens[this.#at];
      const plain = token && (token.kind === "operator" || token.kind === "name");
      const operator = plain && Object.hasOwn(operators, token.text) ? operators[token.text] : undefined;
      if (!operator) return formula;
      this.#at += 1;
      const [left, right] = [formula, this.#level(level + 1)];
      formula = (scope) => operator(left(scope), right(scope));
    }
  }

  #signed(): Formula {
    if ((this.#depth += 1) > MAX_DEPTH) throw new Refusal("the formula is nested too deeply");
    try {
      if (this.#take("-")) return minus(this.#signed());
      if (this.#take("!") || this.#take("not")) return not(this.#signed());
      const base = this.#primary();
      if (!this.#take("^")) return base;
      const power = this.#signed();
      return (scope) => numeric(base(scope), power(scope), (x, y) => x ** y);
    } finally {
      this.#depth -= 1;
    }
  }

  #primary(): Formula {
    const token = this.tokens[this.#at];
    this.#at += 1;
    if (!token) throw new Refusal("the formula ends too early");
    if (token.kind === "number") return constant(Number(token.text));
    if (token.kind === "string") return constant(token.text);
    if (token.kind === "quoted") return this.#attribute(token.text);
    if (token.kind === "name") return this.#take("(") ? this.#call(token.text) : this.#named(token.text);
    if (token.text !== "(") throw new Refusal(`the formula has "${token.text}" where a value should be`);
    const inner = this.#level(0);
    if (!this.#take(")")) throw new Refusal('a ")" is missing in the formula');
    return inner;
  }

  #take(text: string): boolean {
    const token = this.tokens[this.#at];
    const found = token?.text === text && (token.kind === "operator" || token.kind === "name");
    if (found) this.#at += 1;
    return found;
  }

  #named(name: string): Formula {
    if (attributesOf(this.context).some((one) => one.name === name)) return this.#attribute(name);
    if (name === "true" || name === "false") return constant(name === "true");
    if (name === "pi" || name === "π") return constant(Math.PI);
    if (name === "caseIndex") return ({ index }) => index + 1;
    return this.#attribute(name);
  }

  #attribute(name: string): Formula {
    const found = attributesOf(this.context).find((one) => one.name === name);
    if (!found) throw new Refusal(`the formula names "${name}", which is no attribute`);
    return ({ context, item, index, depth }) => valueOf(context, item, found, index, depth);
  }

  #call(name: string): Formula {
    const args: Formula[] = [];
    while (!this.#take(")")) {
      if (args.length > 0 && !this.#take(",")) throw new Refusal(`the arguments of ${name} do not end`);
      args.push(this.#level(0));
    }
    if (Object.hasOwn(AGGREGATES, name)) {
      const aggregate = AGGREGATES[name];
      const [of] = args;
      // It is the same for every item, and a formula is read anew when the data change.
      let known: { value: unknown } | undefined;
      return (scope) => {
        const each = () => scope.context.items.map((item, index) => (of ? of({ ...scope, item, index }) : 1));
        return (known ??= { value: aggregate?.(each()) }).value;
      };
    }
    const plain = Object.hasOwn(FUNCTIONS, name) ? FUNCTIONS[name] : undefined;
    if (!plain) throw new Refusal(`this page does not know the function ${name}`);
    return (scope) => plain(...args.map((arg) => arg(scope)));
  }
}

const constant = (value: unknown): Formula => () => value;
const minus = (of: Formula): Formula => (scope) => numeric(0, of(scope), (_, y) => -y);
const not = (of: Formula): Formula => (scope) => !truth(of(scope));

function truth(value: unknown): boolean {
  return value === true || value === "true" || (typeof value === "number" && value !== 0);
}

/** A value as a number; text that is none is `NaN`. */
export function asNumber(value: unknown): number {
  if (typeof value === "number") return value;
  return typeof value === "string" && value.trim() !== "" ? Number(value) : Number.NaN;
}

function equal(one: unknown, other: unknown): boolean {
  const [x, y] = [asNumber(one), asNumber(other)];
  return Number.isNaN(x) || Number.isNaN(y) ? String(one ?? "") === String(other ?? "") : x === y;
}

/** Less than, equal to or greater than zero; `NaN` if one of them is missing. */
function order(one: unknown, other: unknown): number {
  if (one === "" || other === "" || one == null || other == null) return Number.NaN;
  const [x, y] = [asNumber(one), asNumber(other)];
  if (!Number.isNaN(x) && !Number.isNaN(y)) return x - y;
  return String(one) < String(other) ? -1 : Number(String(one) > String(other));
}

function numeric(one: unknown, other: unknown, of: (x: number, y: number) => number): unknown {
  const value = of(asNumber(one), asNumber(other));
  return Number.isFinite(value) ? value : "";
}

function plus(one: unknown, other: unknown): unknown {
  const [x, y] = [asNumber(one), asNumber(other)];
  return Number.isNaN(x) || Number.isNaN(y) ? `${one ?? ""}${other ?? ""}` : x + y;
}
