import { valueOf } from "./formula.ts";
import { byName, rowOf, type Attribute, type Collection, type DataContext, type Item } from "./model.ts";

/** The items that belong together at one level of the hierarchy. At the innermost level every item is a case. */
export interface Case {
  readonly id: number;
  readonly collection: Collection;
  readonly index: number;
  readonly parent: Case | undefined;
  readonly children: Case[];
  readonly items: Item[];
}

const kept = new WeakMap<DataContext, { version: number; cases: Map<number, Case[]> }>();

/** The cases of a collection. */
export function casesOf(context: DataContext, collection: Collection, newId: () => number): Case[] {
  let known = kept.get(context);
  if (known?.version !== context.version) {
    kept.set(context, (known = { version: context.version, cases: derive(context, newId) }));
  }
  return known.cases.get(collection.id) ?? [];
}

/** Items with the same values down to a level are one case of that level. */
function derive(context: DataContext, newId: () => number): Map<number, Case[]> {
  const cases = new Map<number, Case[]>();
  let above = new Map<Item, Case>();
  context.collections.forEach((collection, level) => {
    const innermost = level === context.collections.length - 1;
    const found = new Map<string, Case>();
    const here = new Map<Item, Case>();
    context.items.forEach((item, row) => {
      const parent = above.get(item);
      const shared = () => JSON.stringify(collection.attributes.map((attribute) => valueOf(context, item, attribute, row)));
      const key = innermost ? `item ${item.id}` : `${parent?.id ?? ""} ${shared()}`;
      let one = found.get(key);
      if (!one) {
        one = { id: idOf(context, `${collection.id} ${key}`, newId), collection, index: found.size, parent, children: [], items: [] };
        parent?.children.push(one);
        found.set(key, one);
      }
      one.items.push(item);
      here.set(item, one);
    });
    cases.set(collection.id, [...found.values()]);
    above = here;
  });
  return cases;
}

function idOf(context: DataContext, key: string, newId: () => number): number {
  const id = context.caseIds.get(key) ?? newId();
  context.caseIds.set(key, id);
  return id;
}

/** The values of an item by the names of attributes. */
export function namedValues(context: DataContext, item: Item, attributes: Attribute[]): Record<string, unknown> {
  const row = rowOf(context, item);
  return Object.fromEntries(attributes.map((attribute) => [attribute.name, valueOf(context, item, attribute, row)]));
}

/** A case, as CODAP shows it. */
export function shownCase(context: DataContext, one: Case): Record<string, unknown> {
  const [first] = one.items;
  return {
    id: one.id,
    ...(one.parent && { parent: one.parent.id }),
    collection: { id: one.collection.id, name: one.collection.name },
    values: first ? namedValues(context, first, one.collection.attributes) : {},
    children: one.children.map(({ id }) => id),
  };
}

/** Writes values into items. Names that are no attribute, and attributes with a formula, are left alone. */
export function write(attributes: Attribute[], items: Item[], values: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(values)) {
    const attribute = byName(attributes, name);
    if (!attribute || attribute.formula) continue;
    for (const item of items) item.values.set(attribute.id, value ?? "");
  }
}
