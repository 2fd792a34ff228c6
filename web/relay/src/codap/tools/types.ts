/** What a plugin may ask of CODAP. */
export type Action = "create" | "get" | "update" | "delete" | "notify";

/** A request in the form of CODAP's Data Interactive API. */
export interface CodapRequest {
  readonly action: Action;
  readonly resource: string;
  readonly values?: unknown;
}

/** CODAP's answer. A refusal has its reason in `values.error`. New items have their ids beside `values`. */
export interface CodapAnswer {
  readonly success: boolean;
  // CODAP's answers have as many shapes as it has resources; what reads them looks at what is there.
  readonly values?: any;
  readonly itemIDs?: readonly (string | number)[];
  readonly caseIDs?: readonly (string | number)[];
}

/** Sends one request to CODAP, or to whatever stands in its place. */
export type Ask = (request: CodapRequest) => Promise<CodapAnswer>;

/** What a handler is told besides its arguments. */
export interface CallContext {
  readonly signal: AbortSignal;
}

/** Runs one call of a tool. */
export type Handler = (args: any, context: CallContext) => Promise<unknown>;

/** A message that CODAP sends without being asked. */
export interface Notice {
  readonly resource: string;
  readonly values: unknown;
}

/** Listens to the notices of a resource, and returns the function that ends it. */
export type Listen = (resource: string, listener: (notice: Notice) => void) => () => void;
