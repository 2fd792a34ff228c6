import { type Arguments, present, wrong } from "./arguments.ts";
import { attributes, type AttributeDefinition } from "./attributeDefinition.ts";
import type { Codap, Tools } from "./codap.ts";
import { contextOf, newTitle } from "./contexts.ts";
import type { CollectionResource, ContextResource } from "./resource.ts";

/** What a set of tools calls the arguments that name a data context and a collection. */
export interface Naming {
  readonly context: string;
  readonly collection: string;
}
export const DOCUMENT: Naming = { context: "dataContextName", collection: "collectionName" };
export const LATER: Naming = { context: "dataContext", collection: "collection" };

/** The collection that the arguments name. */
export function collectionOf(args: Arguments, { context, collection }: Naming): CollectionResource {
  return contextOf(args, context).collection(args.text(collection), args.at(collection));
}

/** What CODAP says about the collection that an argument may name. A name that it does not know ends the call: the other
 * requests would overlook it. */
export async function knownCollection(args: Arguments, argument: string, context: ContextResource, codap: Codap): Promise<{ id?: unknown; name?: unknown } | undefined> {
  const name = args.optionalText(argument);
  if (name === undefined) return undefined;
  const { values } = await codap.get(context.collection(args.text(argument), args.at(argument)).path);
  return values ?? { name };
}

interface CollectionDefinition {
  name: string;
  title?: string;
  description?: string;
  parent?: string;
  attrs?: AttributeDefinition[];
}

async function create(context: ContextResource, collection: CollectionDefinition, codap: Codap) {
  const { values } = await codap.create(context.of("collection"), [collection]);
  const [made] = Array.isArray(values) ? values : [values];
  return { collection: made ?? { name: collection.name } };
}

async function list(context: ContextResource, codap: Codap) {
  const collections = await codap.list(context.of("collectionList"));
  return { collections, count: collections.length };
}

async function read(collection: CollectionResource, codap: Codap) {
  const { values } = await codap.get(collection.path);
  return { collection: values };
}

/** As with data contexts, a new name becomes the title. */
async function update(args: Arguments, codap: Codap) {
  const collection = collectionOf(args, DOCUMENT);
  const title = newTitle(args);
  if (title === undefined) throw wrong("arguments", "must hold something to change: newName or title");
  await codap.update(collection.path, { title });
  return { updated: true, collection: { name: collection.name, title } };
}

async function remove(args: Arguments, codap: Codap) {
  args.confirmed();
  const collection = collectionOf(args, DOCUMENT);
  await codap.delete(collection.path);
  return { deleted: true, collection: { name: collection.name } };
}

/** Tools for the levels of a data set. */
export const collectionTools: Tools = {
  create_collection: (args, codap) => {
    const collection = present({ name: args.text("collectionName"), parent: args.optionalText("parent"), attrs: attributes(args, "attributes") });
    return create(contextOf(args, "dataContextName"), collection, codap);
  },
  get_collections: (args, codap) => list(contextOf(args, "dataContextName"), codap),
  get_collection: (args, codap) => read(collectionOf(args, DOCUMENT), codap),
  update_collection: update,
  delete_collection: remove,

  createCollection: (args, codap) => {
    const given = args.object("collection");
    const collection = present({
      name: given.text("name"),
      title: given.optionalText("title"),
      description: given.optionalText("description"),
      parent: given.optionalText("parent"),
      attrs: attributes(given, "attrs"),
    });
    return create(contextOf(args, "dataContext"), collection, codap);
  },
  getCollectionList: (args, codap) => list(contextOf(args, "dataContext"), codap),
  getCollection: (args, codap) => read(collectionOf(args, LATER), codap),
};
