// The worker library of the Signalbox relay. Built from web/relay/src/worker; types: worker.d.ts.
// src/worker/environment.ts
function storage(name) {
  try {
    const found = globalThis[name];
    found?.getItem("signalbox");
    return found ?? void 0;
  } catch {
    return void 0;
  }
}
function browser() {
  return {
    fetch: (input, init) => globalThis.fetch(input, init),
    tabStorage: storage("sessionStorage"),
    sharedStorage: storage("localStorage"),
    locks: globalThis.navigator?.locks,
    watch(wake, hide) {
      const visible = () => document.visibilityState === "visible" && wake();
      const gone = (event) => event.persisted || hide();
      const listeners = [
        [window, "online", wake],
        [window, "pageshow", wake],
        [document, "resume", wake],
        [document, "visibilitychange", visible],
        [window, "pagehide", gone]
      ];
      for (const [target, name, listener] of listeners) target.addEventListener(name, listener);
      return () => {
        for (const [target, name, listener] of listeners) target.removeEventListener(name, listener);
      };
    }
  };
}
function randomId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
function pause(ms, signal) {
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

// src/worker/api.ts
var PATIENCE = 1e4;
var FINAL = /* @__PURE__ */ new Set([400, 401, 403, 404, 405, 406, 410]);
var RelayError = class extends Error {
  constructor(status, error, message, retryAfter = 0) {
    super(message);
    this.status = status;
    this.error = error;
    this.retryAfter = retryAfter;
  }
  status;
  error;
  retryAfter;
  /** Another attempt would end the same way. */
  get final() {
    return FINAL.has(this.status);
  }
};
var Api = class {
  constructor(base, workerId, journalId, environment) {
    this.base = base;
    this.workerId = workerId;
    this.journalId = journalId;
    this.environment = environment;
  }
  base;
  workerId;
  journalId;
  environment;
  code = "";
  token;
  async createSession() {
    return await this.#send("POST", "/api/sessions", {});
  }
  /** The response whose body is the stream. */
  async stream(signal) {
    return this.#fetch("/api/stream?role=worker", { headers: this.#headers({ accept: "text/event-stream" }), signal });
  }
  /** The calls that wait, or that come within the time. A dash stands where older pages write the code. */
  async poll(seconds, signal) {
    const patience = AbortSignal.any([signal, AbortSignal.timeout(seconds * 1e3 + PATIENCE)]);
    const response = await this.#fetch(`/api/request/-?wait=${seconds}`, { headers: this.#headers({}), signal: patience });
    const { requests } = await response.json();
    return requests ?? [];
  }
  /** An answer as it is sent. */
  answerText(requestId, outcome, duration) {
    const said = { success: "result" in outcome, ...outcome, timestamp: Date.now(), duration: Math.round(duration) };
    return JSON.stringify({ sessionCode: this.code, requestId, ...said });
  }
  /** Brings answers, at most ten. Returns the refusal of each of several, or nothing for one that was taken. */
  async answers(texts) {
    const [only, ...more] = texts;
    const body = more.length === 0 ? only ?? "[]" : `[${texts.join()}]`;
    const said = await this.#post("POST", "/api/response", body);
    if (more.length === 0 || !Array.isArray(said)) return [];
    return said.map((one) => {
      return typeof one.error === "string" ? { error: one.error, message: String(one.message ?? one.error) } : void 0;
    });
  }
  async progress(requestId, progress) {
    await this.#send("POST", "/api/response", { sessionCode: this.code, requestId, progress });
  }
  async tools(tools) {
    const listed = tools.map(({ handler: _, ...tool }) => tool);
    await this.#send("PUT", "/api/tools", { sessionCode: this.code, tools: listed });
  }
  #headers(more) {
    const headers = { ...more, "x-worker-id": this.workerId, "x-worker-journal": this.journalId };
    if (this.code) headers["x-session-code"] = this.code;
    if (this.token) headers["x-worker-token"] = this.token;
    return headers;
  }
  #send(method, path, body) {
    return this.#post(method, path, JSON.stringify(body));
  }
  async #post(method, path, body) {
    const headers = this.#headers({ "content-type": "application/json" });
    const response = await this.#fetch(path, { method, headers, body, signal: AbortSignal.timeout(PATIENCE) });
    return response.json();
  }
  async #fetch(path, init) {
    const kept = { cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer", ...init };
    const response = await this.environment.fetch(this.base + path, kept);
    if (response.ok) return response;
    const said = await response.json().catch(() => ({}));
    const name = typeof said.error === "string" ? said.error : `http_${response.status}`;
    const message = typeof said.message === "string" ? said.message : `the gateway answered ${response.status}`;
    throw new RelayError(response.status, name, message, Number(response.headers.get("retry-after")) * 1e3 || 0);
  }
};

// src/worker/holding.ts
var RENEW = 1500;
var LEASE = 4 * RENEW;
function hold(environment, name, signal) {
  const { locks, sharedStorage } = environment;
  if (locks) return holdLock(locks, name, signal);
  if (!sharedStorage) return Promise.resolve(() => {
  });
  return holdLease(sharedStorage, `signalbox.lease.${name}`, signal);
}
function holdLock(locks, name, signal) {
  return new Promise((resolve) => {
    const granted = () => new Promise((release) => resolve(release));
    locks.request(name, { signal }, granted).catch(() => resolve(void 0));
  });
}
async function holdLease(storage2, key, signal) {
  const tab = randomId();
  const read = () => {
    try {
      return JSON.parse(storage2.getItem(key) ?? "{}");
    } catch {
      return {};
    }
  };
  const write = () => storage2.setItem(key, JSON.stringify({ tab, until: Date.now() + LEASE }));
  const mine = () => read().tab === tab;
  while (!signal.aborted) {
    const { until = 0 } = read();
    if (until < Date.now() || until > Date.now() + LEASE) {
      write();
      await pause(50 + Math.random() * 50, signal);
      if (mine()) break;
    }
    await pause(RENEW / 4, signal);
  }
  if (signal.aborted) {
    if (mine()) storage2.removeItem(key);
    return void 0;
  }
  const timer = setInterval(() => mine() && write(), RENEW);
  return () => {
    clearInterval(timer);
    if (mine()) storage2.removeItem(key);
  };
}

// src/worker/journal.ts
var MAX_CALLS = 200;
var MAX_HELD = 8e6;
var MAX_KEPT = 256 * 1024;
var PATIENCE2 = 500;
var ID = "signalbox.journal";
var CALL = "signalbox.call.";
var Journal = class _Journal {
  constructor(id, storage2, release) {
    this.id = id;
    this.release = release;
    this.#storage = storage2;
  }
  id;
  release;
  #calls = /* @__PURE__ */ new Map();
  #storage;
  #order = 0;
  #size = 0;
  /** Opens the journal of this tab. The copy of a tab has a copy of its storage: it begins a new journal. */
  static async open(environment) {
    const storage2 = environment.tabStorage;
    const id = storage2?.getItem(ID);
    if (id) {
      const release = await hold(environment, `signalbox-journal:${id}`, AbortSignal.timeout(PATIENCE2));
      if (release) {
        const journal = new _Journal(id, storage2, release);
        journal.#load();
        return journal;
      }
    }
    return _Journal.#begin(environment);
  }
  static async #begin(environment) {
    const id = randomId();
    const storage2 = environment.tabStorage;
    for (const key of keys(storage2)) storage2?.removeItem(key);
    const release = await hold(environment, `signalbox-journal:${id}`, AbortSignal.timeout(PATIENCE2));
    try {
      storage2?.setItem(ID, id);
    } catch {
      return new _Journal(id, void 0, release ?? (() => {
      }));
    }
    return new _Journal(id, storage2, release ?? (() => {
    }));
  }
  /** What is known of a call. */
  look(requestId) {
    const call = this.#calls.get(requestId);
    if (!call) return "unknown";
    if (call.state === "running") return "running";
    return call.outcome ?? "lost";
  }
  /** How many calls are remembered, and how many characters they take. */
  get held() {
    return { calls: this.#calls.size, size: this.#size };
  }
  /** Notes that a call begins, before anything of it happens. */
  begin(requestId) {
    this.#forget(requestId);
    this.#calls.set(requestId, { order: this.#order += 1, state: "running", size: 0 });
    this.#write(requestId);
    this.#bound();
  }
  /** Notes how a call ended, before the gateway is told. */
  end(requestId, outcome) {
    const call = this.#calls.get(requestId);
    if (!call) return;
    call.state = "ended";
    call.outcome = outcome;
    this.#write(requestId);
    this.#bound();
  }
  #load() {
    for (const key of keys(this.#storage)) {
      try {
        const text = this.#storage?.getItem(key) ?? "";
        const { order, outcome } = JSON.parse(text);
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
  #write(requestId) {
    const call = this.#calls.get(requestId);
    if (!call) return;
    const text = JSON.stringify({ order: call.order, outcome: call.outcome });
    this.#size += text.length - call.size;
    call.size = text.length;
    try {
      this.#storage?.setItem(CALL + requestId, text.length > MAX_KEPT ? JSON.stringify({ order: call.order }) : text);
    } catch {
    }
  }
  /** The oldest calls that have ended are forgotten first. Where there are too many bytes, it stays known that they ran. */
  #bound() {
    for (const [id, call] of this.#calls) {
      if (this.#calls.size <= MAX_CALLS) break;
      if (call.state !== "running") this.#forget(id);
    }
    for (const [id, call] of this.#calls) {
      if (this.#size <= MAX_HELD) break;
      if (!call.outcome) continue;
      call.outcome = void 0;
      this.#write(id);
    }
  }
  #forget(requestId) {
    this.#size -= this.#calls.get(requestId)?.size ?? 0;
    this.#calls.delete(requestId);
    this.#storage?.removeItem(CALL + requestId);
  }
};
function keys(storage2) {
  const found = [];
  for (let at = 0; at < (storage2?.length ?? 0); at += 1) {
    const key = storage2?.key(at);
    if (key?.startsWith(CALL)) found.push(key);
  }
  return found;
}

// src/worker/sse.ts
var MAX_EVENT = 32 * 1024 * 1024;
async function* readEvents(body, alive) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let event = "";
  let data = [];
  let held = 0;
  try {
    for (; ; ) {
      const { done, value } = await reader.read();
      if (done) return;
      alive();
      rest += decoder.decode(value, { stream: true });
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? "";
      if (held + rest.length > MAX_EVENT) throw new Error("an event of the stream is too long");
      for (const line of lines) {
        if (line === "") {
          if (data.length > 0) yield { event: event || "message", data: data.join("\n") };
          event = "";
          data = [];
          held = 0;
          continue;
        }
        const at = line.indexOf(":");
        const name = at < 0 ? line : line.slice(0, at);
        const text = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
        if (name === "event") event = text;
        if (name === "data") {
          data.push(text);
          held += text.length;
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {
    });
  }
}

// src/worker/receiver.ts
var HEARTBEAT = 25e3;
var FIRST_EVENT = 1e4;
var POLL_SECONDS = 25;
var StreamHeldBack = class extends Error {
};
var Receiver = class {
  #controller = new AbortController();
  #api;
  #hearing;
  #heartbeat = HEARTBEAT;
  #heard = Date.now();
  #timer;
  constructor(api, hearing) {
    this.#api = api;
    this.#hearing = hearing;
  }
  /** Ends the connection. */
  close(reason) {
    this.#controller.abort(reason);
  }
  /** Ends it if nothing was heard for longer than the gateway is ever silent. */
  wake() {
    if (Date.now() - this.#heard > this.#heartbeat * 1.2) this.close(new Error("nothing was heard from the gateway"));
  }
  /** Receives until the connection ends. Every end but that by the gateway is thrown. */
  async stream() {
    const { signal } = this.#controller;
    this.#expect(FIRST_EVENT, new StreamHeldBack("the stream began with nothing"));
    try {
      const response = await this.#api.stream(signal);
      const type = response.headers.get("content-type") ?? "";
      if (!response.body || !type.startsWith("text/event-stream")) throw new StreamHeldBack(`the stream is ${type || "empty"}`);
      for await (const event of readEvents(response.body, () => this.#alive())) this.#hear(event);
    } catch (thrown) {
      throw signal.aborted ? signal.reason : thrown;
    } finally {
      clearTimeout(this.#timer);
      this.close(new Error("the stream ended"));
    }
  }
  /** Polls until `until`, or until a poll fails. */
  async poll(until) {
    const { signal } = this.#controller;
    try {
      let seconds = 0;
      while (Date.now() < until) {
        const requests = await this.#api.poll(seconds, signal);
        this.#heard = Date.now();
        if (seconds === 0) this.#hearing.connected(false);
        else this.#hearing.heartbeat();
        seconds = POLL_SECONDS;
        for (const request of requests) this.#hearing.request(request);
      }
    } catch (thrown) {
      throw signal.aborted ? signal.reason : thrown;
    }
  }
  #alive() {
    this.#heard = Date.now();
    this.#expect(this.#heartbeat * 2.4, new Error("the gateway has fallen silent"));
  }
  #expect(ms, otherwise) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.close(otherwise), ms);
  }
  #hear({ event, data }) {
    const said = parsed(data);
    const text = (name) => typeof said[name] === "string" ? said[name] : "";
    switch (event) {
      case "connected":
        if (typeof said.heartbeatMs === "number" && said.heartbeatMs > 0) this.#heartbeat = said.heartbeatMs;
        this.#alive();
        return this.#hearing.connected(said.standby === true);
      case "promoted":
        return this.#hearing.connected(false);
      case "tool-request":
        return this.#hearing.request(said);
      case "cancel":
        return this.#hearing.cancel(text("id") || text("requestId"), text("reason"));
      case "heartbeat":
        return this.#hearing.heartbeat();
      case "error":
        if (text("error").startsWith("session_")) throw new RelayError(410, text("error"), text("message") || text("error"));
        throw new Error(text("message") || text("error") || "the gateway reported an error");
    }
  }
};
function parsed(data) {
  try {
    const value = JSON.parse(data);
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}

// src/worker/breaker.ts
var FAILURES = 5;
var WINDOW = 6e4;
var OPEN = 3e4;
var SUCCESSES = 2;
var Breaker = class {
  #failures = [];
  #openUntil = 0;
  #due = 0;
  /** Milliseconds until the next attempt may be made. */
  wait(now = Date.now()) {
    return Math.max(0, this.#openUntil - now);
  }
  /** True while attempts are made one by one, to see whether they succeed again. */
  get probes() {
    return this.#due > 0;
  }
  succeeded() {
    this.#due = Math.max(0, this.#due - 1);
  }
  /** Returns true if this failure opens it. */
  failed(now = Date.now()) {
    this.#failures = [...this.#failures.filter((at) => now - at < WINDOW), now];
    if (!this.probes && this.#failures.length < FAILURES) return false;
    this.#failures = [];
    this.#openUntil = now + OPEN;
    this.#due = SUCCESSES;
    return true;
  }
  /** Allows an attempt at once: the network has come back. */
  probe() {
    this.#openUntil = 0;
  }
};

// src/worker/outgoing.ts
var MAX_BATCH = 10;
var MAX_LENGTH = 256 * 1024;
var RETRIES = 3;
var RETRY_PAUSE = 500;
var ROUNDS = 5;
var PASSING = /* @__PURE__ */ new Set(["overloaded", "internal_server_error", "rate_limit_exceeded"]);
var SETTLED = /* @__PURE__ */ new Set(["duplicate_response", "request_not_found"]);
var Outgoing = class {
  #api;
  #problem;
  #breaker = new Breaker();
  #queue = [];
  /** Answers that could not be brought for now. */
  #unheard = [];
  #due = 0;
  #busy = false;
  #nap = new AbortController();
  constructor(api, problem) {
    this.#api = api;
    this.#problem = problem;
  }
  add(requestId, outcome, duration) {
    const waits = (answer) => answer.requestId === requestId;
    if (this.#queue.some(waits)) return;
    this.#unheard = this.#unheard.filter((answer) => !waits(answer));
    const text = this.#api.answerText(requestId, outcome, duration);
    this.#queue.push({ requestId, text, attempts: 0, rounds: 0, alone: false });
    void this.#drain();
  }
  /** Tries again what could not be brought before. With `back` the network has come back, and nothing is waited for. */
  flush(back) {
    for (const answer of this.#unheard.splice(0)) this.#queue.push({ ...answer, attempts: 0, rounds: answer.rounds + 1 });
    if (back) {
      this.#due = 0;
      this.#breaker.probe();
      this.#nap.abort();
    }
    void this.#drain();
  }
  stop() {
    this.#queue = [];
    this.#unheard = [];
    this.#nap.abort();
  }
  async #drain() {
    if (this.#busy) return;
    this.#busy = true;
    while (this.#queue.length > 0) {
      const wait = Math.max(this.#breaker.wait(), this.#due - Date.now());
      if (wait <= 0) {
        await this.#send(this.#take());
        continue;
      }
      this.#nap = new AbortController();
      await pause(wait, this.#nap.signal);
    }
    this.#busy = false;
  }
  /** The next answers that go together: one, while the breaker looks whether it can close. */
  #take() {
    const first = this.#queue.shift();
    if (!first) return [];
    const batch = [first];
    let length = first.text.length;
    while (batch.length < MAX_BATCH && !first.alone && !this.#breaker.probes) {
      const next = this.#queue[0];
      if (!next || next.alone || length + next.text.length > MAX_LENGTH) break;
      batch.push(next);
      length += next.text.length;
      this.#queue.shift();
    }
    return batch;
  }
  async #send(batch) {
    try {
      const refusals = await this.#api.answers(batch.map(({ text }) => text));
      this.#breaker.succeeded();
      batch.forEach((answer, index) => this.#settle(answer, refusals[index]));
    } catch (thrown) {
      const refused = thrown instanceof RelayError ? thrown : void 0;
      if (refused?.final || refused?.status === 409 || refused?.status === 413) this.#refused(batch, refused);
      else this.#failed(batch, String(thrown), refused?.retryAfter ?? 0);
    }
  }
  /** What the gateway says of one answer of several. */
  #settle(answer, refusal) {
    if (!refusal || SETTLED.has(refusal.error)) return;
    if (PASSING.has(refusal.error)) this.#failed([answer], refusal.message, 0);
    else this.#problem(`an answer was refused: ${refusal.message}`);
  }
  /** Of several that were refused, each is brought by itself: the others may be good. */
  #refused(batch, refused) {
    if (batch.length > 1) this.#queue.unshift(...batch.map((answer) => ({ ...answer, alone: true })));
    else if (!SETTLED.has(refused.error) && refused.status !== 409) this.#problem(`an answer was refused: ${refused.message}`);
  }
  #failed(batch, reason, retryAfter) {
    if (this.#breaker.failed()) this.#problem("answers wait, because several could not be brought");
    let longest = 0;
    const again = [];
    for (const answer of batch) {
      answer.attempts += 1;
      longest = Math.max(longest, RETRY_PAUSE * 2 ** (answer.attempts - 1));
      if (answer.attempts <= RETRIES) again.push(answer);
      else this.#giveUp(answer, reason);
    }
    this.#queue.unshift(...again);
    this.#due = Date.now() + (again.length > 0 ? Math.max(retryAfter, longest) : retryAfter);
  }
  #giveUp(answer, reason) {
    if (answer.rounds >= ROUNDS) return this.#problem(`an answer is given up: ${reason}`);
    this.#unheard.push(answer);
    if (answer.rounds === 0) this.#problem(`an answer could not be brought: ${reason}`);
  }
};

// src/worker/toolError.ts
var ToolError = class extends Error {
  constructor(type, message, details) {
    super(message);
    this.type = type;
    this.details = details;
    this.name = "ToolError";
  }
  type;
  details;
};
function callError(thrown) {
  if (typeof thrown === "object" && thrown !== null) {
    const { type, message, details } = thrown;
    const known = ["execution_error", "tool_not_found", "invalid_args", "codap_error", "outcome_unknown"];
    const kind = known.find((one) => one === type) ?? "execution_error";
    return { type: kind, message: message ?? String(thrown), ...details !== void 0 && { details } };
  }
  return { type: "execution_error", message: String(thrown) };
}

// src/worker/runner.ts
var MAX_WAITING = 100;
var GRACE = 5e3;
var Runner = class {
  #parts;
  #waiting = /* @__PURE__ */ new Map();
  #running = /* @__PURE__ */ new Map();
  #outgoing;
  constructor(parts) {
    this.#parts = parts;
    this.#outgoing = new Outgoing(parts.api, parts.problem);
  }
  /** Takes a call that arrived, perhaps not for the first time. */
  deliver(request) {
    if (typeof request?.id !== "string" || typeof request.tool !== "string") return;
    const { journal } = this.#parts;
    const known = journal.look(request.id);
    if (this.#waiting.has(request.id) || known === "running") return;
    if (known === "unknown" || known === "lost" && request.idempotent === true) return this.#enqueue(request);
    if (known === "lost") {
      const message = "the page was reloaded while the call ran; whether it took effect is not known";
      this.#settle(request, { error: { type: "outcome_unknown", message } }, 0);
      return;
    }
    this.#tell(request, "repeated", known);
    this.#outgoing.add(request.id, known, 0);
  }
  /** Nobody waits for the call any more. */
  cancel(requestId, reason) {
    const waiting = this.#waiting.get(requestId);
    if (waiting) {
      this.#waiting.delete(requestId);
      this.#tell(waiting.request, "cancelled");
    }
    this.#running.get(requestId)?.abort(new ToolError("execution_error", reason || "cancelled"));
  }
  /** Brings what could not be brought before. With `back` the network has come back. */
  flush(back) {
    this.#outgoing.flush(back);
  }
  stop() {
    this.#waiting.clear();
    this.#outgoing.stop();
    for (const controller of this.#running.values()) controller.abort(new ToolError("execution_error", "the page stopped"));
  }
  #enqueue(request) {
    const { deadline, timestamp } = request;
    const time = deadline !== void 0 && timestamp !== void 0 ? deadline - timestamp : Number.POSITIVE_INFINITY;
    if (this.#waiting.size >= MAX_WAITING) {
      this.#settle(request, { error: { type: "execution_error", message: "too many calls wait in the page" } }, 0);
      return;
    }
    this.#waiting.set(request.id, { request, until: Date.now() + time });
    this.#next();
  }
  #next() {
    for (const [id, { request, until }] of this.#waiting) {
      if (this.#running.size >= this.#parts.concurrency) return;
      this.#waiting.delete(id);
      if (until <= Date.now()) this.#tell(request, "cancelled");
      else void this.#run(request, until).then(() => this.#next());
    }
  }
  async #run(request, until) {
    const controller = new AbortController();
    this.#running.set(request.id, controller);
    this.#parts.journal.begin(request.id);
    this.#tell(request, "started");
    const begun = performance.now();
    const left = until - Date.now();
    const over = () => controller.abort(new ToolError("execution_error", "the time of the call is over"));
    const timer = Number.isFinite(left) ? setTimeout(over, left) : void 0;
    const outcome = await this.#outcome(request, controller.signal);
    clearTimeout(timer);
    this.#running.delete(request.id);
    if (controller.signal.aborted) {
      this.#parts.journal.end(request.id, outcome);
      this.#tell(request, "cancelled", outcome, performance.now() - begun);
      return;
    }
    this.#settle(request, outcome, performance.now() - begun);
  }
  async #outcome(request, signal) {
    const { api, handler } = this.#parts;
    const found = handler(request.tool);
    if (!found) return { error: { type: "tool_not_found", message: `this page has no tool ${request.tool}` } };
    const progress = (progress2, total, message) => {
      if (signal.aborted) return;
      const said = { progress: progress2, ...total !== void 0 && { total }, ...message !== void 0 && { message } };
      api.progress(request.id, said).catch(() => {
      });
    };
    const context = { tool: request.tool, requestId: request.id, signal, idempotent: request.idempotent === true, progress };
    const hung = new Promise((_, fail) => {
      signal.addEventListener("abort", () => void pause(GRACE).then(() => fail(signal.reason)));
    });
    try {
      const work = (async () => found(request.arguments ?? request.args ?? {}, context))();
      return { result: await Promise.race([work, hung]) ?? null };
    } catch (thrown) {
      return { error: callError(thrown) };
    }
  }
  /** Notes an outcome, and then brings it to the gateway. */
  #settle(request, outcome, duration) {
    const { journal } = this.#parts;
    if (journal.look(request.id) === "unknown") journal.begin(request.id);
    journal.end(request.id, outcome);
    this.#tell(request, "answered", outcome, duration);
    this.#outgoing.add(request.id, outcome, duration);
  }
  #tell(request, phase, outcome, duration) {
    const args = request.arguments ?? request.args ?? {};
    this.#parts.tell({ requestId: request.id, tool: request.tool, args, phase, ...outcome, ...duration !== void 0 && { duration } });
  }
};

// src/worker/sessionStore.ts
var FORGET = 24 * 60 * 60 * 1e3;
var TAB = "signalbox.session";
var TOKEN = "signalbox.token.";
var SessionStore = class {
  #tab;
  #shared;
  constructor(environment) {
    this.#tab = environment.tabStorage;
    this.#shared = environment.sharedStorage;
  }
  /** The session of this tab at this gateway. */
  recall(base) {
    const known = parse(this.#tab?.getItem(TAB));
    return known?.base === base ? known : void 0;
  }
  remember(session) {
    attempt(() => this.#tab?.setItem(TAB, JSON.stringify(session)));
  }
  forget() {
    this.#tab?.removeItem(TAB);
  }
  token(code) {
    return parse(this.#shared?.getItem(TOKEN + code))?.token;
  }
  keepToken(code, token) {
    const now = Date.now();
    const shared = this.#shared;
    for (let at = (shared?.length ?? 0) - 1; at >= 0; at -= 1) {
      const key = shared?.key(at) ?? "";
      if (key.startsWith(TOKEN) && (parse(shared?.getItem(key))?.at ?? 0) + FORGET < now) shared?.removeItem(key);
    }
    attempt(() => shared?.setItem(TOKEN + code, JSON.stringify({ token, at: now })));
  }
  dropToken(code) {
    this.#shared?.removeItem(TOKEN + code);
  }
};
function parse(text) {
  try {
    return text ? JSON.parse(text) : void 0;
  } catch {
    return void 0;
  }
}
function attempt(write) {
  try {
    write();
  } catch {
  }
}

// src/worker/relayWorker.ts
var STOOD = 5e3;
var POLL_PERIOD = 5 * 6e4;
var HELD_BACK = 2;
var LEADER_PATIENCE = 200;
var BACKOFF = { min: 1e3, max: 3e4 };
var CODE = /^[A-Z0-9]{8}$/;
var RelayWorker = class {
  state = { state: "disconnected", standby: false, transport: "stream" };
  session;
  ready;
  #options;
  #environment;
  #base;
  #store;
  #listeners = /* @__PURE__ */ new Map();
  #stopped = new AbortController();
  #held = [];
  #leads = () => {
  };
  #settled;
  #tools;
  #api;
  #runner;
  #receiver;
  #nap = new AbortController();
  #offered = false;
  /** The session came from the tab's storage: if it is gone, a new one takes its place. */
  #resumed = false;
  constructor(options, environment, base) {
    this.#options = options;
    this.#environment = environment;
    this.#base = base;
    this.#store = new SessionStore(environment);
    this.#tools = options.tools ?? [];
    let settled;
    this.ready = new Promise((resolve, reject) => settled = { resolve, reject });
    this.#settled = settled;
    this.ready.catch(() => {
    });
    this.#held.push(environment.watch(() => this.wake(), () => this.#leave()));
    void this.#live();
  }
  on(name, listener) {
    const listeners = this.#listeners.get(name) ?? /* @__PURE__ */ new Set();
    this.#listeners.set(name, listeners.add(listener));
    return () => listeners.delete(listener);
  }
  async registerTools(tools) {
    this.#tools = tools;
    this.#offered = false;
    if (this.state.state !== "connected" || this.state.standby) return;
    await this.#api.tools(tools);
    this.#offered = true;
  }
  wake() {
    this.#nap.abort();
    this.#receiver?.wake();
    if (this.state.state === "connected") this.#runner.flush(true);
  }
  stop() {
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
  #leave() {
    this.#leads();
    for (const release of this.#held.splice(0)) release();
  }
  #emit(name, event) {
    for (const listener of this.#listeners.get(name) ?? []) {
      try {
        listener(event);
      } catch (thrown) {
        console.error(thrown);
      }
    }
  }
  #become(change) {
    this.state = { transport: this.state.transport, ...change };
    this.#emit("state", this.state);
  }
  async #live() {
    const { signal } = this.#stopped;
    try {
      await null;
      this.#become({ state: "connecting", standby: false });
      const journal = await Journal.open(this.#environment);
      this.#held.push(journal.release);
      if (signal.aborted) return this.#leave();
      this.#api = new Api(this.#base, randomId(), journal.id, this.#environment);
      this.#runner = this.#newRunner(journal);
      await this.#again(() => this.#openSession());
      if (await this.#lead()) await this.#stayConnected();
    } catch (thrown) {
      if (!signal.aborted) this.#fail(thrown);
    }
  }
  #newRunner(journal) {
    return new Runner({
      api: this.#api,
      journal,
      concurrency: Math.max(1, this.#options.concurrency ?? 1),
      handler: (tool) => this.#tools.find(({ name }) => name === tool)?.handler ?? own(this.#options.handlers, tool),
      tell: (event) => this.#emit("call", event),
      problem: (message) => this.#emit("problem", { message })
    });
  }
  #fail(thrown) {
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
  async #openSession() {
    const [code, token] = (this.#options.code ?? "").trim().split(".");
    if (code) {
      const upper = code.toUpperCase();
      if (!CODE.test(upper)) throw new RelayError(400, "invalid_session_code", "a session code has eight letters and digits");
      return this.#use(upper, this.#options.token ?? token ?? this.#store.token(upper), void 0);
    }
    const known = this.#options.fresh || this.#resumed ? void 0 : this.#store.recall(this.#base);
    if (known) {
      this.#resumed = true;
      return this.#use(known.code, this.#store.token(known.code), known.joinUrl);
    }
    const made = await this.#api.createSession();
    this.#resumed = false;
    this.#use(made.code, made.workerToken, made.joinUrl);
  }
  #use(code, token, joinUrl) {
    this.#api.code = code;
    this.#api.token = token;
    const plain = joinUrl ?? `${this.#base}/relay/demo/#${code}`;
    this.#store.remember({ base: this.#base, code, joinUrl: plain });
    if (token) this.#store.keepToken(code, token);
    this.session = { code, joinUrl: token ? `${plain}.${token}` : plain, hasToken: !!token };
    this.#emit("session", this.session);
  }
  /** Waits until no other tab of this browser serves the session. */
  async #lead() {
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
    this.#api.token ??= this.#store.token(this.#api.code);
    return true;
  }
  /** Connects again and again, until that makes no sense or the page stops it. */
  async #stayConnected() {
    let heldBack = 0;
    let failures = 0;
    const { transport = "auto" } = this.#options;
    while (!this.#stopped.signal.aborted) {
      const polls = transport === "poll" || transport === "auto" && heldBack >= HELD_BACK;
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
        reason = thrown.message;
        wait = thrown instanceof RelayError ? thrown.retryAfter : 0;
      }
      failures = Date.now() - begun > STOOD ? 0 : failures + 1;
      if (failures > this.#maxRetries) throw new Error(reason);
      await this.#sleep(reason, Math.max(wait, this.#backoff(failures)));
    }
  }
  async #receive(transport, now) {
    this.#receiver = new Receiver(this.#api, {
      connected: (standby) => this.#connected(standby, transport),
      request: (request) => this.#runner.deliver(request),
      cancel: (requestId, reason) => this.#runner.cancel(requestId, reason),
      heartbeat: () => this.#runner.flush(false)
    });
    if (transport === "stream") await this.#receiver.stream();
    else await this.#receiver.poll(now + POLL_PERIOD);
  }
  #connected(standby, transport) {
    this.#resumed = false;
    this.#become({ state: "connected", standby, transport });
    if (this.session) this.#settled.resolve(this.session);
    this.#runner.flush(true);
    if (standby || this.#offered || this.#tools.length === 0) return;
    this.#offered = true;
    this.#api.tools(this.#tools).catch((thrown) => {
      this.#offered = false;
      this.#emit("problem", { message: `the tools were not taken: ${thrown.message}` });
    });
  }
  /** A session that only the tab's storage knew of and that is gone is replaced by a new one. */
  async #replaced(thrown) {
    if (!this.#resumed || !(thrown instanceof RelayError) || !thrown.error.startsWith("session_")) return false;
    this.#store.forget();
    this.#leads();
    await this.#again(() => this.#openSession());
    return this.#lead();
  }
  get #maxRetries() {
    return this.#options.maxRetries ?? Number.POSITIVE_INFINITY;
  }
  #backoff(failures) {
    const { min, max } = this.#options.backoff ?? BACKOFF;
    return Math.min(max, min * 2 ** Math.max(0, failures - 1)) * (0.5 + Math.random() / 2);
  }
  /** Pauses before the next attempt; a machine that wakes up ends the pause. */
  async #sleep(reason, ms) {
    if (this.#stopped.signal.aborted) return;
    this.#nap = new AbortController();
    this.#become({ state: "reconnecting", standby: false, reason, retryIn: Math.round(ms) });
    await pause(ms, this.#nap.signal);
  }
  /** Does something until it works, or makes no sense any more. */
  async #again(attempt2) {
    for (let failures = 1; ; failures += 1) {
      try {
        return await attempt2();
      } catch (thrown) {
        const final = failures > this.#maxRetries || thrown instanceof RelayError && thrown.final;
        if (this.#stopped.signal.aborted || final) throw thrown;
        const wait = thrown instanceof RelayError ? thrown.retryAfter : 0;
        await this.#sleep(thrown.message, Math.max(wait, this.#backoff(failures)));
      }
    }
  }
};
function own(values, name) {
  return values && Object.hasOwn(values, name) ? values[name] : void 0;
}

// src/worker/index.ts
function connect(options = {}, environment = browser()) {
  const base = (options.url ?? new URL("..", import.meta.url).href).replace(/\/+$/, "");
  return new RelayWorker(options, environment, base);
}
export {
  ToolError,
  connect
};
