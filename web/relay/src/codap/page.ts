import { connect, type Worker } from "signalbox-relay";
import { CodapLink } from "./plugin/codapLink.ts";
import { PluginView } from "./plugin/pluginView.ts";
import { toolHandlers } from "./tools/index.ts";

const base = new URL("../..", import.meta.url).href.replace(/\/$/, "");
const codap = new CodapLink();
const handlers = toolHandlers(codap.ask, codap.listen);
let worker: Worker | undefined;

const view = new PluginView({ retry: () => void start(), renew: () => serve(true) });

/** CODAP first: a session that no CODAP stands behind would be of no use to an agent. */
async function start(): Promise<void> {
  const address = `${location.origin}${location.pathname}`;
  if (codap.alone) return view.withoutCodap(address, undefined);
  view.waitingForCodap();
  try {
    await codap.open();
  } catch (thrown) {
    return view.withoutCodap(address, thrown instanceof Error ? thrown.message : String(thrown));
  }
  serve(false);
}

function serve(fresh: boolean): void {
  worker?.stop();
  const current = connect({ url: base, handlers, fresh });
  worker = current;
  current.on("state", (change) => current === worker && view.showState(change));
  current.on("session", (session) => current === worker && view.showSession(session, base));
  current.on("call", (event) => view.showCall(event));
  current.on("problem", ({ message }) => console.warn(message));
  // The state says it too.
  current.ready.catch(() => undefined);
}

void start();
