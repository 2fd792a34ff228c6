import { ToolError } from "../../worker/toolError.ts";
import type { Arguments } from "./arguments.ts";
import type { Ask, CodapAnswer, CodapRequest } from "./types.ts";

/** CODAP as one call of a tool sees it: it answers, or the call ends in a `codap_error` with CODAP's own words. */
export class Codap {
  readonly #ask: Ask;
  readonly #signal: AbortSignal;

  constructor(ask: Ask, signal: AbortSignal) {
    this.#ask = ask;
    this.#signal = signal;
  }

  /** The answer, which may be a refusal. */
  async try(request: CodapRequest): Promise<CodapAnswer> {
    if (this.#signal.aborted) throw new ToolError("execution_error", "the call was cancelled before CODAP was asked", { request });
    let answer: CodapAnswer | undefined;
    try {
      answer = await this.#ask(request);
    } catch (thrown) {
      const reason = thrown instanceof Error ? thrown.message : String(thrown);
      throw new ToolError("codap_error", `CODAP did not answer: ${reason}`, { request: short(request) });
    }
    if (typeof answer !== "object" || answer === null) throw new ToolError("codap_error", "CODAP's answer is no object", { request: short(request) });
    return answer;
  }

  async #send(request: CodapRequest): Promise<CodapAnswer> {
    const answer = await this.try(request);
    if (!answer.success) throw new ToolError("codap_error", refusal(answer, request), { request: short(request) });
    return answer;
  }

  get(resource: string): Promise<CodapAnswer> {
    return this.#send({ action: "get", resource });
  }

  create(resource: string, values: unknown): Promise<CodapAnswer> {
    return this.#send({ action: "create", resource, values });
  }

  update(resource: string, values: unknown): Promise<CodapAnswer> {
    return this.#send({ action: "update", resource, values });
  }

  delete(resource: string): Promise<CodapAnswer> {
    return this.#send({ action: "delete", resource });
  }

  /** What a resource that lists has; an answer without a list is an empty one. */
  async list(resource: string): Promise<unknown[]> {
    const { values } = await this.get(resource);
    return Array.isArray(values) ? values : [];
  }
}

/** Why CODAP refused. */
export function refusal(answer: CodapAnswer, request: CodapRequest): string {
  const said: unknown = answer.values?.error;
  return typeof said === "string" && said !== "" ? said : `CODAP refused to ${request.action} ${request.resource} and gave no reason`;
}

/** The request without its values, which may be large. */
function short({ action, resource }: CodapRequest): Pick<CodapRequest, "action" | "resource"> {
  return { action, resource };
}

/** What a tool does with checked arguments. */
export type Tool = (args: Arguments, codap: Codap) => Promise<unknown>;

/** Tools by name. */
export type Tools = Record<string, Tool>;
