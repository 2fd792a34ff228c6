import { ToolError } from "../../worker/toolError.ts";
import { type Arguments, present, wrong } from "./arguments.ts";
import type { Codap, Tools } from "./codap.ts";
import type { Listen, Notice } from "./types.ts";

/** How many notices of one resource are kept until they are fetched; older ones are dropped and counted. */
export const NOTICES_KEPT = 100;
/** How many resources are listened to at once. */
export const RESOURCES_LISTENED = 50;

/** The resources of the notices that CODAP documents, and what is asked of CODAP before listening: whether there is such a thing,
 * or to send them at all. */
const KINDS: [RegExp, (match: RegExpExecArray) => [action: "get" | "update", resource: string, on?: object, off?: object]][] = [
  [/^dataContextChangeNotice\[([^\]]+)\]$/, ([, name]) => ["get", `dataContext[${name}]`]],
  [/^component\[([^\]]+)\]$/, ([, name]) => ["get", `component[${name}]`]],
  [/^global\[([^\]]+)\]$/, ([, name]) => ["get", `global[${name}]`]],
  [/^document$/, () => ["update", "interactiveFrame", { subscribeToDocuments: true }, { subscribeToDocuments: false }]],
  [/^(?:component|documentChangeNotice|undoChangeNotice|dragDrop\[attribute\])$/, () => ["get", "interactiveFrame"]],
];

/** The notices of one resource that nobody has fetched yet. */
class Subscription {
  #kept: Notice[] = [];
  #dropped = 0;
  readonly stop: () => void;

  constructor(readonly request: string, public callback: string | undefined, listen: Listen) {
    this.stop = listen(request, (notice) => this.#keep(notice));
  }

  #keep(notice: Notice): void {
    this.#kept.push(notice);
    if (this.#kept.length <= NOTICES_KEPT) return;
    this.#kept.shift();
    this.#dropped += 1;
  }

  /** What came since the last time. */
  fetch(registered: boolean) {
    const notifications = this.#kept.map(({ resource, values }) => ({ resource, values }));
    const dropped = this.#dropped;
    this.#kept = [];
    this.#dropped = 0;
    return { registered, ...present({ request: this.request, callback: this.callback }), notifications, dropped };
  }
}

function kindOf(request: string) {
  for (const [pattern, asked] of KINDS) {
    const match = pattern.exec(request);
    if (match !== null) return asked(match);
  }
  const known = "dataContextChangeNotice[NAME], documentChangeNotice, component, component[ID], global[NAME], undoChangeNotice, dragDrop[attribute] or document";
  throw wrong("request", `must be ${known}, and is ${JSON.stringify(request)}`);
}

/** Tools that collect what CODAP tells of changes. There is nobody to call back: the notices are kept, and calling
 * `registerForNotifications` again fetches those that came since. */
export function notificationTools(listen: Listen | undefined): Tools {
  const subscriptions = new Map<string, Subscription>();

  async function register(args: Arguments, codap: Codap) {
    const request = args.text("request");
    const callback = args.optionalText("callback");
    const [action, resource, on] = kindOf(request);
    const known = subscriptions.get(request);
    if (known !== undefined) {
      known.callback = callback ?? known.callback;
      return known.fetch(true);
    }
    if (listen === undefined) throw new ToolError("execution_error", "this page gets no notifications");
    if (subscriptions.size >= RESOURCES_LISTENED) throw wrong("request", `would be one too many: ${subscriptions.size} are registered`);
    await (action === "get" ? codap.get(resource) : codap.update(resource, on));
    const subscription = new Subscription(request, callback, listen);
    subscriptions.set(request, subscription);
    return subscription.fetch(true);
  }

  async function unregister(args: Arguments, codap: Codap) {
    const request = args.text("request");
    const [action, resource, , off] = kindOf(request);
    const subscription = subscriptions.get(request);
    if (subscription === undefined) throw wrong("request", `is not registered: ${JSON.stringify(request)}`);
    if (action === "update") await codap.update(resource, off);
    subscription.stop();
    subscriptions.delete(request);
    return subscription.fetch(false);
  }

  return { registerForNotifications: register, unregisterForNotifications: unregister };
}
