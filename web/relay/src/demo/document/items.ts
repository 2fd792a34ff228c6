import { casesOf, namedValues, shownCase, write, type Case } from "./cases.ts";
import type { DataDocument } from "./dataDocument.ts";
import { readFormula } from "./formula.ts";
import { attributesOf, MAX_ITEMS, Refusal, rowOf, type Answer, type Collection, type DataContext, type Item } from "./model.ts";
import { readQuery } from "./query.ts";
import { collectionOf, contextOf, neededCollection, type Resource } from "./resource.ts";
import { each, ids, Values } from "./values.ts";

const all = (document: DataDocument, context: DataContext): Case[] => context.collections.flatMap((one) => within(document, context, one));
const within = (document: DataDocument, context: DataContext, one: Collection): Case[] => casesOf(context, one, () => document.newId());

const shownItem = (context: DataContext, item: Item) => ({ id: item.id, values: namedValues(context, item, attributesOf(context)) });

function itemById(context: DataContext, id: string | number | undefined): Item {
  const found = context.items.find((item) => item.id === Number(id));
  if (!found) throw new Refusal(`there is no item ${id} in ${context.name}`);
  return found;
}

/** The items of a case, or the item, that has the id. */
export function itemsOf(document: DataDocument, context: DataContext, id: number): Item[] {
  return all(document, context).find((one) => one.id === id)?.items ?? context.items.filter((item) => item.id === id);
}

function caseById(document: DataDocument, context: DataContext, id: string | undefined): Case {
  const found = all(document, context).find((one) => one.id === Number(id));
  if (!found) throw new Refusal(`there is no case ${id} in ${context.name}`);
  return found;
}

function caseByIndex(document: DataDocument, context: DataContext, resource: Resource): Case {
  const found = within(document, context, neededCollection(context, resource))[Number(resource.selector)];
  if (!found) throw new Refusal(`there is no case at ${resource.selector}`);
  return found;
}

function addItems(document: DataDocument, context: DataContext, values: Values[]): Answer {
  if (context.items.length + values.length > MAX_ITEMS) throw new Refusal(`a data context has at most ${MAX_ITEMS} items`);
  const known = new Set(all(document, context).map(({ id }) => id));
  const attributes = attributesOf(context);
  const made = values.map((one) => {
    const item: Item = { id: document.newId(), values: new Map() };
    write(attributes, [item], one.has("values") ? new Values(one.get("values"), "an item").members : one.members);
    return item;
  });
  context.items.push(...made);
  document.changed(context, "createCases");
  const caseIDs = all(document, context).map(({ id }) => id).filter((id) => !known.has(id));
  return { success: true, caseIDs, itemIDs: made.map(({ id }) => id) };
}

function removeItems(document: DataDocument, context: DataContext, items: Item[]): number[] {
  const gone = new Set(items);
  context.items = context.items.filter((item) => !gone.has(item));
  for (const { id } of items) context.selected.delete(id);
  document.changed(context, "deleteCases");
  return items.map(({ id }) => id);
}

/** Changes cases or items, each given as `{id, values}`. */
function changeMany(document: DataDocument, context: DataContext, values: unknown): number[] {
  const changed = each(values, "cases").flatMap((one) => {
    const id = Number(one.text("id"));
    const items = itemsOf(document, context, id);
    if (items.length === 0) return [];
    write(attributesOf(context), items, new Values(one.get("values"), "a case").members);
    return [id];
  });
  if (changed.length === 0) throw new Refusal(`none of the cases is in ${context.name}`);
  document.changed(context, "updateCases");
  return changed;
}

function changeOne(document: DataDocument, context: DataContext, items: Item[], values: unknown): void {
  const [wanted] = each(values, "a case");
  const nested = wanted?.has("values") ? new Values(wanted.get("values"), "a case") : wanted;
  write(attributesOf(context), items, nested?.members ?? {});
  document.changed(context, "updateCases");
}

const changedItems = (changedCases: number[]): Answer => ({ success: true, values: { changedCases, createdCases: [], deletedCases: [] } });

const item = {
  create: (document: DataDocument, resource: Resource, values: unknown): Answer =>
    addItems(document, contextOf(document, resource), each(values, "an item")),
  get(document: DataDocument, resource: Resource): Answer {
    const context = contextOf(document, resource);
    const found = context.items[Number(resource.selector)];
    if (!found) throw new Refusal(`there is no item at ${resource.selector}`);
    return { success: true, values: shownItem(context, found) };
  },
  update: (document: DataDocument, resource: Resource, values: unknown): Answer =>
    changedItems(changeMany(document, contextOf(document, resource), values)),
  delete(document: DataDocument, resource: Resource, values: unknown): Answer {
    const context = contextOf(document, resource);
    const found = ids(values).map((id) => itemById(context, id));
    return { success: true, values: removeItems(document, context, found) };
  },
};

const itemByID = {
  get(document: DataDocument, resource: Resource): Answer {
    const context = contextOf(document, resource);
    return { success: true, values: shownItem(context, itemById(context, resource.selector)) };
  },
  update(document: DataDocument, resource: Resource, values: unknown): Answer {
    const context = contextOf(document, resource);
    const found = itemById(context, resource.selector);
    changeOne(document, context, [found], values);
    return changedItems([found.id]);
  },
  delete(document: DataDocument, resource: Resource): Answer {
    const context = contextOf(document, resource);
    return { success: true, values: removeItems(document, context, [itemById(context, resource.selector)]) };
  },
};

const itemSearch = {
  get(document: DataDocument, resource: Resource): Answer {
    const context = contextOf(document, resource);
    return { success: true, values: context.items.filter(readQuery(resource.selector ?? "*", context)).map((one) => shownItem(context, one)) };
  },
  delete(document: DataDocument, resource: Resource): Answer {
    const context = contextOf(document, resource);
    return { success: true, values: removeItems(document, context, context.items.filter(readQuery(resource.selector ?? "", context))) };
  },
};

/** What can be done with one case, however it is found. */
const oneCase = (find: (document: DataDocument, context: DataContext, resource: Resource) => Case) => ({
  get(document: DataDocument, resource: Resource): Answer {
    const context = contextOf(document, resource);
    const found = find(document, context, resource);
    return { success: true, values: { case: shownCase(context, found), caseIndex: found.index } };
  },
  update(document: DataDocument, resource: Resource, values: unknown): Answer {
    const context = contextOf(document, resource);
    changeOne(document, context, find(document, context, resource).items, values);
    return { success: true };
  },
  delete(document: DataDocument, resource: Resource): Answer {
    const context = contextOf(document, resource);
    const found = find(document, context, resource);
    removeItems(document, context, found.items);
    return { success: true, values: [found.id] };
  },
});

/** Cases of a collection whose first item passes. */
function search(document: DataDocument, resource: Resource, passes: (context: DataContext) => (item: Item) => boolean): Answer {
  const context = contextOf(document, resource);
  const test = passes(context);
  const found = within(document, context, neededCollection(context, resource)).filter(({ items: [first] }) => first && test(first));
  return { success: true, values: found.map((one) => shownCase(context, one)) };
}

/** Whether a formula is true of an item. */
export function formulaTest(context: DataContext, text: string): (item: Item) => boolean {
  const formula = readFormula(text, context);
  return (one) => formula({ context, item: one, index: rowOf(context, one), depth: 0 }) === true;
}

export const items = {
  item,
  itemByID,
  itemByCaseID: {
    get(document: DataDocument, resource: Resource): Answer {
      const context = contextOf(document, resource);
      const [first] = caseById(document, context, resource.selector).items;
      return { success: true, values: shownItem(context, itemById(context, first?.id)) };
    },
  },
  itemSearch,
  itemCount: { get: (document: DataDocument, resource: Resource): Answer => ({ success: true, values: contextOf(document, resource).items.length }) },
  case: {
    create(document: DataDocument, resource: Resource, values: unknown): Answer {
      const { caseIDs, itemIDs } = addItems(document, contextOf(document, resource), each(values, "a case"));
      return { success: true, values: (caseIDs ?? []).map((id, index) => ({ id, itemID: itemIDs?.[index] })) };
    },
    update: (document: DataDocument, resource: Resource, values: unknown): Answer => ({
      success: true, caseIDs: changeMany(document, contextOf(document, resource), values),
    }),
  },
  caseByID: oneCase((document, context, resource) => caseById(document, context, resource.selector)),
  caseByIndex: oneCase(caseByIndex),
  caseCount: {
    get(document: DataDocument, resource: Resource): Answer {
      const context = contextOf(document, resource);
      return { success: true, values: within(document, context, neededCollection(context, resource)).length };
    },
  },
  caseSearch: {
    get: (document: DataDocument, resource: Resource): Answer => search(document, resource, (context) => readQuery(resource.selector ?? "", context)),
  },
  caseFormulaSearch: {
    get: (document: DataDocument, resource: Resource): Answer => search(document, resource, (context) => formulaTest(context, resource.selector ?? "")),
  },
  allCases: {
    get(document: DataDocument, resource: Resource): Answer {
      const context = contextOf(document, resource);
      const collection = neededCollection(context, resource);
      const cases = within(document, context, collection).map((one) => ({ case: shownCase(context, one), caseIndex: one.index }));
      return { success: true, values: { collection: { id: collection.id, name: collection.name }, cases } };
    },
    delete(document: DataDocument, resource: Resource): Answer {
      const context = contextOf(document, resource);
      collectionOf(context, resource);
      removeItems(document, context, context.items);
      return { success: true };
    },
  },
};
