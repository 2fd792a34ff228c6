import { Api, RelayError } from "./api.ts";
import { pause, randomId, type Environment } from "./environment.ts";
import { hold, type Release } from "./holding.ts";
import { Journal } from "./journal.ts";
import { Receiver, StreamHeldBack } from "./receiver.ts";
import { Runner } from "./runner.ts";
import { SessionStore } from "./sessionStore.ts";
import type { Events, Options, Session, StateChange, Tool, Worker } from "./types.ts";

/** A connection that stood this long was a good one: the next attempt comes soon. */
const STOOD = 5_000;
/** How long polling goes on before the stream is tried again. */
const POLL_PERIOD = 5 * 60_000;
/** So many streams in a row have to be held back before the worker polls. */
const HELD_BACK = 2;
/** Another tab that leads is waited for this long before this one says that it stands by. */
const LEADER_PATIENCE = 200;
const BACKOFF = { min: 1_000, max: 30_000 };
const CODE = /^[A-Z0-9]{8}$/;

interface Settled {
  resolve(session: Session): void;
  reject(reason: Error): void;
}

/** Connects a page to the relay, and stays connected. */
export class RelayWorker implements Worker {
  state: StateChange = { state: "disconnected", standby: false, transport: "stream" };
  session: Session | undefined;
  readonly ready: Promise<Session>;
  readonly #options: Options;
  readonly #environment: Environment;
  readonly #base: string;
  readonly #store: SessionStore;
  readonly #listeners = new Map<string, Set<(event: never) => void>>();
  readonly #stopped = new AbortController();
  readonly #held: Release[] = [];
  #leads: Release = () => {};
  readonly #settled: Settled;
  #tools: Tool[];
  #api!: Api;
  #runner!: Runner;
  #receiver: Receiver | undefined;
  #nap = new AbortController();
  #offered = false;
  /** The session came from the tab's storage: if it is gone, a new one takes its place. */
  #resumed = false;

  constructor(options: Options, environment: Environment, base: string) {
    this.#options = options;
    this.#environment = environment;
    this.#base = base;
    this.#store = new SessionStore(environment);
    this.#tools = options.tools ?? [];
    let settled: unknown;
    this.ready = new Promise((resolve, reject) => (settled = { resolve, reject }));
    this.#settled = settled as Settled;
    this.ready.catch(() => {});
    this.#held.push(environment.watch(() => this.wake(), () => this.#leave()));
    void this.#live();
  }

  on<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
    return () => listeners.delete(listener);
  }

  async registerTools(tools: Tool[]): Promise<void> {
    this.#tools = tools;
    this.#offered = false;
    if (this.state.state !== "connected" || this.state.standby) return;
    await this.#api.tools(tools);
    this.#offered = true;
  }

  wake(): void {
    this.#nap.abort();
    this.#receiver?.wake();
    // A network that is back may have stood still for answers only.
    if (this.state.state === "connected") this.#runner.flush(true);
  }

  stop(): void {
    if (this.#stopped.signal.aborted) return;
    this.#stopped.abort(new Error("stopped"));
    this.#runner?.stop();
    this.#receiver?.close(new Error("stopped"));
    this.#nap.abort();
    this.#leave();
    this.#become({ state: "disconnected", standby: false, reason: "stopped" });
    this.#settled.reject(new Error("stopped"));
  }

  /** Gives back what only one tab may hold. */
  #leave(): void {
    this.#leads();
    for (const release of this.#held.splice(0)) release();
  }

  #emit<Name extends keyof Events>(name: Name, event: Events[Name]): void {
    for (const listener of this.#listeners.get(name) ?? []) {
      try {
        (listener as (event: Events[Name]) => void)(event);
      } catch (thrown) {
        console.error(thrown);
      }
    }
  }

  #become(change: Omit<StateChange, "transport"> & { transport?: StateChange["transport"] }): void {
    this.state = { transport: this.state.transport, ...change };
    this.#emit("state", this.state);
  }

  async #live(): Promise<void> {
    const { signal } = this.#stopped;
    try {
      // Whoever has just called `connect` hears of the first state as well.
      await null;
      this.#become({ state: "connecting", standby: false });
      const journal = await Journal.open(this.#environment);
      this.#held.push(journal.release);
      // Stopped meanwhile, it must not keep the journal from whoever connects next.
      if (signal.aborted) return this.#leave();
      this.#api = new Api(this.#base, randomId(), journal.id, this.#environment);
      this.#runner = this.#newRunner(journal);
      await this.#again(() => this.#openSession());
      if (await this.#lead()) await this.#stayConnected();
    } catch (thrown) {
      if (!signal.aborted) this.#fail(thrown as Error);
    }
  }

  #newRunner(journal: Journal): Runner {
    return new Runner({
      api: this.#api,
      journal,
      concurrency: Math.max(1, this.#options.concurrency ?? 1),
      handler: (tool) => this.#tools.find(({ name }) => name === tool)?.handler ?? own(this.#options.handlers, tool),
      tell: (event) => this.#emit("call", event),
      problem: (message) => this.#emit("problem", { message }),
    });
  }

  #fail(thrown: Error): void {
    const error = thrown instanceof RelayError ? { error: thrown.error } : {};
    if (thrown instanceof RelayError && thrown.error.startsWith("session_")) {
      this.#store.forget();
      this.#store.dropToken(this.#api.code);
    }
    this.#runner?.stop();
    this.#leave();
    this.#become({ state: "error", standby: false, reason: thrown.message, ...error });
    this.#settled.reject(thrown);
  }

  /** Joins the session that is asked for, resumes that of the tab, or makes one. */
  async #openSession(): Promise<void> {
    const [code, token] = (this.#options.code ?? "").trim().split(".");
    if (code) {
      const upper = code.toUpperCase();
      if (!CODE.test(upper)) throw new RelayError(400, "invalid_session_code", "a session code has eight letters and digits");
      return this.#use(upper, this.#options.token ?? token ?? this.#store.token(upper), undefined);
    }
    const known = this.#options.fresh || this.#resumed ? undefined : this.#store.recall(this.#base);
    if (known) {
      this.#resumed = true;
      return this.#use(known.code, this.#store.token(known.code), known.joinUrl);
    }
    const made = await this.#api.createSession();
    this.#resumed = false;
    this.#use(made.code, made.workerToken, made.joinUrl);
  }

  #use(code: string, token: string | undefined, joinUrl: string | undefined): void {
    this.#api.code = code;
    this.#api.token = token;
    const plain = joinUrl ?? `${this.#base}/relay/demo/#${code}`;
    this.#store.remember({ base: this.#base, code, joinUrl: plain });
    if (token) this.#store.keepToken(code, token);
    this.session = { code, joinUrl: token ? `${plain}.${token}` : plain, hasToken: !!token };
    this.#emit("session", this.session);
  }

  /** Waits until no other tab of this browser serves the session. */
  async #lead(): Promise<boolean> {
    const { signal } = this.#stopped;
    const name = `signalbox-relay:${this.#base}:${this.#api.code}`;
    const soon = setTimeout(() => {
      this.#become({ state: "disconnected", standby: true, reason: "another tab of this browser serves the session" });
      if (this.session) this.#settled.resolve(this.session);
    }, LEADER_PATIENCE);
    const release = await hold(this.#environment, name, signal);
    clearTimeout(soon);
    if (!release) return false;
    this.#leads = release;
    if (signal.aborted) return this.#leave(), false;
    // A tab that led before may have been given a token since.
    this.#api.token ??= this.#store.token(this.#api.code);
    return true;
  }

  /** Connects again and again, until that makes no sense or the page stops it. */
  async #stayConnected(): Promise<void> {
    let heldBack = 0;
    let failures = 0;
    const { transport = "auto" } = this.#options;
    while (!this.#stopped.signal.aborted) {
      const polls = transport === "poll" || (transport === "auto" && heldBack >= HELD_BACK);
      const begun = Date.now();
      let reason = "the gateway ended the stream";
      let wait = 0;
      try {
        await this.#receive(polls ? "poll" : "stream", begun);
        heldBack = 0;
      } catch (thrown) {
        if (this.#stopped.signal.aborted) return;
        if (await this.#replaced(thrown)) continue;
        if (thrown instanceof RelayError && thrown.final) throw thrown;
        heldBack = thrown instanceof StreamHeldBack ? heldBack + 1 : polls ? 0 : heldBack;
        reason = (thrown as Error).message;
        wait = thrown instanceof RelayError ? thrown.retryAfter : 0;
      }
      failures = Date.now() - begun > STOOD ? 0 : failures + 1;
      if (failures > this.#maxRetries) throw new Error(reason);
      await this.#sleep(reason, Math.max(wait, this.#backoff(failures)));
    }
  }

  async #receive(transport: "stream" | "poll", now: number): Promise<void> {
    this.#receiver = new Receiver(this.#api, {
      connected: (standby) => this.#connected(standby, transport),
      request: (request) => this.#runner.deliver(request),
      cancel: (requestId, reason) => this.#runner.cancel(requestId, reason),
      heartbeat: () => this.#runner.flush(false),
    });
    if (transport === "stream") await this.#receiver.stream();
    else await this.#receiver.poll(now + POLL_PERIOD);
  }

  #connected(standby: boolean, transport: "stream" | "poll"): void {
    this.#resumed = false;
    this.#become({ state: "connected", standby, transport });
    if (this.session) this.#settled.resolve(this.session);
    this.#runner.flush(true);
    if (standby || this.#offered || this.#tools.length === 0) return;
    this.#offered = true;
    this.#api.tools(this.#tools).catch((thrown: Error) => {
      this.#offered = false;
      this.#emit("problem", { message: `the tools were not taken: ${thrown.message}` });
    });
  }

  /** A session that only the tab's storage knew of and that is gone is replaced by a new one. */
  async #replaced(thrown: unknown): Promise<boolean> {
    if (!this.#resumed || !(thrown instanceof RelayError) || !thrown.error.startsWith("session_")) return false;
    this.#store.forget();
    this.#leads();
    await this.#again(() => this.#openSession());
    return this.#lead();
  }

  get #maxRetries(): number {
    return this.#options.maxRetries ?? Number.POSITIVE_INFINITY;
  }

  #backoff(failures: number): number {
    const { min, max } = this.#options.backoff ?? BACKOFF;
    return Math.min(max, min * 2 ** Math.max(0, failures - 1)) * (0.5 + Math.random() / 2);
  }

  /** Pauses before the next attempt; a machine that wakes up ends the pause. */
  async #sleep(reason: string, ms: number): Promise<void> {
    if (this.#stopped.signal.aborted) return;
    this.#nap = new AbortController();
    this.#become({ state: "reconnecting", standby: false, reason, retryIn: Math.round(ms) });
    await pause(ms, this.#nap.signal);
  }

  /** Does something until it works, or makes no sense any more. */
  async #again(attempt: () => Promise<void>): Promise<void> {
    for (let failures = 1; ; failures += 1) {
      try {
        return await attempt();
      } catch (thrown) {
        const final = failures > this.#maxRetries || (thrown instanceof RelayError && thrown.final);
        if (this.#stopped.signal.aborted || final) throw thrown;
        const wait = thrown instanceof RelayError ? thrown.retryAfter : 0;
        await this.#sleep((thrown as Error).message, Math.max(wait, this.#backoff(failures)));
      }
    }
  }
}

/** A handler by name; what every object inherits is none. */
function own<Value>(values: Record<string, Value> | undefined, name: string): Value | undefined {
  return values && Object.hasOwn(values, name) ? values[name] : undefined;
}
