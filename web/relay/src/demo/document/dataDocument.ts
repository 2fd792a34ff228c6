import { collections } from "./collections.ts";
import { components } from "./components.ts";
import { dataContexts } from "./dataContexts.ts";
import { items } from "./items.ts";
import { Refusal, type Answer, type Component, type DataContext } from "./model.ts";
import { readResource, type Resource } from "./resource.ts";
import { selection } from "./selection.ts";

/** A request of CODAP's Data Interactive API. */
export interface Request {
  readonly action: string;
  readonly resource: string;
  readonly values?: unknown;
}

/** A message about a change, as CODAP sends it to plugins. */
export interface Notice {
  readonly resource: string;
  readonly values: unknown;
}

type Action = (document: DataDocument, resource: Resource, values: unknown) => Answer;
const RESOURCES: Record<string, Record<string, Action>> = { ...dataContexts, ...collections, ...items, ...selection, ...components };

/** A document that answers CODAP's Data Interactive API without CODAP. */
export class DataDocument {
  readonly contexts: DataContext[] = [];
  components: Component[] = [];
  readonly globals = new Map<string, number>();
  readonly frame = { id: 0, name: "Signalbox", title: "Signalbox", version: "1.0", dimensions: { width: 0, height: 0 } };
  readonly #listeners = new Set<(notice: Notice) => void>();
  /** The last id that was given. */
  lastId = 0;

  newId(): number {
    return (this.lastId += 1);
  }

  /** Answers a request. What cannot be done is answered too; nothing is thrown. */
  ask = async (request: Request): Promise<Answer> => {
    try {
      if (typeof request?.resource !== "string") throw new Refusal("a request needs a resource");
      const resource = readResource(request.resource);
      const actions = Object.hasOwn(RESOURCES, resource.kind) ? RESOURCES[resource.kind] : undefined;
      if (!actions) throw new Refusal(`this page has no resource ${resource.kind}`);
      const action = Object.hasOwn(actions, request.action) ? actions[request.action] : undefined;
      if (!action) throw new Refusal(`${request.action} is not supported for ${resource.kind}`);
      return action(this, resource, request.values);
    } catch (thrown) {
      if (!(thrown instanceof Refusal)) console.error(thrown);
      return { success: false, values: { error: (thrown as Error).message } };
    }
  };

  /** Listens to the notices of one resource, and returns the function that ends it. */
  listenTo = (resource: string, listener: (notice: Notice) => void): (() => void) =>
    this.listen((notice) => {
      if (notice.resource === resource || notice.resource.startsWith(`${resource}[`)) listener(notice);
    });

  /** Listens to all changes, and returns the function that ends it. */
  listen(listener: (notice: Notice) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Tells everybody of a change of a data context. */
  changed(context: DataContext, operation: string): void {
    context.version += 1;
    this.tell(`dataContextChangeNotice[${context.name}]`, [{ operation, result: { success: true } }]);
  }

  /** Sends a notice to all who listen. */
  tell(resource: string, values: unknown): void {
    for (const listener of this.#listeners) listener({ resource, values });
  }

  /** What shows an attribute goes on showing it under its new name. */
  renamed(context: DataContext, before: string, now: string): void {
    for (const { specific } of this.components) {
      if (specific.dataContext !== context.name) continue;
      for (const [member, value] of Object.entries(specific)) {
        if (member.endsWith("AttributeName") && value === before) specific[member] = now;
      }
    }
  }
}
