import { wrong } from "./arguments.ts";

/** How a case is compared in a search. */
export const OPERATORS = ["equals", "contains", "startsWith", "endsWith", "greaterThan", "lessThan"] as const;
export type Operator = (typeof OPERATORS)[number];

/** What is searched for. */
export interface Criterion {
  readonly attribute: string;
  readonly operator: Operator;
  readonly value: string | number;
}

/** The formula that is true of the cases that are searched for, for CODAP's `caseFormulaSearch`.
 *
 * CODAP's older `caseSearch` has no quotes: it would take a value that happens to be the name of an attribute for that attribute. */
export function formula({ attribute, operator, value }: Criterion): string {
  const name = attributeName(attribute);
  switch (operator) {
    case "equals":
      return `${name} = ${literal(value)}`;
    case "greaterThan":
      return `${name} > ${ordered(value)}`;
    case "lessThan":
      return `${name} < ${ordered(value)}`;
    case "contains":
      return `includes(${name}, ${text(String(value))})`;
    case "startsWith":
      return `beginsWith(${name}, ${text(String(value))})`;
    case "endsWith":
      return `endsWith(${name}, ${text(String(value))})`;
  }
}

/** The attribute in backquotes, which every name may stand in. */
function attributeName(name: string): string {
  if (name.includes("]")) {
    throw wrong("searchCriteria.attributeName", `must not contain "]", which ends a search in CODAP's selectors; rename the attribute first`);
  }
  return `\`${name.replace(/[\\`]/g, "\\$&")}\``;
}

function literal(value: string | number): string {
  return typeof value === "number" ? String(value) : text(value);
}

/** A number that was given as a string is compared as the number. */
function ordered(value: string | number): string {
  if (typeof value === "number") return String(value);
  return value.trim() !== "" && Number.isFinite(Number(value)) ? String(Number(value)) : text(value);
}

/** A string of the formula language. What ends a string or a selector, or would be taken for the name of an attribute, is escaped. */
function text(value: string): string {
  const escaped = value.replace(/["\\]/g, "\\$&").replace(/[\u0000-\u001f\u007f\u2028\u2029[\]`]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
  return `"${escaped}"`;
}
