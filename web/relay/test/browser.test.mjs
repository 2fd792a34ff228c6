// The demo page in a real Chromium, against a relay with faults. Skipped where there is no Chromium.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { startRelay } from "./mockRelay.mjs";
import { root } from "./packages.mjs";

const found = (name) => {
  try {
    return execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim();
  } catch {
    return undefined;
  }
};
const skip = !["chromium", "chromium-browser", "google-chrome"].some(found) && "no Chromium on PATH";

/** Chromium as lines of JSON. */
class Driver {
  static async start() {
    const driver = new Driver();
    driver.child = spawn(join(root, "tests/clients/run"), ["relay-browser"], { stdio: ["pipe", "pipe", "inherit"] });
    driver.lines = createInterface({ input: driver.child.stdout })[Symbol.asyncIterator]();
    await driver.lines.next();
    return driver;
  }

  async do(command, tab, more = {}) {
    this.child.stdin.write(`${JSON.stringify({ do: command, tab, ...more })}\n`);
    const { ok, error } = JSON.parse((await this.lines.next()).value);
    if (error) throw new Error(`${command}: ${error}`);
    return ok;
  }

  look(tab, expression) {
    return this.do("look", tab, { expression });
  }

  wait(tab, expression) {
    return this.do("wait", tab, { expression });
  }

  /** The state that the page shows. */
  is(tab, state, standby = false) {
    return this.wait(tab, `document.getElementById("state").dataset.state === "${state}" && document.getElementById("state").dataset.standby === "${standby}"`);
  }

  async stop() {
    this.child.stdin.end();
    await new Promise((done) => this.child.once("exit", done));
  }
}

describe("the demo page in Chromium", { skip }, () => {
  let driver;
  let relay;
  before(async () => {
    relay = await startRelay({ heartbeatMs: 1_000 });
    driver = await Driver.start();
  });
  after(async () => {
    await driver?.stop();
    await relay?.stop();
  });
  const address = () => `${relay.url}/relay/demo/`;
  const result = async (code, tool, args, options) => {
    const answer = await relay.call(code, tool, args, options);
    assert.equal(answer.error, undefined, JSON.stringify(answer.error));
    return answer.result;
  };

  test("a person makes a session by keyboard alone, and what agents do is seen", async () => {
    await driver.do("open", "a", { url: address() });
    // Skip link, code, Join, New session.
    await driver.do("press", "a", { keys: ["Tab", "Tab", "Tab", "Tab"] });
    assert.equal(await driver.look("a", "document.activeElement.id"), "create");
    await driver.do("press", "a", { keys: ["Enter"] });
    await driver.is("a", "connected");
    const code = await driver.look("a", "document.getElementById('shown-code').textContent");
    assert.match(code, /^[A-Z2-7]{8}$/);
    assert.equal(await driver.look("a", "location.hash"), `#${code}`, "no token stays in the address");
    await result(code, "create_data_context", { name: "Pets", title: "Pets" });
    await result(code, "create_collection", { dataContextName: "Pets", collectionName: "Pets", attributes: [{ name: "Name", type: "categorical" }, { name: "Age", type: "numeric" }, { name: "Mass", type: "numeric" }] });
    const items = [["Ada", 3, 4], ["Bo", 7, 12], ["Cleo", 11, 5], ["<b>Dot</b>", 2, 9]].map(([Name, Age, Mass]) => ({ Name, Age, Mass }));
    await result(code, "create_items", { dataContextName: "Pets", collectionName: "Pets", items });
    await result(code, "create_table", { dataContextName: "Pets", title: "All pets" });
    await result(code, "create_graph", { dataContextName: "Pets", xAttribute: "Age", yAttribute: "Mass", title: "Age and mass" });
    const { cases } = await result(code, "search_cases", { dataContextName: "Pets", collectionName: "Pets", searchCriteria: { attributeName: "Age", value: 5, operator: "greaterThan" } });
    await result(code, "select_cases", { dataContextName: "Pets", caseIds: cases.map(({ id }) => id) });
    await driver.wait("a", "document.querySelectorAll('tr.chosen').length === 2 && document.querySelectorAll('circle.chosen').length === 2");
    assert.equal(await driver.look("a", "document.querySelectorAll('tbody tr').length"), 4);
    assert.equal(await driver.look("a", "document.querySelector('tbody tr:last-child td:nth-child(2)').textContent"), "<b>Dot</b>");
    const picture = join(process.env.MCP_TEST_OUTPUT ?? tmpdir(), "relay-demo-mock.png");
    assert.ok(await driver.do("screenshot", "a", { file: picture }) > 10_000);
    assert.deepEqual(await driver.do("said", "a"), [], "nothing was blocked or went wrong");
  });

  test("a screen reader is told all of it", async () => {
    const tree = await driver.do("tree", "a");
    const has = (role, name) => assert.ok(tree.some(([one, other]) => one === role && (name instanceof RegExp ? name.test(other) : other === name)), `${role} ${name}: ${JSON.stringify(tree)}`);
    has("heading", "A page as a set of tools");
    has("textbox", "Session code");
    has("button", "Join");
    has("status", "");
    has("image", /^Age and mass\. Mass against Age: 4 cases, 2 selected\. Age from 2 to 11, median 5\. Mass from 4 to 12/);
    has("image", /^QR code/);
    has("columnheader", "Age");
    has("cell", "Cleo");
    has("checkbox", "Select case 3");
    has("button", "Remove Age and mass");
    assert.ok(await driver.look("a", "[...document.querySelectorAll('button, input, a, [tabindex=\"0\"]')].every((one) => one.tabIndex >= 0)"));
    // The checkbox of the first row, by keyboard.
    await driver.look("a", "document.querySelector('tbody input').focus()");
    await driver.do("press", "a", { keys: ["Space"] });
    await driver.wait("a", "document.querySelectorAll('tr.chosen').length === 3 && document.activeElement.getAttribute('aria-label') === 'Select case 1'");
  });

  test("colours have enough contrast", async () => {
    const worst = await driver.look("a", `(() => {
      const parts = (color) => color.match(/[\\d.]+/g).map(Number);
      const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
      const ground = (one) => { for (; one; one = one.parentElement) { const c = parts(getComputedStyle(one).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
      return [...document.querySelectorAll("h1, h2, h3, p, dt, dd, label, button:enabled, th, td, caption, a, strong, code, span")]
        .filter((one) => one.offsetParent && one.textContent.trim())
        .map((one) => { const [x, y] = [light(parts(getComputedStyle(one).color)), light(ground(one))]; return [(Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05), one.outerHTML.slice(0, 80)]; })
        .sort((one, other) => one[0] - other[0])[0];
    })()`);
    assert.ok(worst[0] >= 4.5, JSON.stringify(worst));
  });

  test("a reload resumes the session and the document; a lost network comes back", async () => {
    const code = await driver.look("a", "document.getElementById('shown-code').textContent");
    await driver.do("reload", "a");
    await driver.is("a", "connected");
    assert.equal((await result(code, "get_items", { dataContextName: "Pets" })).count, 4);
    await driver.do("offline", "a", { on: true });
    relay.cut(code);
    await driver.is("a", "reconnecting");
    const later = relay.call(code, "get_items", { dataContextName: "Pets" });
    await driver.do("offline", "a", { on: false });
    assert.equal((await later).result.count, 4);
    await driver.is("a", "connected");
  });

  test("of two tabs one serves, and the other takes over when it is closed or dies", async () => {
    const code = await driver.look("a", "document.getElementById('shown-code').textContent");
    await driver.do("open", "b", { url: `${address()}#${code}` });
    await driver.is("b", "disconnected", true);
    await driver.do("close", "a");
    await driver.is("b", "connected");
    await result(code, "create_data_context", { name: "Second" });
    await driver.do("open", "c", { url: `${address()}#${code}` });
    await driver.is("c", "disconnected", true);
    await driver.do("crash", "b");
    await driver.is("c", "connected");
    assert.equal((await result(code, "get_data_contexts", {})).count, 0, "it is another document");
  });

  test("a code is typed in, and a wrong one is explained", async () => {
    const code = relay.create();
    await driver.do("open", "d", { url: address() });
    await driver.do("press", "d", { keys: ["Tab", "Tab", "nonsense!", "Enter"] });
    await driver.wait("d", "document.getElementById('code-error').textContent.includes('eight letters')");
    assert.equal(await driver.look("d", "document.activeElement.id"), "code");
    await driver.look("d", "document.getElementById('code').select()");
    await driver.do("press", "d", { keys: [code.toLowerCase(), "Enter"] });
    await driver.is("d", "connected");
    relay.expire(code);
    await driver.is("d", "error");
    assert.match(await driver.look("d", "document.getElementById('state').textContent"), /session is over/);
  });
});
