// Where the packages that build the pages are installed, and the sources as modules that node can load.
import { createRequire } from "node:module";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const relay = dirname(dirname(fileURLToPath(import.meta.url)));
export const root = resolve(relay, "../..");
export const packages = join(resolve(root, process.env.MCP_TEST_DEPS ?? ".deps"), "web-relay/node_modules");

/** Bundles a source with what it imports, and returns the text. */
export async function bundle(entry, options = {}) {
  const esbuild = createRequire(join(packages, "none.js"))("esbuild");
  const built = await esbuild.build({
    entryPoints: [join(relay, entry)], bundle: true, write: false, format: "esm", target: "es2022", nodePaths: [packages], logLevel: "warning", ...options,
  });
  return built.outputFiles[0].text;
}

/** Loads a source as a module. */
export async function load(entry) {
  const folder = mkdtempSync(join(tmpdir(), "relay-source-"));
  try {
    const file = join(folder, "module.mjs");
    writeFileSync(file, await bundle(entry));
    return await import(pathToFileURL(file).href);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
