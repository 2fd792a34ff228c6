import { ToolError } from "../../worker/toolError.ts";
import { Arguments, wrong } from "./arguments.ts";
import { type Codap, refusal, type Tools } from "./codap.ts";
import { knownCollection } from "./collections.ts";
import { contextOf, structureOf } from "./contexts.ts";
import type { ContextResource } from "./resource.ts";
import type { CodapRequest } from "./types.ts";

type Id = string | number;

/** An item: a case of the lowest collection with what its parents have. */
interface Item {
  id?: Id;
  values?: Record<string, unknown>;
}

interface Change {
  id: Id;
  values: Readonly<Record<string, unknown>>;
}

/** Names as CODAP compares them: it writes what is no letter, digit or underscore as an underscore. */
const canonical = (name: unknown) => String(name).trim().replace(/\W/gu, "_");

/** Adds items. CODAP overlooks values of attributes that it does not know, and the collection, which only says where these stand. */
async function create(args: Arguments, context: ContextResource, collection: string | undefined, codap: Codap) {
  const items = args.objects("items").map(({ members }) => members);
  const { name, collections, attributes } = await structureOf(context, codap);
  const wanted = collection === undefined ? undefined : args.text(collection);
  if (collection !== undefined && collections?.some(({ id, name, title }) => [String(id), name, title].includes(wanted)) === false) {
    const there = collections.map((one) => one.name).join(", ") || "none";
    throw wrong(collection, `is no collection of ${name}: ${JSON.stringify(wanted)}; there are ${there}`);
  }
  const known = new Set(attributes?.map(canonical));
  const unknownAttributes = attributes === undefined ? [] : [...new Set(items.flatMap(Object.keys))].filter((one) => !known.has(canonical(one)));
  const { itemIDs = [], caseIDs = [] } = await codap.create(context.of("item"), items);
  return { itemIDs, caseIDs, count: items.length, ...(unknownAttributes.length > 0 && { unknownAttributes }) };
}

/** The names of the attributes of the collection, where the arguments name one: items are then cut to these. */
async function columns(args: Arguments, context: ContextResource, codap: Codap): Promise<Set<unknown> | undefined> {
  if (args.optionalText("collection") === undefined) return undefined;
  const collection = context.collection(args.text("collection"), args.at("collection"));
  const attributes = (await codap.list(collection.of("attributeList"))) as { name?: unknown }[];
  return new Set(attributes.map(({ name }) => name));
}

function cut(item: Item, columns: Set<unknown> | undefined): Item {
  if (columns === undefined || item.values === undefined) return item;
  return { ...item, values: Object.fromEntries(Object.entries(item.values).filter(([name]) => columns.has(name))) };
}

async function list(context: ContextResource, codap: Codap, limit?: number, wanted?: Set<unknown>) {
  const all = (await codap.list(context.of("itemSearch[*]"))) as Item[];
  const items = all.slice(0, limit).map((item) => cut(item, wanted));
  return { items, count: items.length, total: all.length };
}

async function read(context: ContextResource, id: Id, argument: string, codap: Codap, wanted?: Set<unknown>) {
  const { values } = await codap.get(context.itemById(id, argument));
  return { item: cut(values ?? { id }, wanted) };
}

async function update(context: ContextResource, changes: Change[], codap: Codap) {
  const { values } = await codap.update(context.of("item"), changes);
  const ids = (name: string): Id[] => (Array.isArray(values?.[name]) ? values[name] : []);
  const changed = ids("changedCases");
  // CODAP 3 says which ids it found; CODAP 2 does not.
  const notFound = Array.isArray(values?.changedCases) ? changes.map(({ id }) => id).filter((id) => !changed.includes(id)) : [];
  return { updated: true, count: changes.length - notFound.length, notFound, createdCases: ids("createdCases"), deletedCases: ids("deletedCases") };
}

/** Deletes one item after the other. What could not be deleted is told at the end, with what could. */
async function remove(context: ContextResource, ids: Id[], argument: string, codap: Codap) {
  const requests = ids.map((id, index): [Id, CodapRequest] => {
    return [id, { action: "delete", resource: context.itemById(id, `${argument}[${index}]`) }];
  });
  const deleted: Id[] = [];
  const failed: { id: Id; message: string }[] = [];
  for (const [id, request] of requests) {
    const answer = await codap.try(request);
    if (answer.success) deleted.push(id);
    else failed.push({ id, message: refusal(answer, request) });
  }
  const [first] = failed;
  if (first !== undefined) {
    throw new ToolError("codap_error", `${failed.length} of ${ids.length} items could not be deleted; item ${first.id}: ${first.message}`, { deleted, failed });
  }
  return { deleted: true, itemIDs: deleted, count: deleted.length };
}

function filled(ids: Id[], argument: string): Id[] {
  if (ids.length === 0) throw wrong(argument, "must not be empty");
  return ids;
}

/** An item of `updateItems`: its new values stand beside its id, or in `values`. */
function change(item: Arguments): Change {
  const { id: _, ...beside } = item.members;
  const names = Object.keys(beside);
  const values = names.length === 1 && typeof beside.values === "object" ? item.object("values").members : beside;
  if (Object.keys(values).length === 0) throw wrong(item.at("id"), "has no values beside it to write");
  return { id: item.id("id"), values };
}

/** Tools for the rows of a data set. */
export const itemTools: Tools = {
  create_items: (args, codap) => create(args, contextOf(args, "dataContextName"), "collectionName", codap),
  get_items: (args, codap) => list(contextOf(args, "dataContextName"), codap, args.optionalNumber("limit", { whole: true, min: 0 })),
  get_item_by_id: (args, codap) => read(contextOf(args, "dataContextName"), args.id("itemId"), "itemId", codap),
  update_items: (args, codap) => {
    const changes = args.objects("updates").map((one) => ({ id: one.id("id"), values: one.object("values").members }));
    return update(contextOf(args, "dataContextName"), changes, codap);
  },
  delete_items: async (args, codap) => {
    args.confirmed();
    return remove(contextOf(args, "dataContextName"), filled(args.ids("itemIds"), "itemIds"), "itemIds", codap);
  },

  createItems: (args, codap) => {
    const collection = args.optionalText("collection") === undefined ? undefined : "collection";
    return create(args, contextOf(args, "dataContext"), collection, codap);
  },
  getAllItems: async (args, codap) => {
    const context = contextOf(args, "dataContext");
    return list(context, codap, undefined, await columns(args, context, codap));
  },
  getItemByID: async (args, codap) => {
    const context = contextOf(args, "dataContext");
    const id = args.id("itemID");
    return read(context, id, "itemID", codap, await columns(args, context, codap));
  },
  updateItems: async (args, codap) => {
    const context = contextOf(args, "dataContext");
    const changes = args.objects("items").map(change);
    await knownCollection(args, "collection", context, codap);
    return update(context, changes, codap);
  },
  deleteItems: async (args, codap) => {
    const context = contextOf(args, "dataContext");
    const ids = filled(args.ids("items"), "items");
    await knownCollection(args, "collection", context, codap);
    return remove(context, ids, "items", codap);
  },
};
