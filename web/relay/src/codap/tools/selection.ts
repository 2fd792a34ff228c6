import type { Codap, Tools } from "./codap.ts";
import { knownCollection } from "./collections.ts";
import { contextOf } from "./contexts.ts";
import type { ContextResource } from "./resource.ts";

type Id = string | number;

/** A case that is selected. */
interface Selected {
  caseID?: unknown;
  collectionID?: unknown;
  collectionName?: unknown;
}

async function read(context: ContextResource, codap: Codap, collection?: { id?: unknown; name?: unknown }) {
  const all = (await codap.list(context.of("selectionList"))) as Selected[];
  const selection = collection === undefined ? all : all.filter((one) => {
    return collection.id === undefined ? one.collectionName === collection.name : one.collectionID === collection.id;
  });
  return { selection, count: selection.length };
}

/** Selects, and says what is selected then: CODAP overlooks ids that it does not know, and selects the children of a parent. */
async function select(context: ContextResource, ids: Id[], extend: boolean, codap: Codap) {
  const resource = context.of("selectionList");
  await (extend ? codap.update(resource, ids) : codap.create(resource, ids));
  return read(context, codap);
}

async function clear(context: ContextResource, codap: Codap) {
  await codap.create(context.of("selectionList"), []);
  return { selection: [], count: 0 };
}

/** Tools for what is highlighted in tables and graphs. */
export const selectionTools: Tools = {
  get_selection: (args, codap) => read(contextOf(args, "dataContextName"), codap),
  select_cases: (args, codap) => select(contextOf(args, "dataContextName"), args.ids("caseIds"), args.flag("extend"), codap),
  clear_selection: (args, codap) => clear(contextOf(args, "dataContextName"), codap),

  getSelectedItems: async (args, codap) => {
    const context = contextOf(args, "dataContext");
    return read(context, codap, await knownCollection(args, "collection", context, codap));
  },
  selectItems: async (args, codap) => {
    const context = contextOf(args, "dataContext");
    const [ids, extend] = [args.ids("items"), args.flag("extend")];
    await knownCollection(args, "collection", context, codap);
    return select(context, ids, extend, codap);
  },
  deselectAll: (args, codap) => clear(contextOf(args, "dataContext"), codap),
};
