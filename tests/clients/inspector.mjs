#!/usr/bin/env node
// The listing and calling part of the scenario with npm @modelcontextprotocol/inspector --cli: one process for each method.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { depsDir, parseArgs } from './lib/scenario.mjs';

const program = join(depsDir, 'npm', 'node_modules', '@modelcontextprotocol', 'inspector', 'clients', 'launcher', 'build', 'index.js');
if (!existsSync(program)) {
  console.error('not installed: run script/install-test-deps first');
  process.exit(77);
}
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  console.error('the inspector needs Node 22.19 or newer: run it with tests/clients/run inspector');
  process.exit(77);
}
let o;
try {
  o = parseArgs(process.argv.slice(2));
  if (o.subscribe.length || o.completes.length || o.caps.length || o.progress || o.linger || o.logLevel) {
    throw new Error('the inspector has no --subscribe, --complete, --caps, --progress, --linger, --log-level');
  }
} catch (e) {
  console.error(`inspector: ${e.message}`);
  process.exit(2);
}
o.era ??= 'old';

// The inspector keeps a catalogue and OAuth state in the home folder: give it an empty one.
const home = mkdtempSync(join(tmpdir(), 'signalbox-inspector-'));
process.on('exit', () => rmSync(home, { recursive: true, force: true }));
const env = { ...process.env, HOME: home, MCP_CATALOG_PATH: join(home, 'mcp.json'), MCP_CLIENT_CONFIG_PATH: join(home, 'client.json'), NO_COLOR: '1' };

const doc = { client: 'inspector', era: o.era, transport: o.stdio ? 'stdio' : o.sse ? 'sse' : 'http', ok: false, steps: {}, errors: [] };

function invoke(step, args) {
  const target = o.stdio ? ['--', ...o.stdio] : ['--transport', o.sse ? 'sse' : 'http', '--server-url', o.sse ?? o.url];
  const headers = o.stdio ? [] : Object.entries(o.headers).flatMap(([k, v]) => ['--header', `${k}: ${v}`]);
  const era = { old: 'legacy', new: 'modern', auto: 'auto' }[o.era];
  const all = ['--cli', '--format', 'json', '-q', '--stored-auth-only', '--protocol-era', era, ...args, ...headers, ...target];
  return new Promise((done) => {
    const child = spawn(process.execPath, [program, ...all], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '';
    let err = '';
    const timer = setTimeout(() => child.kill('SIGKILL'), o.callTimeout * 1000);
    child.stdout.setEncoding('utf8').on('data', (s) => { out += s; });
    child.stderr.setEncoding('utf8').on('data', (s) => { err += s; });
    child.on('error', (e) => { err += e.message; });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      try {
        // Exit code 5 also stands for a tool that answered isError: the result is on stdout all the same.
        done({ result: JSON.parse(out).result, exitCode: code });
      } catch {
        let error = { message: err.trim() || `exit code ${code ?? signal}` };
        try { error = JSON.parse(err.trim().split('\n').at(-1)).error ?? error; } catch { /* not JSON: keep the text */ }
        doc.errors.push({ step, exitCode: code, ...error });
        done({ error, exitCode: code });
      }
    });
  });
}

const want = (s, byDefault) => (o.steps ? o.steps.includes(s) : byDefault);
if (want('tools', true)) {
  const r = await invoke('tools', ['--method', 'tools/list']);
  const tools = r.result?.tools ?? [];
  const name = o.tool ?? tools[0]?.name;
  doc.steps.tools = r.error ? r : { count: tools.length, names: tools.map((t) => t.name), tool: tools.find((t) => t.name === name) ?? null };
}
if (want('prompts', true)) {
  const r = await invoke('prompts', ['--method', 'prompts/list']);
  const prompts = r.result?.prompts ?? [];
  doc.steps.prompts = r.error ? r : { count: prompts.length, names: prompts.map((p) => p.name), prompts };
  doc.steps.getPrompt = [];
  for (const p of o.prompts) {
    const pairs = Object.entries(p.arguments).map(([k, v]) => `${k}=${v}`);
    const args = ['--method', 'prompts/get', '--prompt-name', p.name, ...(pairs.length ? ['--prompt-args', ...pairs] : [])];
    doc.steps.getPrompt.push({ ...p, ...(await invoke(`getPrompt ${p.name}`, args)) });
  }
}
if (want('resources', true)) {
  const r = await invoke('resources', ['--method', 'resources/list']);
  const t = r.error ? r : await invoke('resources', ['--method', 'resources/templates/list']);
  const resources = r.result?.resources ?? [];
  const resourceTemplates = t.result?.resourceTemplates ?? [];
  doc.steps.resources = t.error ? t : {
    count: resources.length, uris: resources.map((x) => x.uri), templates: resourceTemplates.map((x) => x.uriTemplate), resources, resourceTemplates,
  };
  doc.steps.read = [];
  for (const uri of o.reads) doc.steps.read.push({ uri, ...(await invoke(`read ${uri}`, ['--method', 'resources/read', '--uri', uri])) });
}
if (want('call', true) && o.calls.length) {
  doc.steps.call = [];
  for (const c of o.calls) {
    const args = ['--method', 'tools/call', '--tool-name', c.name, '--tool-args-json', JSON.stringify(c.arguments)];
    doc.steps.call.push({ ...c, ...(await invoke(`call ${c.name}`, args)) });
  }
}
doc.ok = doc.errors.length === 0;
process.stdout.write(`${JSON.stringify(doc, null, 1)}\n`, () => process.exit(doc.ok || o.allowErrors ? 0 : 1));
