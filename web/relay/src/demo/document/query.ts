import { valueOf } from "./formula.ts";
import { attributesOf, Refusal, rowOf, type DataContext, type Item } from "./model.ts";

type Compare = (one: unknown, other: unknown) => boolean;
type Side = (item: Item) => unknown;

const OPERATORS: Record<string, Compare> = {
  "==": (a, b) => a === b || String(a) === String(b),
  "!=": (a, b) => String(a) !== String(b),
  "<": (a, b) => (a as number) < (b as number),
  "<=": (a, b) => (a as number) <= (b as number),
  ">": (a, b) => (a as number) > (b as number),
  ">=": (a, b) => (a as number) >= (b as number),
};

/** Reads a query of CODAP's `caseSearch` and `itemSearch`: `*`, or two sides with an operator, one of them an attribute. */
export function readQuery(text: string, context: DataContext): (item: Item) => boolean {
  if (text.trim() === "*") return () => true;
  const parts = /^([^=!<>]+)(==|!=|<=|>=|<|>)([^=!<>]+)$/.exec(text);
  const compare = parts?.[2] && OPERATORS[parts[2]];
  if (!compare) throw new Refusal(`the query "${text}" cannot be read`);
  let named = false;
  const side = (raw: string | undefined): Side => {
    const word = (raw ?? "").trim();
    const attribute = attributesOf(context).find(({ name }) => name === word);
    if (attribute) {
      named = true;
      return (item) => plain(valueOf(context, item, attribute, rowOf(context, item)));
    }
    return () => plain(word);
  };
  const [left, right] = [side(parts[1]), side(parts[3])];
  if (!named) throw new Refusal(`the query "${text}" names no attribute`);
  return (item) => compare(left(item), right(item));
}

function plain(value: unknown): unknown {
  if (typeof value !== "string") return value;
  if (value === "true" || value === "false") return value === "true";
  return value.trim() !== "" && Number.isFinite(Number(value)) ? Number(value) : value;
}
