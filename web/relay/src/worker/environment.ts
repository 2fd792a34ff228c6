/** What the browser gives. Tests give something else. */
export interface Environment {
  fetch: typeof fetch;
  /** Lives as long as the tab; a copy of the tab gets a copy. */
  tabStorage: Storage | undefined;
  /** All tabs of this origin see it. */
  sharedStorage: Storage | undefined;
  locks: LockManager | undefined;
  /** Calls `wake` when the machine may have slept or the network came back, and `hide` when the page goes away. Returns what ends it. */
  watch(wake: () => void, hide: () => void): () => void;
}

/** A storage may be forbidden: looking at it is an error then. */
function storage(name: "sessionStorage" | "localStorage"): Storage | undefined {
  try {
    const found = globalThis[name];
    found?.getItem("signalbox");
    return found ?? undefined;
  } catch {
    return undefined;
  }
}

/** The environment of a page. */
export function browser(): Environment {
  return {
    fetch: (input, init) => globalThis.fetch(input, init),
    tabStorage: storage("sessionStorage"),
    sharedStorage: storage("localStorage"),
    locks: globalThis.navigator?.locks,
    watch(wake, hide) {
      const visible = () => document.visibilityState === "visible" && wake();
      // A page that is only put aside comes back as it was.
      const gone = (event: Event) => (event as PageTransitionEvent).persisted || hide();
      const listeners: [EventTarget, string, (event: Event) => void][] = [
        [window, "online", wake], [window, "pageshow", wake], [document, "resume", wake], [document, "visibilitychange", visible],
        [window, "pagehide", gone],
      ];
      for (const [target, name, listener] of listeners) target.addEventListener(name, listener);
      return () => {
        for (const [target, name, listener] of listeners) target.removeEventListener(name, listener);
      };
    },
  };
}

/** A random id of 128 bits. `crypto.randomUUID` is missing on pages without TLS. */
export function randomId(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Resolves after a time, or at once when the signal is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal?.aborted) return done();
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      done();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end);
  });
}
