import { randomId, type Environment } from "./environment.ts";
import { hold, type Release } from "./holding.ts";
import type { CallError } from "./types.ts";

/** How a call ended. */
export type Outcome = { result: unknown } | { error: CallError };

/** What the journal knows of a call: it was begun here and runs, was begun before a reload, or has an outcome. */
export type Entry = "unknown" | "running" | "lost" | Outcome;

/** The most calls that are remembered. */
const MAX_CALLS = 200;
/** The most characters of all outcomes together. */
const MAX_HELD = 8_000_000;
/** An outcome that is longer is not kept over a reload. Browsers keep about five million characters for a tab. */
const MAX_KEPT = 256 * 1024;
/** How long a page that was reloaded waits for its former self to let go of the journal. */
const PATIENCE = 500;
const ID = "signalbox.journal";
const CALL = "signalbox.call.";

interface Kept {
  order: number;
  state: "running" | "ended";
  outcome?: Outcome | undefined;
  size: number;
}

/**
 * Which calls were begun in this tab, and how they ended, so that a call that is sent again does not run again. It lies in the
 * storage of the tab and survives a reload.
 */
export class Journal {
  readonly #calls = new Map<string, Kept>();
  readonly #storage: Storage | undefined;
  #order = 0;
  #size = 0;

  private constructor(readonly id: string, storage: Storage | undefined, readonly release: Release) {
    this.#storage = storage;
  }

  /** Opens the journal of this tab. The copy of a tab has a copy of its storage: it begins a new journal. */
  static async open(environment: Environment): Promise<Journal> {
    const storage = environment.tabStorage;
    const id = storage?.getItem(ID);
    if (id) {
      const release = await hold(environment, `signalbox-journal:${id}`, AbortSignal.timeout(PATIENCE));
      if (release) {
        const journal = new Journal(id, storage, release);
        journal.#load();
        return journal;
      }
    }
    return Journal.#begin(environment);
  }

  static async #begin(environment: Environment): Promise<Journal> {
    const id = randomId();
    const storage = environment.tabStorage;
    for (const key of keys(storage)) storage?.removeItem(key);
    const release = await hold(environment, `signalbox-journal:${id}`, AbortSignal.timeout(PATIENCE));
    try {
      storage?.setItem(ID, id);
    } catch {
      return new Journal(id, undefined, release ?? (() => {}));
    }
    return new Journal(id, storage, release ?? (() => {}));
  }

  /** What is known of a call. */
  look(requestId: string): Entry {
    const call = this.#calls.get(requestId);
    if (!call) return "unknown";
    if (call.state === "running") return "running";
    return call.outcome ?? "lost";
  }

  /** How many calls are remembered, and how many characters they take. */
  get held(): { calls: number; size: number } {
    return { calls: this.#calls.size, size: this.#size };
  }

  /** Notes that a call begins, before anything of it happens. */
  begin(requestId: string): void {
    this.#forget(requestId);
    this.#calls.set(requestId, { order: (this.#order += 1), state: "running", size: 0 });
    this.#write(requestId);
    this.#bound();
  }

  /** Notes how a call ended, before the gateway is told. */
  end(requestId: string, outcome: Outcome): void {
    const call = this.#calls.get(requestId);
    if (!call) return;
    call.state = "ended";
    call.outcome = outcome;
    this.#write(requestId);
    this.#bound();
  }

  #load(): void {
    for (const key of keys(this.#storage)) {
      try {
        const text = this.#storage?.getItem(key) ?? "";
        const { order, outcome } = JSON.parse(text) as { order: number; outcome?: Outcome };
        this.#calls.set(key.slice(CALL.length), { order, state: "ended", outcome, size: text.length });
        this.#size += text.length;
        this.#order = Math.max(this.#order, order);
      } catch {
        this.#storage?.removeItem(key);
      }
    }
    const sorted = [...this.#calls].sort(([, one], [, other]) => one.order - other.order);
    this.#calls.clear();
    for (const [id, call] of sorted) this.#calls.set(id, call);
  }

  #write(requestId: string): void {
    const call = this.#calls.get(requestId);
    if (!call) return;
    const text = JSON.stringify({ order: call.order, outcome: call.outcome });
    this.#size += text.length - call.size;
    call.size = text.length;
    try {
      this.#storage?.setItem(CALL + requestId, text.length > MAX_KEPT ? JSON.stringify({ order: call.order }) : text);
    } catch {
      // The storage is full: what it had stays, and after a reload the outcome is unknown.
    }
  }

  /** The oldest calls that have ended are forgotten first. Where there are too many bytes, it stays known that they ran. */
  #bound(): void {
    for (const [id, call] of this.#calls) {
      if (this.#calls.size <= MAX_CALLS) break;
      if (call.state !== "running") this.#forget(id);
    }
    for (const [id, call] of this.#calls) {
      if (this.#size <= MAX_HELD) break;
      if (!call.outcome) continue;
      call.outcome = undefined;
      this.#write(id);
    }
  }

  #forget(requestId: string): void {
    this.#size -= this.#calls.get(requestId)?.size ?? 0;
    this.#calls.delete(requestId);
    this.#storage?.removeItem(CALL + requestId);
  }
}

function keys(storage: Storage | undefined): string[] {
  const found: string[] = [];
  for (let at = 0; at < (storage?.length ?? 0); at += 1) {
    const key = storage?.key(at);
    if (key?.startsWith(CALL)) found.push(key);
  }
  return found;
}
