import type { Arguments } from "./arguments.ts";
import type { Codap, Tools } from "./codap.ts";
import { collectionOf, DOCUMENT, LATER } from "./collections.ts";
import { contextOf } from "./contexts.ts";
import { formula, OPERATORS } from "./query.ts";

/** How many cases a search returns where nothing else is asked for. */
const SEARCH_LIMIT = 100;

async function count(resource: string, codap: Codap) {
  const { values } = await codap.get(resource);
  return { count: values };
}

async function byIndex(args: Arguments, codap: Codap) {
  const index = args.number("index", { whole: true, min: 0 });
  const { values } = await codap.get(collectionOf(args, DOCUMENT).of(`caseByIndex[${index}]`));
  return { case: values?.case ?? values, index: values?.caseIndex ?? index };
}

async function search(args: Arguments, codap: Codap) {
  const collection = collectionOf(args, DOCUMENT);
  const criteria = args.object("searchCriteria");
  const query = formula({
    attribute: criteria.text("attributeName"),
    operator: criteria.oneOf("operator", OPERATORS) ?? "equals",
    value: criteria.value("value"),
  });
  const limit = args.optionalNumber("limit", { whole: true, min: 0 }) ?? SEARCH_LIMIT;
  const found = await codap.list(collection.of(`caseFormulaSearch[${query}]`));
  const cases = found.slice(0, limit);
  return { cases, count: cases.length, total: found.length };
}

/** Tools that count and find. */
export const caseTools: Tools = {
  get_case_count: (args, codap) => count(collectionOf(args, DOCUMENT).of("caseCount"), codap),
  get_case_by_index: byIndex,
  search_cases: search,

  getItemCount: (args, codap) => {
    const whole = args.optionalText("collection") === undefined;
    return count(whole ? contextOf(args, "dataContext").of("itemCount") : collectionOf(args, LATER).of("caseCount"), codap);
  },
};
