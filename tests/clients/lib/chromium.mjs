// A headless Chromium, by its debugging protocol.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PATIENCE = 60_000;
const KEYS = {
  Tab: { code: "Tab", windowsVirtualKeyCode: 9 }, Enter: { code: "Enter", windowsVirtualKeyCode: 13, text: "\r" },
  " ": { code: "Space", windowsVirtualKeyCode: 32, text: " " }, Space: { key: " ", code: "Space", windowsVirtualKeyCode: 32, text: " " },
  Escape: { code: "Escape", windowsVirtualKeyCode: 27 },
};

/** Looks until there is something. */
export async function until(look, seconds = PATIENCE / 1000) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error("it never came");
    await new Promise((done) => setTimeout(done, 50));
  }
}

/** The debugging protocol over a pair of pipes, with a session for each tab. A browser whose pipes are closed ends by itself, however
 * its driver ended. */
class Protocol {
  #waiting = new Map();
  #listeners = new Set();
  #id = 0;
  #output;

  constructor(output, input) {
    this.#output = output;
    output.on("error", () => {});
    let pieces = [];
    input.on("data", (piece) => {
      let rest = piece;
      for (let end = rest.indexOf(0); end >= 0; end = rest.indexOf(0)) {
        this.#hear(JSON.parse(Buffer.concat([...pieces, rest.subarray(0, end)]).toString()));
        pieces = [];
        rest = rest.subarray(end + 1);
      }
      pieces.push(rest);
    });
  }

  #hear(message) {
    if (message.id === undefined) {
      for (const listener of this.#listeners) listener(message);
      return;
    }
    const { done, fail } = this.#waiting.get(message.id) ?? {};
    this.#waiting.delete(message.id);
    if (message.error) fail?.(new Error(`${message.error.message} ${message.error.data ?? ""}`));
    else done?.(message.result);
  }

  on(listener) {
    this.#listeners.add(listener);
  }

  ask(method, params = {}, sessionId = undefined) {
    const id = (this.#id += 1);
    return new Promise((done, fail) => {
      this.#waiting.set(id, { done, fail });
      this.#output.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
  }
}

/** A headless Chromium and its tabs. What the methods are given is what the lines of relay-browser.mjs hold. */
export class Browser {
  tabs = new Map();

  static async start(program) {
    const browser = new Browser();
    browser.folder = mkdtempSync(join(tmpdir(), "relay-browser-"));
    const profile = join(browser.folder, "profile");
    browser.child = spawn(program, [
      "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
      "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
      "--window-size=1280,1000", `--user-data-dir=${profile}`, "about:blank",
    ], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    browser.ended = new Promise((done) => browser.child.once("exit", done));
    browser.protocol = new Protocol(browser.child.stdio[3], browser.child.stdio[4]);
    browser.protocol.on((message) => browser.#hear(message));
    const gone = browser.ended.then(() => { throw new Error("the browser did not start"); });
    await Promise.race([browser.protocol.ask("Browser.getVersion"), gone]);
    gone.catch(() => {});
    return browser;
  }

  async stop() {
    this.protocol?.ask("Browser.close").catch(() => {});
    await Promise.race([this.ended, new Promise((done) => setTimeout(done, 5_000))]);
    this.child.kill("SIGKILL");
    await this.ended;
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 });
  }

  #hear({ method, params, sessionId }) {
    const tab = [...this.tabs.values()].find((one) => one.sessionId === sessionId);
    if (method === "Runtime.executionContextCreated") tab?.contexts.set(params.context.id, params.context);
    if (method === "Runtime.executionContextDestroyed") tab?.contexts.delete(params.executionContextId);
    if (method === "Runtime.executionContextsCleared") tab?.contexts.clear();
    if (method === "Runtime.consoleAPICalled") tab?.said.push(params.args.map((arg) => arg.value ?? arg.description).join(" "));
    if (method === "Runtime.exceptionThrown") tab?.said.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
    if (method === "Log.entryAdded") tab?.said.push(`${params.entry.source}: ${params.entry.text}`);
  }

  #tab(name) {
    const tab = this.tabs.get(name);
    if (!tab) throw new Error(`there is no tab ${name}`);
    return tab;
  }

  #ask(name, method, params) {
    return this.protocol.ask(method, params, this.#tab(name).sessionId);
  }

  async open({ tab, url }) {
    const { targetId } = await this.protocol.ask("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.protocol.ask("Target.attachToTarget", { targetId, flatten: true });
    this.tabs.set(tab, { targetId, sessionId, said: [], contexts: new Map() });
    for (const domain of ["Page", "Runtime", "Log", "Network"]) await this.#ask(tab, `${domain}.enable`);
    await this.#ask(tab, "Page.navigate", { url });
    await this.wait({ tab, expression: "document.readyState === 'complete'" });
    return true;
  }

  /** The frame of the page that comes from an origin. */
  #frame(tab, origin) {
    const found = [...this.#tab(tab).contexts.values()].findLast((one) => one.auxData?.isDefault && one.origin === origin);
    if (!found) throw new Error(`there is no frame from ${origin}`);
    return found;
  }

  async look({ tab, expression, frame }) {
    const contextId = frame === undefined ? undefined : this.#frame(tab, frame).id;
    const { result, exceptionDetails } = await this.#ask(tab, "Runtime.evaluate", { expression, contextId, returnByValue: true, awaitPromise: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value ?? null;
  }

  async wait({ tab, expression, frame, seconds }) {
    let last;
    // A page that is being loaded has nothing to look at.
    return until(async () => (last = await this.look({ tab, expression, frame }).catch((thrown) => void (last = thrown))), seconds)
      .catch(() => { throw new Error(`it never came: ${expression} (last: ${last})`); });
  }

  async press({ tab, keys }) {
    for (const key of keys) {
      const known = KEYS[key];
      if (!known) {
        await this.#ask(tab, "Input.insertText", { text: key });
        continue;
      }
      const { text, ...rest } = { key, ...known };
      await this.#ask(tab, "Input.dispatchKeyEvent", { type: text ? "keyDown" : "rawKeyDown", text, ...rest });
      await this.#ask(tab, "Input.dispatchKeyEvent", { type: "keyUp", ...rest });
    }
    return true;
  }

  async reload({ tab }) {
    await this.look({ tab, expression: "window.beforeReload = true" });
    await this.#ask(tab, "Page.reload");
    return this.wait({ tab, expression: "!window.beforeReload && document.readyState === 'complete'" });
  }

  async offline({ tab, on }) {
    await this.#ask(tab, "Network.emulateNetworkConditions", { offline: on, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });
    return true;
  }

  async crash({ tab }) {
    await Promise.race([this.#ask(tab, "Page.crash").catch(() => {}), new Promise((done) => setTimeout(done, 2_000))]);
    return true;
  }

  async close({ tab }) {
    await this.protocol.ask("Target.closeTarget", { targetId: this.#tab(tab).targetId });
    this.tabs.delete(tab);
    return true;
  }

  async tree({ tab, frame }) {
    const frameId = frame === undefined ? undefined : this.#frame(tab, frame).auxData.frameId;
    const { nodes } = await this.#ask(tab, "Accessibility.getFullAXTree", { frameId });
    return nodes.filter((node) => !node.ignored).map(({ role, name }) => [role?.value ?? "", name?.value ?? ""]);
  }

  said({ tab }) {
    return this.#tab(tab).said;
  }

  async screenshot({ tab, file }) {
    await this.protocol.ask("Target.activateTarget", { targetId: this.#tab(tab).targetId });
    const { data } = await this.#ask(tab, "Page.captureScreenshot", { format: "png", captureBeyondViewport: true });
    const bytes = Buffer.from(data, "base64");
    writeFileSync(file, bytes);
    return bytes.length;
  }
}
