// The types of /relay/worker.js.
/** What the connection is doing: the states that legacy workers have (CO-10). */
export type State = "disconnected" | "connecting" | "connected" | "reconnecting" | "error";
/** Why a call failed, in the words of the relay. */
export type ErrorType = "execution_error" | "tool_not_found" | "invalid_args" | "codap_error" | "outcome_unknown";
/** A JSON Schema of a tool's arguments. */
export type Schema = Record<string, unknown>;
/** What a handler is told about the call besides its arguments. */
export interface CallContext {
    /** The name under which the tool was called. */
    readonly tool: string;
    /** The id of the call; the same when it is sent again. */
    readonly requestId: string;
    /** Aborted when the caller cancels, when the call's time is over, and when the page stops the worker. */
    readonly signal: AbortSignal;
    /** The call changes nothing that doing it twice would change. */
    readonly idempotent: boolean;
    /** Tells the caller how far the call is. Nothing is thrown when that fails. */
    progress(progress: number, total?: number, message?: string): void;
}
/** Runs a call. What it returns is the result (`undefined` becomes `null`); what it throws is the error. The arguments are what the
 * agent sent, and are checked by nobody before. */
export type Handler = (args: Record<string, any>, context: CallContext) => unknown;
/** A tool that the page offers itself. */
export interface Tool {
    name: string;
    description: string;
    inputSchema: Schema;
    /** Hints of MCP, such as `{readOnlyHint: true}` or `{idempotentHint: true}`. */
    annotations?: Record<string, unknown>;
    handler: Handler;
}
/** What the page asks for when it connects. Everything may be left out. */
export interface Options {
    /** The address of the gateway. The default is where the library was loaded from. */
    url?: string;
    /** The code of a session to join. Without it the session of this tab is resumed, or a new one is made. */
    code?: string;
    /** The worker's token of the session that is joined, if the page was given it. */
    token?: string;
    /** Makes a new session, even if this tab has one. */
    fresh?: boolean;
    /** The tools that the page offers itself. */
    tools?: Tool[];
    /** Handlers of tools that the gateway lists by itself, by name. */
    handlers?: Record<string, Handler>;
    /** How many calls run at once. The default is 1: one after the other, in the order of arrival. */
    concurrency?: number;
    /** The shortest and longest pause before the next attempt to connect, in milliseconds. */
    backoff?: {
        min: number;
        max: number;
    };
    /** So many attempts in a row may fail before the worker ends in the state `error`. The default is no bound: a page that was offline
     * for a night comes back by itself. */
    maxRetries?: number;
    /** `stream` and `poll` hold on to one way of receiving calls. The default tries the stream first. */
    transport?: "auto" | "stream" | "poll";
}
/** The session that the page serves. */
export interface Session {
    /** What a person gives to an agent. */
    readonly code: string;
    /** An address that joins the session. */
    readonly joinUrl: string;
    /** Whether the page holds the worker's token, without which it cannot offer tools of its own. */
    readonly hasToken: boolean;
}
/** What the listeners of `state` are told. */
export interface StateChange {
    readonly state: State;
    /** The page waits for another tab or another worker of the session to leave. */
    readonly standby: boolean;
    /** How calls arrive. */
    readonly transport: "stream" | "poll";
    /** The reason of `reconnecting` and `error`. */
    readonly reason?: string;
    /** The name of the relay's error, such as `session_expired`. */
    readonly error?: string;
    /** With `reconnecting`: milliseconds until the next attempt. */
    readonly retryIn?: number;
}
/** What the listeners of `call` are told: once when a call begins, once when it ends. */
export interface CallEvent {
    readonly requestId: string;
    readonly tool: string;
    readonly args: Record<string, unknown>;
    /** `answered`: it has an outcome. `repeated`: it was sent again, and the journal answered. `cancelled`: nobody waits any more. */
    readonly phase: "started" | "answered" | "repeated" | "cancelled";
    readonly result?: unknown;
    readonly error?: CallError;
    readonly duration?: number;
}
/** A failed call, as the relay is told of it. */
export interface CallError {
    readonly type: ErrorType;
    readonly message: string;
    readonly details?: unknown;
}
/** What there is to listen to. */
export interface Events {
    state: StateChange;
    session: Session;
    call: CallEvent;
    /** An answer or a list of tools could not be brought to the gateway. */
    problem: {
        readonly message: string;
    };
}
/** The connection of a page to the relay. */
export interface Worker {
    /** The state as it is now. */
    readonly state: StateChange;
    /** The session, as soon as there is one. */
    readonly session: Session | undefined;
    /** The session; fails when the first attempt ends in the state `error`. */
    readonly ready: Promise<Session>;
    /** Listens, and returns the function that ends it. */
    on<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): () => void;
    /** Replaces the tools that the page offers itself. */
    registerTools(tools: Tool[]): Promise<void>;
    /** Looks at once whether the connection still stands. */
    wake(): void;
    /** Ends it: running calls are aborted, and another tab takes over. */
    stop(): void;
}

/** What a handler throws to say which kind of failure it was. Anything else that is thrown is an `execution_error`. */
export declare class ToolError extends Error {
    readonly type: ErrorType;
    readonly details?: unknown | undefined;
    constructor(type: ErrorType, message: string, details?: unknown | undefined);
}

/**
 * Connects this page to the relay and runs the calls that arrive. It returns at once; `ready` resolves with the session when
 * the page is connected.
 *
 * ```js
 * import { connect } from "https://gateway.example/relay/worker.js";
 * const worker = connect({
 *   tools: [{
 *     name: "count_words",
 *     description: "Counts the words of the text in the page.",
 *     inputSchema: { type: "object" },
 *     handler: () => document.body.innerText.split(/\s+/).length,
 *   }],
 * });
 * console.log("code for the agent:", (await worker.ready).code);
 * ```
 */
export declare function connect(options?: Options): Worker;
