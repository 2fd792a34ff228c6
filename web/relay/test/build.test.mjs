// What is checked in is what the sources build.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { packages, relay, root } from "./packages.mjs";

const assets = join(root, "crates/relay/assets");
const files = (folder) => readdirSync(folder, { recursive: true }).map(String).filter((name) => statSync(join(folder, name)).isFile()).sort();

test("the files that the gateway serves are those that the sources build, twice the same", () => {
  const folders = [1, 2].map(() => mkdtempSync(join(tmpdir(), "relay-build-")));
  try {
    for (const folder of folders) execFileSync(process.execPath, [join(relay, "build.mjs"), "--out", folder]);
    const [once, twice] = folders;
    const built = files(once);
    assert.ok(built.includes("worker.js") && built.includes("worker.d.ts") && built.includes("demo/demo.js"), built.join());
    assert.deepEqual(files(twice), built);
    for (const name of built) {
      const text = readFileSync(join(once, name), "utf8");
      assert.ok(text === readFileSync(join(twice, name), "utf8"), `${name} is built differently each time`);
      assert.ok(text === readFileSync(join(assets, name), "utf8"), `${name} is not what the sources build: run node web/relay/build.mjs`);
      assert.ok(!text.includes(root) && !text.includes(tmpdir()) && !/\.\.\/[^"\n]*node_modules/.test(text), `${name} tells where it was built`);
    }
    for (const page of ["demo", "codap"].filter((page) => built.some((name) => name.startsWith(`${page}/`)))) {
      const extra = files(join(assets, page)).filter((name) => !built.includes(`${page}/${name}`));
      assert.deepEqual(extra, [], `nothing builds these files of ${page}`);
    }
  } finally {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  }
});

test("pages hold to the policy of the gateway: no script and no style in the markup", () => {
  for (const name of files(assets).filter((name) => /^(demo|codap)\/.*\.html$/.test(name))) {
    const text = readFileSync(join(assets, name), "utf8");
    assert.doesNotMatch(text, /<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|javascript:/i, name);
    assert.doesNotMatch(text, /(src|href)="(https?:)?\/\//, `${name} asks others for files`);
  }
});

test("the types of the worker library stand alone, and the quick start has them right", () => {
  const ts = createRequire(join(packages, "none.js"))("typescript");
  const folder = mkdtempSync(join(tmpdir(), "relay-types-"));
  try {
    const guide = readFileSync(join(root, "docs/relay-pages.md"), "utf8");
    const [, script] = /<script type="module">(.*?)<\/script>/s.exec(guide);
    cpSync(join(assets, "worker.d.ts"), join(folder, "worker.d.ts"));
    const file = join(folder, "page.mts");
    writeFileSync(file, script.replace("https://gateway.example/relay/worker.js", "./worker.js"));
    const options = { strict: true, noEmit: true, target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext, types: [] };
    const problems = ts.getPreEmitDiagnostics(ts.createProgram([file], options));
    assert.deepEqual(problems.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, " ")), []);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("the worker library is small and needs nothing", () => {
  const text = readFileSync(join(assets, "worker.js"), "utf8");
  assert.doesNotMatch(text, /^import /m);
  assert.doesNotMatch(text, /EventSource/);
  const size = gzipSync(text, { level: 9 }).length;
  assert.ok(size < 12_000, `${size} bytes`);
});
