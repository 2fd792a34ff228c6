import type { CallEvent, Session, StateChange } from "signalbox-relay";
import { byId } from "../../demo/views/element.ts";
import { words } from "../../demo/views/words.ts";

/** What the page does when somebody presses a button. */
export interface PluginActions {
  /** Calls CODAP once more. */
  retry(): void;
  /** Leaves the session and makes a new one, so that the old code opens nothing any more. */
  renew(): void;
}

/** What the plugin shows: whether CODAP and the gateway are there, the code, and the last call. */
export class PluginView {
  readonly #state = byId("state");
  readonly #session = byId("session");
  readonly #retry = byId<HTMLButtonElement>("retry");
  readonly #renew = byId<HTMLButtonElement>("renew");
  readonly #copied = byId("copied");

  constructor(actions: PluginActions) {
    this.#retry.addEventListener("click", () => actions.retry());
    this.#renew.addEventListener("click", () => actions.renew());
    byId("copy-code").addEventListener("click", () => void this.#copy("code", "The code"));
    byId("copy-address").addEventListener("click", () => void this.#copy("address", "The address"));
  }

  waitingForCodap(): void {
    this.#say("connecting", "Waiting for CODAP…");
    this.#retry.hidden = true;
  }

  /** There is no CODAP, and what a person can do about it. */
  withoutCodap(address: string, reason: string | undefined): void {
    this.#say("error", reason === undefined ? "This page works inside of CODAP." : `CODAP does not answer: ${reason}`);
    byId("install").hidden = false;
    byId("plugin-address").textContent = address;
    this.#retry.hidden = reason === undefined;
  }

  showState(change: StateChange): void {
    byId("install").hidden = true;
    this.#say(change.state, words(change));
    this.#renew.hidden = false;
    if (change.state === "error") this.#session.hidden = true;
  }

  showSession({ code }: Session, base: string): void {
    this.#session.hidden = false;
    const shown = byId("code");
    shown.textContent = code;
    // Letter by letter, for those who listen.
    shown.setAttribute("aria-label", [...code].join(" "));
    byId("address").textContent = `${base}/api/mcp`;
    this.#copied.textContent = "";
  }

  showCall({ tool, phase, error, duration }: CallEvent): void {
    const took = duration === undefined ? "" : ` in ${Math.round(duration)} ms`;
    const outcome = phase === "started" ? "is running" : error ? `failed: ${error.message}` : phase === "answered" ? `was done${took}` : phase;
    byId("call").textContent = `${tool} ${outcome}.`;
  }

  #say(state: string, text: string): void {
    // A live region that does not change says nothing.
    if (this.#state.textContent !== text) this.#state.textContent = text;
    this.#state.dataset.state = state;
  }

  /** A frame is mostly forbidden to use the clipboard itself, but may copy what is selected. If it may not, a person can. */
  async #copy(id: string, what: string): Promise<void> {
    const element = byId(id);
    getSelection()?.selectAllChildren(element);
    const copied = document.execCommand("copy") || (await navigator.clipboard?.writeText(element.textContent ?? "").then(() => true, () => false));
    this.#copied.textContent = copied ? `${what} is copied.` : `${what} is selected: press Control+C or ⌘C to copy it.`;
  }
}
