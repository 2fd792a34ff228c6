import { browser, type Environment } from "./environment.ts";
import { RelayWorker } from "./relayWorker.ts";
import type { Options, Worker } from "./types.ts";

export { ToolError } from "./toolError.ts";
export type * from "./types.ts";

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
export function connect(options?: Options): Worker;
/** @internal */
export function connect(options: Options, environment: Environment): Worker;
export function connect(options: Options = {}, environment: Environment = browser()): Worker {
  // The library lies at /relay/worker.js of the gateway.
  const base = (options.url ?? new URL("..", import.meta.url).href).replace(/\/+$/, "");
  return new RelayWorker(options, environment, base);
}
