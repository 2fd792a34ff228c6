import { connect, type Worker } from "signalbox-relay";
import { toolHandlers } from "../codap/tools/index.ts";
import { DataDocument } from "./document/dataDocument.ts";
import { keep, restore } from "./document/snapshot.ts";
import { CanvasView } from "./views/canvasView.ts";
import { ConnectionView } from "./views/connectionView.ts";
import { byId } from "./views/element.ts";
import { LogView } from "./views/logView.ts";

const base = new URL("../..", import.meta.url).href.replace(/\/$/, "");
const data = new DataDocument();
restore(data, sessionStorage);
keep(data, sessionStorage);
new CanvasView(data, byId("data-sets"), byId("canvas"));
const log = new LogView(byId("log"), byId("calls-none"));
const handlers = toolHandlers(data.ask, data.listenTo);
let worker: Worker | undefined;

const view = new ConnectionView({
  join: (code) => serve({ code }),
  create: () => serve({ fresh: true }),
  leave() {
    worker?.stop();
    worker = undefined;
    history.replaceState(null, "", location.pathname);
    byId("code").focus();
  },
});

function serve(options: { code?: string; fresh?: boolean }): void {
  worker?.stop();
  worker = connect({ url: base, handlers, ...options });
  worker.on("state", (change) => view.showState(change));
  worker.on("call", (event) => log.note(event));
  worker.on("problem", ({ message }) => console.warn(message));
  worker.on("session", (session) => {
    // The token that an address may carry does not stay in it.
    history.replaceState(null, "", `#${session.code}`);
    view.showSession(session, base);
  });
}

const joined = location.hash.slice(1);
if (/^[A-Za-z0-9]{8}(\.\S+)?$/.test(joined)) serve({ code: joined });
window.addEventListener("hashchange", () => {
  const code = location.hash.slice(1);
  if (/^[A-Za-z0-9]{8}(\.\S+)?$/.test(code) && code.slice(0, 8).toUpperCase() !== worker?.session?.code) serve({ code });
});
