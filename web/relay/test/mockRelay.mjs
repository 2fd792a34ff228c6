// A relay as far as workers see it: sessions, the stream, answers, polls, tools and pages, with faults on demand.
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { root } from "./packages.mjs";

const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };

/** Starts a relay on a port of its own. */
export async function startRelay({ heartbeatMs = 25_000 } = {}) {
  const relay = new MockRelay(heartbeatMs);
  await new Promise((done) => relay.server.listen(0, "127.0.0.1", done));
  relay.url = `http://127.0.0.1:${relay.server.address().port}`;
  return relay;
}

class MockRelay {
  sessions = new Map();
  /** Every request that arrived: `METHOD path status`. */
  log = [];
  /** Addresses and headers of all requests, to look for codes in. */
  seen = [];
  /** Answers requests with a status instead: `(method, path) => status | undefined`. */
  fault = () => undefined;
  /** Keeps streams open and sends nothing on them. */
  mute = false;
  /** How many answers came together, for each time that several did. */
  batches = [];
  timers = new Set();
  /** Sends no heartbeats. */
  silent = false;

  constructor(heartbeatMs) {
    this.heartbeatMs = heartbeatMs;
    this.server = createServer((request, response) => this.#serve(request, response));
  }

  async stop() {
    for (const timer of this.timers) clearTimeout(timer);
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  session(code) {
    return this.sessions.get(code);
  }

  /** Makes a session, as an agent would. */
  create() {
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    const code = [...randomBytes(8)].map((byte) => alphabet[byte % 32]).join("");
    this.sessions.set(code, {
      code, token: randomBytes(32).toString("base64url"), workers: [], calls: new Map(), polls: [], tools: [], answers: [], progress: [],
    });
    return code;
  }

  /** Calls a tool and waits for the answer. */
  call(code, tool, args = {}, { idempotent = false, deadline = 30_000, id = randomBytes(16).toString("hex") } = {}) {
    const session = this.session(code);
    const now = Date.now();
    const request = {
      id, requestId: id, tool, args, arguments: args, timestamp: now, sessionCode: code, idempotent, redelivered: false, deadline: now + deadline,
    };
    return new Promise((done) => {
      session.calls.set(id, { request, done, journal: undefined, sent: false });
      this.#deliver(session);
    });
  }

  /** Nobody waits for the call any more. */
  cancel(code, id, reason) {
    const session = this.session(code);
    session.calls.delete(id);
    this.#send(session.workers[0], "cancel", { id, requestId: id, reason });
  }

  /** Ends all streams, as a proxy or a lost network does. */
  cut(code) {
    for (const worker of this.session(code)?.workers ?? []) worker.response.destroy();
  }

  expire(code) {
    const session = this.session(code);
    this.sessions.delete(code);
    for (const worker of session.workers) {
      this.#send(worker, "error", { error: "session_expired", message: "the session is over", timestamp: Date.now() });
      worker.response.end();
    }
  }

  #send(worker, event, data) {
    if (worker && !this.mute) worker.response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  #deliver(session) {
    const [worker] = session.workers;
    for (const call of session.calls.values()) {
      if (call.sent || !worker) continue;
      this.#mark(session, call, worker.journal) && this.#send(worker, "tool-request", call.request);
    }
    if (!worker && session.polls.length > 0) {
      const due = [...session.calls.values()].filter((call) => !call.sent);
      if (due.length > 0) session.polls.shift()(due.filter((call) => this.#mark(session, call, "poll")).map(({ request }) => request));
    }
  }

  /** A call that was sent before goes again to the same journal, or if it may run twice. */
  #mark(session, call, journal) {
    const again = call.journal !== undefined;
    if (again && call.journal !== journal && !call.request.idempotent) {
      session.calls.delete(call.request.id);
      call.done({ error: { type: "outcome_unknown" }, by: "relay" });
      return false;
    }
    call.request.redelivered = again;
    call.journal ??= journal;
    call.sent = true;
    return true;
  }

  #serve(request, response) {
    const url = new URL(request.url, this.url);
    this.seen.push({ url: request.url, headers: request.headers });
    response.on("close", () => this.log.push(`${request.method} ${url.pathname} ${response.statusCode}`));
    const fault = this.fault(request.method, url.pathname);
    if (fault === "hang") return;
    if (fault === "drop") return request.destroy();
    if (fault) return refuse(response, fault, `http_${fault}`);
    const pieces = [];
    request.on("data", (piece) => pieces.push(piece));
    request.on("end", () => {
      const text = Buffer.concat(pieces).toString();
      const body = text ? JSON.parse(text) : {};
      this.#route(request, url, body, response);
    });
  }

  #route(request, url, body, response) {
    const { method, headers } = request;
    if (method === "GET" && url.pathname.startsWith("/relay/")) return page(url.pathname, response);
    if (method === "POST" && url.pathname === "/api/sessions") {
      const { token, code } = this.session(this.create());
      return reply(response, 201, { sessionCode: code, code, ttl: 600_000, workerToken: token, joinUrl: `${this.url}/relay/demo/#${code}` });
    }
    const session = this.session(headers["x-session-code"] ?? (Array.isArray(body) ? body[0]?.sessionCode : body.sessionCode));
    if (!session) return refuse(response, 404, "session_not_found");
    const proved = headers["x-worker-token"] === session.token;
    session.tokenUsed ||= proved;
    if (url.pathname === "/api/stream") return this.#stream(session, headers, response);
    if (method === "GET" && url.pathname.startsWith("/api/request")) return this.#poll(session, Number(url.searchParams.get("wait")), response);
    if (session.tokenUsed && !proved) return refuse(response, 403, "invalid_worker_token");
    if (method === "PUT" && url.pathname === "/api/tools") {
      session.tools = body.tools;
      return reply(response, 200, { tools: body.tools.length });
    }
    if (method === "POST" && url.pathname === "/api/response") return this.#answer(session, body, response);
    return refuse(response, 404, "not_found");
  }

  #stream(session, headers, response) {
    const worker = { response, journal: headers["x-worker-journal"], id: headers["x-worker-id"], token: headers["x-worker-token"] };
    session.workers.push(worker);
    const standby = session.workers[0] !== worker;
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    this.#send(worker, "connected", { code: session.code, workerId: worker.id, standby, heartbeatMs: this.heartbeatMs });
    const timer = setInterval(() => this.silent || this.#send(worker, "heartbeat", { timestamp: Date.now() }), this.heartbeatMs);
    response.on("close", () => {
      clearInterval(timer);
      const led = session.workers[0] === worker;
      session.workers.splice(session.workers.indexOf(worker), 1);
      if (!led) return;
      for (const call of session.calls.values()) call.sent = false;
      if (session.workers[0]) this.#send(session.workers[0], "promoted", { timestamp: Date.now() });
      this.#deliver(session);
    });
    if (!standby) this.#deliver(session);
  }

  #poll(session, wait, response) {
    const give = (requests) => {
      clearTimeout(timer);
      session.polls = session.polls.filter((one) => one !== give);
      reply(response, 200, { requests });
    };
    const timer = setTimeout(() => give([]), wait * 1000);
    this.timers.add(timer);
    session.polls.push(give);
    this.#deliver(session);
  }

  #answer(session, body, response) {
    if (Array.isArray(body)) {
      this.batches.push(body.length);
      const taken = [];
      const one = { writeHead: () => ({ end: (text) => taken.push(JSON.parse(text)) }) };
      for (const answer of body) this.#answer(session, answer, one);
      return reply(response, 200, taken);
    }
    if (body.progress !== undefined) {
      session.progress.push(body);
      return reply(response, 202, {});
    }
    const call = session.calls.get(body.requestId);
    const before = session.answers.some(({ requestId }) => requestId === body.requestId);
    if (!call) return before ? refuse(response, 409, "duplicate_response") : refuse(response, 404, "request_not_found");
    session.calls.delete(body.requestId);
    session.answers.push(body);
    call.done(body);
    return reply(response, 200, { success: true, requestId: body.requestId });
  }
}

function reply(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function refuse(response, status, error) {
  reply(response, status, { error, message: `refused: ${error}`, code: error.toUpperCase() });
}

/** A file of the pages, under the policy of the gateway. */
function page(path, response) {
  const file = join(root, "crates/relay/assets", path.slice("/relay/".length), path.endsWith("/") ? "index.html" : "");
  if (path.includes("..") || !existsSync(file)) return refuse(response, 404, "not_found");
  const policy = "default-src 'self'; connect-src *";
  response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "text/plain", "content-security-policy": policy, "referrer-policy": "no-referrer" });
  return response.end(readFileSync(file));
}
