// A page in Chromium that uses an MCP server of another origin. Prints {"tools": [...]}, or {"error": "..."} where the browser
// does not let the page, as {"session": bool} says whether the page could read the session's id.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const [browser, url, port] = process.argv.slice(2);
const script = async (url) => {
  const send = async (message, session) => {
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    if (session) Object.assign(headers, { "mcp-session-id": session, "mcp-protocol-version": "2025-06-18" });
    return fetch(url, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", ...message }) });
  };
  const read = async (answer) => {
    const text = await answer.text();
    const data = text.split("\n").filter((line) => line.startsWith("data: {")).map((line) => line.slice(6));
    return JSON.parse(data.at(-1) ?? text);
  };
  let said;
  try {
    const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "page", version: "1" } };
    const hello = await send({ id: 1, method: "initialize", params });
    await read(hello);
    const session = hello.headers.get("mcp-session-id");
    await send({ method: "notifications/initialized" }, session);
    const list = await read(await send({ id: 2, method: "tools/list" }, session));
    said = { session: !!session, tools: list.result.tools.map((tool) => tool.name) };
  } catch (error) {
    said = { error: String(error) };
  }
  document.body.textContent = "SAID" + JSON.stringify(said) + "END";
};
const page = `<!doctype html><body><script>(${script})(${JSON.stringify(url)})</script>`;
const server = createServer((_, answer) => answer.setHeader("content-type", "text/html").end(page));
await new Promise((done) => server.listen(Number(port), "127.0.0.1", done));
const folder = mkdtempSync(join(tmpdir(), "browser-"));
try {
  const { stdout } = await promisify(execFile)(browser, [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    `--user-data-dir=${join(folder, "profile")}`, "--virtual-time-budget=20000", "--dump-dom", `http://127.0.0.1:${port}/`,
  ], { encoding: "utf8", maxBuffer: 1 << 26, timeout: 120_000 });
  const said = stdout.match(/SAID(.*)END/s)?.[1];
  console.log(said ?? JSON.stringify({ error: `the page said nothing: ${stdout}` }));
} finally {
  server.close();
  server.closeAllConnections();
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}
