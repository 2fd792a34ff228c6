import type { CallError, ErrorType } from "./types.ts";

/** What a handler throws to say which kind of failure it was. Anything else that is thrown is an `execution_error`. */
export class ToolError extends Error {
  constructor(readonly type: ErrorType, message: string, readonly details?: unknown) {
    super(message);
    this.name = "ToolError";
  }
}

/** The failure, as the relay is told of it.
 * @internal */
export function callError(thrown: unknown): CallError {
  if (typeof thrown === "object" && thrown !== null) {
    const { type, message, details } = thrown as Partial<ToolError>;
    const known: ErrorType[] = ["execution_error", "tool_not_found", "invalid_args", "codap_error", "outcome_unknown"];
    const kind = known.find((one) => one === type) ?? "execution_error";
    return { type: kind, message: message ?? String(thrown), ...(details !== undefined && { details }) };
  }
  return { type: "execution_error", message: String(thrown) };
}
