import { casesOf } from "./cases.ts";
import type { DataDocument } from "./dataDocument.ts";
import { formulaTest, itemsOf } from "./items.ts";
import type { Answer, DataContext, Item } from "./model.ts";
import { collectionOf, contextOf, type Resource } from "./resource.ts";
import { ids } from "./values.ts";

/** The items that are meant by a list of ids of cases or items, or by a formula. */
function meant(document: DataDocument, context: DataContext, values: unknown): Item[] {
  if (typeof values === "object" && values !== null && "expression" in values && typeof values.expression === "string") {
    return context.items.filter(formulaTest(context, values.expression));
  }
  return ids(values).flatMap((id) => itemsOf(document, context, id));
}

function select(document: DataDocument, resource: Resource, values: unknown, extend: boolean): Answer {
  const context = contextOf(document, resource);
  const items = meant(document, context, values);
  if (!extend) context.selected.clear();
  for (const { id } of items) context.selected.add(id);
  document.changed(context, "selectCases");
  return { success: true };
}

export const selection = {
  selectionList: {
    get(document: DataDocument, resource: Resource): Answer {
      const context = contextOf(document, resource);
      const within = collectionOf(context, resource);
      const values = (within ? [within] : context.collections).flatMap((collection) =>
        casesOf(context, collection, () => document.newId())
          .filter(({ items }) => items.every(({ id }) => context.selected.has(id)))
          .map(({ id }) => ({ caseID: id, collectionID: collection.id, collectionName: collection.name })));
      return { success: true, values };
    },
    create: (document: DataDocument, resource: Resource, values: unknown): Answer => select(document, resource, values, false),
    update: (document: DataDocument, resource: Resource, values: unknown): Answer => select(document, resource, values, true),
  },
};
