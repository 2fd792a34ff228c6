import type { DataDocument } from "./dataDocument.ts";
import { makeCollection, shownCollection } from "./collections.ts";
import { byName, MAX_CONTEXTS, Refusal, type Answer, type DataContext } from "./model.ts";
import { contextOf, type Resource } from "./resource.ts";
import { each, Values } from "./values.ts";

const short = ({ id, name, title }: DataContext) => ({ name, id, title });

/** A data context, as CODAP shows it. */
function shown(context: DataContext): Record<string, unknown> {
  const { id, name, title, description } = context;
  const collections = context.collections.map((collection) => shownCollection(context, collection));
  return { type: "DG.DataContext", document: 1, guid: id, id, name, title, description, collections };
}

function create(document: DataDocument, _: Resource, values: unknown): Answer {
  const [made] = each(values, "a data context");
  if (!made) throw new Refusal("a data context needs values");
  const name = made.text("name") || `Data_Set_${document.contexts.length + 1}`;
  const same = document.contexts.find((one) => one.name === name);
  if (same) return { success: true, values: short(same) };
  if (document.contexts.length >= MAX_CONTEXTS) throw new Refusal(`there are ${MAX_CONTEXTS} data contexts already`);
  const context: DataContext = {
    id: document.newId(), name, title: made.text("title") ?? name, description: made.text("description") ?? "", collections: [], items: [],
    selected: new Set(), caseIds: new Map(), version: 0,
  };
  // As in CODAP, a data context is never without a collection; the first that is asked for takes its place.
  const wanted = made.list("collections");
  for (const one of wanted.length > 0 ? wanted : [{ name: "Cases" }]) makeCollection(document, context, new Values(one, "a collection"));
  document.contexts.push(context);
  document.tell("documentChangeNotice", { operation: "dataContextCountChanged" });
  return { success: true, values: short(context) };
}

function update(document: DataDocument, resource: Resource, values: unknown): Answer {
  const context = contextOf(document, resource);
  const [wanted] = each(values, "a data context");
  const metadata = wanted?.get("metadata");
  const described = metadata ? new Values(metadata, "metadata") : wanted;
  const name = wanted?.text("name");
  const other = name === undefined ? undefined : byName(document.contexts, name);
  if (other && other !== context) throw new Refusal(`there is a data context ${name} already`);
  if (name) {
    for (const { specific } of document.components) if (specific.dataContext === context.name) specific.dataContext = name;
    context.name = name;
  }
  context.title = wanted?.text("title") ?? context.title;
  context.description = described?.text("description") ?? context.description;
  document.changed(context, "updateDataContext");
  return { success: true };
}

function remove(document: DataDocument, resource: Resource): Answer {
  const context = contextOf(document, resource);
  document.contexts.splice(document.contexts.indexOf(context), 1);
  // What shows the data goes with it.
  document.components = document.components.filter(({ specific }) => specific.dataContext !== context.name);
  document.changed(context, "deleteDataContext");
  document.tell("documentChangeNotice", { operation: "dataContextCountChanged" });
  return { success: true };
}

export const dataContexts = {
  dataContext: {
    create, update, delete: remove,
    get: (document: DataDocument, resource: Resource): Answer => ({ success: true, values: shown(contextOf(document, resource)) }),
    notify: (document: DataDocument, resource: Resource): Answer => (contextOf(document, resource), { success: true, values: {} }),
  },
  dataContextList: {
    get: (document: DataDocument): Answer => ({ success: true, values: document.contexts.map((one) => ({ ...short(one), guid: one.id })) }),
  },
};
