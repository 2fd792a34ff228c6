// A page that holds a plugin in a frame as CODAP does: by iframe-phone, with the same endpoints, the same namespace, and the
// same first message. It answers as document.mjs does and writes every request down.
//
//   index.html?di=PLUGIN[&late=MILLISECONDS]     late: CODAP is there only after that time
import iframePhone from "iframe-phone";
import { answer } from "./document.mjs";

const options = new URL(location.href).searchParams;
const plugin = new URL(options.get("di"));

/** Requests in the order in which they came, and what the plugin said to the first message. */
window.recorded = [];
window.presence = undefined;

const frame = document.createElement("iframe");
frame.title = "Plugin";
frame.width = 400;
frame.height = 460;
frame.src = plugin.href;
document.body.append(frame);

function connect() {
  const phone = new iframePhone.ParentEndpoint(frame, plugin.origin, () => { window.connected = true; });
  const handle = (request, reply) => {
    const several = Array.isArray(request);
    const answers = (several ? request : [request]).map((one) => {
      window.recorded.push(one);
      return answer(one);
    });
    // CODAP takes requests from a queue, after the message was handled.
    setTimeout(() => reply(several ? answers : answers[0]));
  };
  const endpoint = new iframePhone.IframePhoneRpcEndpoint(handle, "data-interactive", frame, plugin.origin, phone);
  endpoint.call({ message: "codap-present" }, (reply) => { window.presence = reply; });
  window.notify = (resource, values) => new Promise((done) => endpoint.call({ action: "notify", resource, values }, done));
  window.savedState = () => new Promise((done) => endpoint.call({ action: "get", resource: "interactiveState" }, done));
}

setTimeout(connect, Number(options.get("late") ?? 0));
