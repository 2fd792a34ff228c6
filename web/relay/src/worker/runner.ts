import type { Api, ToolRequest } from "./api.ts";
import { pause } from "./environment.ts";
import type { Journal, Outcome } from "./journal.ts";
import { Outgoing } from "./outgoing.ts";
import { callError, ToolError } from "./toolError.ts";
import type { CallEvent, Handler } from "./types.ts";

/** The most calls that wait. The gateway holds no more for a session either. */
const MAX_WAITING = 100;
/** A handler that does not end when it is told to holds up the others this long, and no longer. */
const GRACE = 5_000;

/** What a runner is given. */
export interface RunnerParts {
  api: Api;
  journal: Journal;
  concurrency: number;
  handler(tool: string): Handler | undefined;
  tell(event: CallEvent): void;
  problem(message: string): void;
}

interface Waiting {
  request: ToolRequest;
  /** When the gateway stops waiting, by this machine's clock. */
  until: number;
}

/** Runs the calls that arrive, each once, and brings their answers to the gateway. */
export class Runner {
  readonly #parts: RunnerParts;
  readonly #waiting = new Map<string, Waiting>();
  readonly #running = new Map<string, AbortController>();
  readonly #outgoing: Outgoing;

  constructor(parts: RunnerParts) {
    this.#parts = parts;
    this.#outgoing = new Outgoing(parts.api, parts.problem);
  }

  /** Takes a call that arrived, perhaps not for the first time. */
  deliver(request: ToolRequest): void {
    if (typeof request?.id !== "string" || typeof request.tool !== "string") return;
    const { journal } = this.#parts;
    const known = journal.look(request.id);
    if (this.#waiting.has(request.id) || known === "running") return;
    if (known === "unknown" || (known === "lost" && request.idempotent === true)) return this.#enqueue(request);
    if (known === "lost") {
      const message = "the page was reloaded while the call ran; whether it took effect is not known";
      this.#settle(request, { error: { type: "outcome_unknown", message } }, 0);
      return;
    }
    this.#tell(request, "repeated", known);
    this.#outgoing.add(request.id, known, 0);
  }

  /** Nobody waits for the call any more. */
  cancel(requestId: string, reason: string): void {
    const waiting = this.#waiting.get(requestId);
    if (waiting) {
      this.#waiting.delete(requestId);
      this.#tell(waiting.request, "cancelled");
    }
    this.#running.get(requestId)?.abort(new ToolError("execution_error", reason || "cancelled"));
  }

  /** Brings what could not be brought before. With `back` the network has come back. */
  flush(back: boolean): void {
    this.#outgoing.flush(back);
  }

  stop(): void {
    this.#waiting.clear();
    this.#outgoing.stop();
    for (const controller of this.#running.values()) controller.abort(new ToolError("execution_error", "the page stopped"));
  }

  #enqueue(request: ToolRequest): void {
    const { deadline, timestamp } = request;
    const time = deadline !== undefined && timestamp !== undefined ? deadline - timestamp : Number.POSITIVE_INFINITY;
    if (this.#waiting.size >= MAX_WAITING) {
      this.#settle(request, { error: { type: "execution_error", message: "too many calls wait in the page" } }, 0);
      return;
    }
    this.#waiting.set(request.id, { request, until: Date.now() + time });
    this.#next();
  }

  #next(): void {
    for (const [id, { request, until }] of this.#waiting) {
      if (this.#running.size >= this.#parts.concurrency) return;
      this.#waiting.delete(id);
      if (until <= Date.now()) this.#tell(request, "cancelled");
      else void this.#run(request, until).then(() => this.#next());
    }
  }

  async #run(request: ToolRequest, until: number): Promise<void> {
    const controller = new AbortController();
    this.#running.set(request.id, controller);
    this.#parts.journal.begin(request.id);
    this.#tell(request, "started");
    const begun = performance.now();
    const left = until - Date.now();
    const over = () => controller.abort(new ToolError("execution_error", "the time of the call is over"));
    const timer = Number.isFinite(left) ? setTimeout(over, left) : undefined;
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

  async #outcome(request: ToolRequest, signal: AbortSignal): Promise<Outcome> {
    const { api, handler } = this.#parts;
    const found = handler(request.tool);
    if (!found) return { error: { type: "tool_not_found", message: `this page has no tool ${request.tool}` } };
    const progress = (progress: number, total?: number, message?: string) => {
      if (signal.aborted) return;
      const said = { progress, ...(total !== undefined && { total }), ...(message !== undefined && { message }) };
      api.progress(request.id, said).catch(() => {});
    };
    const context = { tool: request.tool, requestId: request.id, signal, idempotent: request.idempotent === true, progress };
    const hung = new Promise<never>((_, fail) => {
      signal.addEventListener("abort", () => void pause(GRACE).then(() => fail(signal.reason)));
    });
    try {
      const work = (async () => found(request.arguments ?? request.args ?? {}, context))();
      return { result: (await Promise.race([work, hung])) ?? null };
    } catch (thrown) {
      return { error: callError(thrown) };
    }
  }

  /** Notes an outcome, and then brings it to the gateway. */
  #settle(request: ToolRequest, outcome: Outcome, duration: number): void {
    const { journal } = this.#parts;
    if (journal.look(request.id) === "unknown") journal.begin(request.id);
    journal.end(request.id, outcome);
    this.#tell(request, "answered", outcome, duration);
    this.#outgoing.add(request.id, outcome, duration);
  }

  #tell(request: ToolRequest, phase: CallEvent["phase"], outcome?: Outcome, duration?: number): void {
    const args = request.arguments ?? request.args ?? {};
    this.#parts.tell({ requestId: request.id, tool: request.tool, args, phase, ...outcome, ...(duration !== undefined && { duration }) });
  }
}
