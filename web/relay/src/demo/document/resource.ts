import { byName, Refusal, type Attribute, type Collection, type Component, type DataContext } from "./model.ts";

/** A resource that a request names, taken apart: what it is, what is selected of it, and what it is a part of. */
export interface Resource {
  readonly kind: string;
  /** What stands in the brackets of the last part. */
  readonly selector: string | undefined;
  readonly parts: ReadonlyMap<string, string>;
}

/** Reads `dataContext[Mammals].collection[Animals].attribute[Diet]`. A name goes up to the first "]". */
export function readResource(text: string): Resource {
  const parts = new Map<string, string>();
  let kind = "";
  let selector: string | undefined;
  let rest = text;
  while (rest !== "") {
    const match = /^(\w+)(?:\[([^\]]*)\])?(?:\.|$)/.exec(rest);
    if (!match) throw new Refusal(`the resource "${text}" cannot be read`);
    kind = match[1] ?? "";
    selector = match[2];
    if (selector !== undefined) parts.set(kind, selector);
    rest = rest.slice(match[0].length);
  }
  return { kind, selector, parts };
}

/** What a document can be asked for by name. */
export interface Named {
  contexts: DataContext[];
  components: Component[];
}

export function contextOf(named: Named, resource: Resource): DataContext {
  const name = resource.parts.get("dataContext");
  // Without a name the first data context is meant, as in CODAP.
  const found = name === undefined ? named.contexts[0] : byName(named.contexts, name);
  if (!found) throw new Refusal(name === undefined ? "there is no data context" : `there is no data context ${name}`);
  return found;
}

export function collectionOf(context: DataContext, resource: Resource): Collection | undefined {
  const name = resource.parts.get("collection");
  if (name === undefined) return undefined;
  const found = byName(context.collections, name);
  if (!found) throw new Refusal(`there is no collection ${name} in ${context.name}`);
  return found;
}

export function neededCollection(context: DataContext, resource: Resource): Collection {
  const found = collectionOf(context, resource);
  if (!found) throw new Refusal(`${resource.kind} needs a collection`);
  return found;
}

export function attributeOf(context: DataContext, resource: Resource): { attribute: Attribute; collection: Collection } {
  const name = resource.selector ?? "";
  const within = collectionOf(context, resource);
  for (const collection of within ? [within] : context.collections) {
    const attribute = byName(collection.attributes, name);
    if (attribute) return { attribute, collection };
  }
  throw new Refusal(`there is no attribute ${name} in ${within?.name ?? context.name}`);
}

export function componentOf(named: Named, resource: Resource): Component {
  const name = resource.parts.get("component") ?? "";
  const found = byName(named.components, name);
  if (!found) throw new Refusal(`there is no component ${name}`);
  return found;
}
