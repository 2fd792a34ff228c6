import { codapInterface, initializePlugin, type ClientNotification } from "@concord-consortium/codap-plugin-api";
import type { Ask, CodapAnswer, Listen, Notice } from "../tools/index.ts";

/** How the plugin's frame is called and how large it is when it is new. */
const FRAME = { pluginName: "Signalbox relay", version: "1.0", dimensions: { width: 360, height: 520 } };
/** How long CODAP may take to answer a request, in milliseconds. Whoever called the tool has given up by then. */
const PATIENCE = 30_000;
/** How often CODAP is called before a person has to press a button. Each attempt waits for two seconds. */
export const ATTEMPTS = 10;

/** The connection to the CODAP whose frame the page is in. */
export class CodapLink {
  readonly #listeners = new Map<string, Set<(notice: Notice) => void>>();

  constructor() {
    codapInterface.setRequestTimeout(PATIENCE);
    // CODAP's library has no way to end a subscription: there is one for everything, and who wants what is known here.
    codapInterface.on("notify", "*", (notification: ClientNotification) => this.#notice(notification));
  }

  /** The page is not in a frame, so that there is no CODAP around it. */
  get alone(): boolean {
    return window.parent === window;
  }

  /** Calls CODAP until it answers. Fails with the last reason. */
  async open(): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await initializePlugin(FRAME);
        return;
      } catch (thrown) {
        if (attempt >= ATTEMPTS) throw thrown;
      }
    }
  }

  readonly ask: Ask = async (request) => (await codapInterface.sendRequest(request)) as CodapAnswer;

  readonly listen: Listen = (resource, listener) => {
    const listeners = this.#listeners.get(resource) ?? new Set();
    this.#listeners.set(resource, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(resource);
    };
  };

  #notice({ resource, values }: ClientNotification): { success: true } {
    for (const listener of this.#listeners.get(resource) ?? []) listener({ resource, values });
    return { success: true };
  }
}
