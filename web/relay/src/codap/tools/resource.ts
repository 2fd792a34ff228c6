import { wrong } from "./arguments.ts";

/** A part of a resource selector with what is selected: `dataContext[Mammals]`.
 *
 * CODAP takes everything up to the first "]" for the name and knows no escape, so that a name with "]" cannot be written,
 * and must not be: the rest of it would be read as further parts of the selector. */
export function selected(key: string, name: string | number, argument: string): string {
  const text = String(name);
  if (text.includes("]")) {
    throw wrong(argument, `must not contain "]", which ends a name in CODAP's selectors; give the numeric id instead`);
  }
  return `${key}[${text}]`;
}

/** The selectors of one data context. `argument` is what errors call the argument that named it. */
export class ContextResource {
  readonly path: string;

  constructor(readonly name: string, argument: string) {
    this.path = selected("dataContext", name, argument);
  }

  /** A resource of the data context: `dataContext[Mammals].collectionList`. */
  of(key: string): string {
    return `${this.path}.${key}`;
  }

  itemById(id: string | number, argument: string): string {
    return this.of(selected("itemByID", id, argument));
  }

  collection(name: string, argument: string): CollectionResource {
    return new CollectionResource(this, name, argument);
  }
}

/** The selectors of one collection. */
export class CollectionResource {
  readonly path: string;

  constructor(readonly context: ContextResource, readonly name: string, argument: string) {
    this.path = context.of(selected("collection", name, argument));
  }

  of(key: string): string {
    return `${this.path}.${key}`;
  }

  attribute(name: string, argument: string): string {
    return this.of(selected("attribute", name, argument));
  }

  attributeLocation(name: string, argument: string): string {
    return this.of(selected("attributeLocation", name, argument));
  }
}
