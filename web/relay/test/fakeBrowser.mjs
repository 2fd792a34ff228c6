// What a browser gives to pages: tabs with storage, locks between them, and sleep.

/** A storage as pages have it, with a limit. */
export class FakeStorage {
  #items;

  constructor(items = new Map(), limit = 5_000_000) {
    this.#items = new Map(items);
    this.limit = limit;
  }

  get length() {
    return this.#items.size;
  }

  key(at) {
    return [...this.#items.keys()][at] ?? null;
  }

  getItem(key) {
    return this.#items.get(key) ?? null;
  }

  setItem(key, value) {
    const size = [...this.#items].reduce((sum, [name, text]) => sum + (name === key ? 0 : text.length), value.length);
    if (size > this.limit) throw new DOMException("full", "QuotaExceededError");
    this.#items.set(key, String(value));
  }

  removeItem(key) {
    this.#items.delete(key);
  }

  copy() {
    return new FakeStorage(this.#items, this.limit);
  }
}

/** Locks between the tabs of one browser. */
class FakeLocks {
  #queues = new Map();

  request(name, { signal }, granted, tab) {
    return new Promise((done, fail) => {
      const queue = this.#queues.get(name) ?? [];
      this.#queues.set(name, queue);
      const turn = { tab, run: undefined };
      const leave = () => {
        const first = queue[0] === turn;
        if (queue.includes(turn)) queue.splice(queue.indexOf(turn), 1);
        if (first) queue[0]?.run();
      };
      turn.leave = leave;
      turn.run = () => {
        turn.running = true;
        Promise.resolve(granted()).then(() => {
          leave();
          done();
        });
      };
      signal?.addEventListener("abort", () => {
        if (turn.running) return;
        leave();
        fail(signal.reason);
      });
      queue.push(turn);
      if (queue[0] === turn) turn.run();
    });
  }

  /** A tab that is gone holds nothing. */
  drop(tab) {
    for (const queue of this.#queues.values()) for (const turn of queue.filter((one) => one.tab === tab)) turn.leave();
  }
}

/** A browser with its tabs. */
export class FakeBrowser {
  shared = new FakeStorage();
  locks = new FakeLocks();

  constructor({ locks = true } = {}) {
    this.hasLocks = locks;
  }

  tab(storage = new FakeStorage()) {
    return new FakeTab(this, storage);
  }
}

/** A page in a tab. `gone` is what closing or reloading does: nothing of the page runs any more. */
class FakeTab {
  #wakes = new Set();
  #aborts = new AbortController();

  constructor(browser, storage) {
    this.browser = browser;
    this.storage = storage;
    const tab = this;
    this.environment = {
      fetch: (url, init = {}) => {
        if (tab.offline) return Promise.reject(new TypeError("Failed to fetch"));
        const signal = init.signal ? AbortSignal.any([init.signal, tab.#aborts.signal]) : tab.#aborts.signal;
        return fetch(url, { ...init, signal });
      },
      tabStorage: storage,
      sharedStorage: browser.shared,
      locks: browser.hasLocks ? { request: (name, options, granted) => browser.locks.request(name, options, granted, tab) } : undefined,
      watch: (wake, hide) => {
        tab.#wakes.add(wake);
        tab.hide = hide;
        return () => tab.#wakes.delete(wake);
      },
    };
  }

  /** What `online`, `pageshow` and a page that becomes visible do. */
  wake() {
    for (const wake of this.#wakes) wake();
  }

  /** The page is gone at once, with its connections and locks. */
  gone() {
    this.offline = true;
    this.#aborts.abort(new Error("the page is gone"));
    this.hide?.();
    this.browser.locks.drop(this);
  }

  /** The same tab after a reload: a new page with the same storage. */
  reload() {
    this.gone();
    return new FakeTab(this.browser, this.storage);
  }

  /** A copy of the tab, as "Duplicate" makes one. */
  duplicate() {
    return new FakeTab(this.browser, this.storage.copy());
  }
}
