import { type Arguments, present, wrong } from "./arguments.ts";
import { attributes, type AttributeDefinition } from "./attributeDefinition.ts";
import type { Codap, Tools } from "./codap.ts";
import { ContextResource } from "./resource.ts";

/** The data context that an argument names, by its name, its title or its numeric id. */
export function contextOf(args: Arguments, argument: string): ContextResource {
  return new ContextResource(args.text(argument), args.at(argument));
}

/** A collection as CODAP describes it. */
interface Described {
  readonly id?: unknown;
  readonly name?: unknown;
  readonly title?: unknown;
  readonly attrs?: readonly { readonly name?: unknown }[];
}

/** What a data set consists of. */
export interface Structure {
  /** Its name, whatever it was called by. Graphs take only that. */
  readonly name: string;
  /** Its collections, where CODAP lists them. */
  readonly collections: readonly Described[] | undefined;
  /** The names of the attributes of all collections, where CODAP lists them. */
  readonly attributes: readonly unknown[] | undefined;
}

/** Looks a data set up. */
export async function structureOf(context: ContextResource, codap: Codap): Promise<Structure> {
  const { values } = await codap.get(context.path);
  const collections: Described[] | undefined = Array.isArray(values?.collections) ? values.collections : undefined;
  const attributes = collections?.flatMap(({ attrs = [] }) => attrs.map(({ name }) => name));
  return { name: typeof values?.name === "string" ? values.name : context.name, collections, attributes };
}

/** A collection as it is given with a new data context. */
interface CollectionDefinition {
  name: string;
  title?: string;
  description?: string;
  attrs?: AttributeDefinition[];
}

function collectionDefinition(args: Arguments): CollectionDefinition {
  return present({
    name: args.text("name"),
    title: args.optionalText("title"),
    description: args.optionalText("description"),
    attrs: attributes(args, "attrs"),
  });
}

async function create(args: Arguments, codap: Codap, collections?: CollectionDefinition[]) {
  const values = present({
    name: args.text("name"),
    title: args.optionalText("title"),
    description: args.optionalText("description"),
    collections,
  });
  const { values: made } = await codap.create("dataContext", values);
  return { dataContext: made ?? { name: values.name } };
}

async function list(codap: Codap) {
  const dataContexts = await codap.list("dataContextList");
  return { dataContexts, count: dataContexts.length };
}

async function read(context: ContextResource, codap: Codap) {
  const { values } = await codap.get(context.path);
  return { dataContext: values };
}

/** The name of a data context cannot be changed in CODAP; a new name becomes its title, by which CODAP finds it too. */
async function update(args: Arguments, codap: Codap) {
  const context = contextOf(args, "name");
  const description = args.optionalText("description");
  const title = newTitle(args);
  if (title === undefined && description === undefined) throw wrong("arguments", "must hold something to change: newName, title or description");
  // CODAP 3 reads the description in the metadata, CODAP 2 beside it.
  const metadata = description === undefined ? undefined : { description };
  await codap.update(context.path, present({ title, description, metadata }));
  return { updated: true, dataContext: present({ name: context.name, title, description }) };
}

/** The title that `newName` and `title` ask for: CODAP has only one of the two to change. */
export function newTitle(args: Arguments): string | undefined {
  const newName = args.optionalText("newName");
  const title = args.optionalText("title");
  if (newName !== undefined && title !== undefined && newName !== title) {
    throw wrong("newName", "cannot differ from title: CODAP keeps the name that it was created with and shows the title");
  }
  return title ?? newName;
}

async function remove(context: ContextResource, codap: Codap) {
  await codap.delete(context.path);
  return { deleted: true, dataContext: { name: context.name } };
}

/** Tools that make, show, change and delete data sets. */
export const contextTools: Tools = {
  create_data_context: (args, codap) => create(args, codap),
  get_data_contexts: (_, codap) => list(codap),
  get_data_context: (args, codap) => read(contextOf(args, "name"), codap),
  update_data_context: update,
  delete_data_context: async (args, codap) => {
    args.confirmed();
    return remove(contextOf(args, "name"), codap);
  },

  createDataContext: (args, codap) => {
    // An empty list is allowed: CODAP then makes a collection of its own.
    args.list("collections");
    const collections = args.optionalObjects("collections") ?? [];
    return create(args, codap, collections.length > 0 ? collections.map(collectionDefinition) : undefined);
  },
  getListOfDataContexts: (_, codap) => list(codap),
  getDataContext: (args, codap) => read(contextOf(args, "dataContext"), codap),
  deleteDataContext: (args, codap) => remove(contextOf(args, "dataContext"), codap),
};
