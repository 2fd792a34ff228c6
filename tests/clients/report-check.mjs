// Opens a page in Chromium without network. Prints {"dom": "...", "requests": [...]}: the page after its scripts, and
// every address that it asked for besides itself.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [browser, page] = process.argv.slice(2);
const url = pathToFileURL(page).href;
const folder = mkdtempSync(join(tmpdir(), "report-"));
const log = join(folder, "net.json");
try {
  const dom = execFileSync(browser, [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND",
    `--user-data-dir=${join(folder, "profile")}`, `--log-net-log=${log}`, "--virtual-time-budget=3000", "--dump-dom", url,
  ], { encoding: "utf8", maxBuffer: 1 << 28, timeout: 120_000, stdio: ["ignore", "pipe", "ignore"] });
  // What the page asks for is kept apart as a file's; what the browser asks on its own account is not.
  const text = readFileSync(log, "utf8").trimEnd().replace(/,$/, "");
  const events = JSON.parse(text.endsWith("}") ? text : `${text}]}`).events;
  const asked = events.filter((event) => event.params?.url && event.params?.network_isolation_key?.startsWith("file:"));
  const requests = [...new Set(asked.map((event) => event.params.url))].filter((other) => other !== url);
  console.log(JSON.stringify({ dom, requests }));
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}
