import type { Environment } from "./environment.ts";
import type { CallError, Tool } from "./types.ts";

/** How long an answer of the gateway may take, where nothing is waited for. */
const PATIENCE = 10_000;
/** Errors of the relay after which another attempt makes no sense. */
const FINAL = new Set([400, 401, 403, 404, 405, 406, 410]);

/** A call, as the gateway sends it. */
export interface ToolRequest {
  id: string;
  tool: string;
  args?: Record<string, unknown>;
  arguments?: Record<string, unknown>;
  timestamp?: number;
  deadline?: number;
  idempotent?: boolean;
  redelivered?: boolean;
}

/** What a new session consists of. */
export interface NewSession {
  code: string;
  workerToken?: string;
  joinUrl?: string;
}

/** The gateway refused. */
export class RelayError extends Error {
  constructor(readonly status: number, readonly error: string, message: string, readonly retryAfter = 0) {
    super(message);
  }

  /** Another attempt would end the same way. */
  get final(): boolean {
    return FINAL.has(this.status);
  }
}

/** The routes of the relay that a worker uses. The code travels in a header or a body, never in an address. */
export class Api {
  code = "";
  token: string | undefined;

  constructor(readonly base: string, readonly workerId: string, readonly journalId: string, readonly environment: Environment) {}

  async createSession(): Promise<NewSession> {
    return (await this.#send("POST", "/api/sessions", {})) as NewSession;
  }

  /** The response whose body is the stream. */
  async stream(signal: AbortSignal): Promise<Response> {
    return this.#fetch("/api/stream?role=worker", { headers: this.#headers({ accept: "text/event-stream" }), signal });
  }

  /** The calls that wait, or that come within the time. A dash stands where older pages write the code. */
  async poll(seconds: number, signal: AbortSignal): Promise<ToolRequest[]> {
    const patience = AbortSignal.any([signal, AbortSignal.timeout(seconds * 1000 + PATIENCE)]);
    const response = await this.#fetch(`/api/request/-?wait=${seconds}`, { headers: this.#headers({}), signal: patience });
    const { requests } = (await response.json()) as { requests?: ToolRequest[] };
    return requests ?? [];
  }

  /** An answer as it is sent. */
  answerText(requestId: string, outcome: { result: unknown } | { error: CallError }, duration: number): string {
    const said = { success: "result" in outcome, ...outcome, timestamp: Date.now(), duration: Math.round(duration) };
    return JSON.stringify({ sessionCode: this.code, requestId, ...said });
  }

  /** Brings answers, at most ten. Returns the refusal of each of several, or nothing for one that was taken. */
  async answers(texts: string[]): Promise<({ error: string; message: string } | undefined)[]> {
    const [only, ...more] = texts;
    const body = more.length === 0 ? (only ?? "[]") : `[${texts.join()}]`;
    const said = await this.#post("POST", "/api/response", body);
    if (more.length === 0 || !Array.isArray(said)) return [];
    return said.map((one: { error?: unknown; message?: unknown }) => {
      return typeof one.error === "string" ? { error: one.error, message: String(one.message ?? one.error) } : undefined;
    });
  }

  async progress(requestId: string, progress: { progress: number; total?: number; message?: string }): Promise<void> {
    await this.#send("POST", "/api/response", { sessionCode: this.code, requestId, progress });
  }

  async tools(tools: Tool[]): Promise<void> {
    const listed = tools.map(({ handler: _, ...tool }) => tool);
    await this.#send("PUT", "/api/tools", { sessionCode: this.code, tools: listed });
  }

  #headers(more: Record<string, string>): Record<string, string> {
    const headers: Record<string, string> = { ...more, "x-worker-id": this.workerId, "x-worker-journal": this.journalId };
    if (this.code) headers["x-session-code"] = this.code;
    if (this.token) headers["x-worker-token"] = this.token;
    return headers;
  }

  #send(method: string, path: string, body: unknown): Promise<unknown> {
    return this.#post(method, path, JSON.stringify(body));
  }

  async #post(method: string, path: string, body: string): Promise<unknown> {
    const headers = this.#headers({ "content-type": "application/json" });
    const response = await this.#fetch(path, { method, headers, body, signal: AbortSignal.timeout(PATIENCE) });
    return response.json();
  }

  async #fetch(path: string, init: RequestInit): Promise<Response> {
    const kept: RequestInit = { cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer", ...init };
    const response = await this.environment.fetch(this.base + path, kept);
    if (response.ok) return response;
    const said = (await response.json().catch(() => ({}))) as { error?: unknown; message?: unknown };
    const name = typeof said.error === "string" ? said.error : `http_${response.status}`;
    const message = typeof said.message === "string" ? said.message : `the gateway answered ${response.status}`;
    throw new RelayError(response.status, name, message, Number(response.headers.get("retry-after")) * 1000 || 0);
  }
}
