import { Arguments } from "./arguments.ts";
import { attributeTools } from "./attributes.ts";
import { caseTools } from "./cases.ts";
import { Codap, type Tool } from "./codap.ts";
import { collectionTools } from "./collections.ts";
import { componentTools } from "./components.ts";
import { contextTools } from "./contexts.ts";
import { itemTools } from "./items.ts";
import { notificationTools } from "./notifications.ts";
import { selectionTools } from "./selection.ts";
import type { Ask, Handler, Listen } from "./types.ts";
import { widgetTools } from "./widgets.ts";

export type { Action, Ask, CallContext, CodapAnswer, CodapRequest, Handler, Listen, Notice } from "./types.ts";

/** The tools of both sets by name: the 33 of the document (`create_data_context`) and the 34 of the later set (`createDataContext`).
 * Each sends CODAP the requests of its Data Interactive API by `ask`, and returns plain objects that are alike in both sets.
 *
 * `listen` brings the notices that CODAP sends by itself. Without it there is nothing to register for. */
export function toolHandlers(ask: Ask, listen?: Listen): Record<string, Handler> {
  const tools = {
    ...contextTools,
    ...collectionTools,
    ...attributeTools,
    ...itemTools,
    ...caseTools,
    ...selectionTools,
    ...componentTools,
    ...widgetTools,
    ...notificationTools(listen),
  };
  return Object.fromEntries(Object.entries(tools).map(([name, tool]) => [name, handler(tool, ask)]));
}

function handler(tool: Tool, ask: Ask): Handler {
  return async (args, { signal }) => tool(new Arguments(args ?? {}), new Codap(ask, signal));
}
