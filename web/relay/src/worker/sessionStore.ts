import type { Environment } from "./environment.ts";

/** A token that was not used for so long is thrown away. */
const FORGET = 24 * 60 * 60 * 1000;
const TAB = "signalbox.session";
const TOKEN = "signalbox.token.";

/** The session that a tab serves. */
export interface KnownSession {
  base: string;
  code: string;
  joinUrl: string;
}

/**
 * Remembers the session of this tab, so that a reload resumes it, and the tokens of sessions for all tabs of this origin, so
 * that another tab can take over.
 */
export class SessionStore {
  readonly #tab: Storage | undefined;
  readonly #shared: Storage | undefined;

  constructor(environment: Environment) {
    this.#tab = environment.tabStorage;
    this.#shared = environment.sharedStorage;
  }

  /** The session of this tab at this gateway. */
  recall(base: string): KnownSession | undefined {
    const known = parse<KnownSession>(this.#tab?.getItem(TAB));
    return known?.base === base ? known : undefined;
  }

  remember(session: KnownSession): void {
    attempt(() => this.#tab?.setItem(TAB, JSON.stringify(session)));
  }

  forget(): void {
    this.#tab?.removeItem(TAB);
  }

  token(code: string): string | undefined {
    return parse<{ token: string }>(this.#shared?.getItem(TOKEN + code))?.token;
  }

  keepToken(code: string, token: string): void {
    const now = Date.now();
    const shared = this.#shared;
    for (let at = (shared?.length ?? 0) - 1; at >= 0; at -= 1) {
      const key = shared?.key(at) ?? "";
      if (key.startsWith(TOKEN) && (parse<{ at: number }>(shared?.getItem(key))?.at ?? 0) + FORGET < now) shared?.removeItem(key);
    }
    attempt(() => shared?.setItem(TOKEN + code, JSON.stringify({ token, at: now })));
  }

  dropToken(code: string): void {
    this.#shared?.removeItem(TOKEN + code);
  }
}

function parse<Value>(text: string | null | undefined): Value | undefined {
  try {
    return text ? (JSON.parse(text) as Value) : undefined;
  } catch {
    return undefined;
  }
}

/** A storage that is full or forbidden keeps nothing, which costs the resumption and nothing else. */
function attempt(write: () => void): void {
  try {
    write();
  } catch {
    // Nothing to be done.
  }
}
