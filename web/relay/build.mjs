// Builds the pages of the relay and the worker library into crates/relay/assets, the same bytes each time.
//
//   node build.mjs [--out FOLDER] [--check] [PAGE…]
//
// Every folder of src/ that has an index.html is a page: page.ts becomes NAME.js, and its .html, .css, .svg and .txt files are copied.
// --check only looks for errors of type. Packages come from .deps/web-relay (script/install-test-deps web-relay), or from the
// folder that MCP_TEST_DEPS names.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, "../..");
const packages = join(resolve(root, process.env.MCP_TEST_DEPS ?? ".deps"), "web-relay/node_modules");
const COPIED = /\.(html|css|svg|txt)$/;

const options = process.argv.slice(2);
const take = (name) => {
  const at = options.indexOf(name);
  return at < 0 ? undefined : options.splice(at, name === "--out" ? 2 : 1).at(-1);
};
const out = resolve(take("--out") ?? join(root, "crates/relay/assets"));
const checkOnly = take("--check") !== undefined;
if (!existsSync(packages)) {
  console.error("not installed: run script/install-test-deps web-relay");
  process.exit(77);
}
const require = createRequire(join(packages, "none.js"));
const ts = require("typescript");
const esbuild = require("esbuild");

const files = (folder) => readdirSync(folder, { recursive: true }).map(String).sort();
const pages = readdirSync(join(here, "src")).filter((name) => existsSync(join(here, "src", name, "index.html"))).sort();
const chosen = options.length > 0 ? pages.filter((page) => options.includes(page)) : pages;

/** The compiler's options, with the packages where they are installed. */
function compilerOptions(more) {
  const config = ts.readConfigFile(join(here, "tsconfig.json"), ts.sys.readFile).config;
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, here);
  return { ...options, ...more, paths: { ...options.paths, "*": [join(packages, "*")] } };
}

function report(diagnostics) {
  if (diagnostics.length === 0) return;
  const host = { getCanonicalFileName: (name) => name, getCurrentDirectory: () => here, getNewLine: () => "\n" };
  console.error(ts.formatDiagnostics(diagnostics, host));
  process.exit(1);
}

function check() {
  const sources = files(join(here, "src")).filter((name) => name.endsWith(".ts")).map((name) => join(here, "src", name));
  report(ts.getPreEmitDiagnostics(ts.createProgram(sources, compilerOptions({}))));
}

/** One declaration file for the worker library: the public types, then what its entry exports. */
function declarations() {
  const written = new Map();
  const emit = { noEmit: false, declaration: true, emitDeclarationOnly: true, stripInternal: true, removeComments: false };
  const program = ts.createProgram([join(here, "src/worker/index.ts")], compilerOptions(emit));
  program.emit(undefined, (name, text) => written.set(name.split("/").at(-1), text));
  const parts = ["types.d.ts", "toolError.d.ts", "index.d.ts"].map((name) => written.get(name));
  const lines = parts.join("\n").split("\n").filter((line) => !/^(import|export (type )?(\{.*\}|\*) from|export \{\})/.test(line));
  return `// The types of /relay/worker.js.\n${lines.join("\n").replace(/\n{2,}/g, "\n\n").trim()}\n`;
}

async function bundle(entry, minify = false) {
  const built = await esbuild.build({
    entryPoints: [entry], absWorkingDir: here, bundle: true, write: false, format: "esm", target: "es2022", charset: "utf8",
    legalComments: "inline", nodePaths: [packages], minify, alias: { "signalbox-relay": "../worker.js" }, external: ["../worker.js"],
    logLevel: "warning", define: { "process.env.NODE_ENV": '"production"' },
  });
  // Where the packages are installed is nobody's business.
  return built.outputFiles[0].text.replace(/^(\/\/ | *")(?:\.\.?\/|\/)[^"\n]*?node_modules\//gm, "$1node_modules/");
}

async function build() {
  mkdirSync(out, { recursive: true });
  const entry = "src/worker/index.ts";
  writeFileSync(join(out, "worker.js"), `// The worker library of the Signalbox relay. Built from web/relay/src/worker; types: worker.d.ts.\n${await bundle(entry)}`);
  writeFileSync(join(out, "worker.d.ts"), declarations());
  const small = Buffer.byteLength(await bundle(entry, true));
  console.log(`worker.js: ${small} bytes minified`);
  for (const page of chosen) {
    const from = join(here, "src", page);
    const to = join(out, page);
    rmSync(to, { recursive: true, force: true });
    mkdirSync(to, { recursive: true });
    writeFileSync(join(to, `${page}.js`), await bundle(`src/${page}/page.ts`));
    for (const name of readdirSync(from).filter((name) => COPIED.test(name))) cpSync(join(from, name), join(to, name));
    console.log(`${page}/: ${readFileSync(join(to, `${page}.js`)).length} bytes of script`);
  }
}

check();
if (!checkOnly) await build();
