#!/usr/bin/env node
// A client for the client half of the conformance runner, on npm @modelcontextprotocol/client 2.x.
//
//   conformance-client.mjs old|new [GATEWAY] URL
//
// The runner appends the URL of its own server and names the scenario in MCP_CONFORMANCE_SCENARIO. With GATEWAY, the path
// of a signalbox binary, that server becomes the backend of a gateway, and the client talks to the gateway. Exit code 0:
// the client got everything it expected, which the runner cannot see from its side.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { depsRequire } from './lib/scenario.mjs';

const require = depsRequire();
const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
const PATIENCE = 15_000;

const [era, ...rest] = process.argv.slice(2);
const [gateway, server] = rest.length > 1 ? rest : [null, rest[0]];
const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');

/** Starts a gateway in front of the server; returns its URL and how to end it. */
async function start(binary, url) {
  const folder = mkdtempSync(join(tmpdir(), 'conformance-gateway-'));
  writeFileSync(join(folder, 'signalbox.toml'), `[backends.judge]\nurl = ${JSON.stringify(url)}\n`);
  const args = ['serve', '--listen', '127.0.0.1:0', '-c', join(folder, 'signalbox.toml'), '--data-dir', join(folder, 'data')];
  const child = spawn(binary, args, { stdio: ['ignore', 'inherit', 'pipe'] });
  const end = () => new Promise((done) => {
    child.once('exit', () => { rmSync(folder, { recursive: true, force: true }); done(); });
    child.kill();
  });
  const own = await new Promise((found, fail) => {
    const timer = setTimeout(() => fail(new Error('the gateway does not listen')), PATIENCE);
    child.once('exit', (code) => fail(new Error(`the gateway ended with ${code}`)));
    createInterface(child.stderr).on('line', (line) => {
      console.error(`gateway: ${line}`);
      const at = line.match(/serves MCP at (\S+)/);
      if (at) { clearTimeout(timer); found(at[1]); }
    });
  });
  const until = Date.now() + PATIENCE;
  while ((await fetch(new URL('/readyz', own))).status !== 200) {
    assert.ok(Date.now() < until, 'the backend does not become ready');
    await new Promise((again) => setTimeout(again, 20));
  }
  return { url: own, end };
}

const text = (result) => result.content?.[0]?.text;

/** What the client does in each scenario, and what it must get. */
const SCENARIOS = {
  initialize: async (client) => assert.deepEqual((await client.listTools()).tools, []),
  async tools_call(client) {
    assert.equal((await client.listTools()).tools[0].name, 'add_numbers');
    assert.equal(text(await client.callTool({ name: 'add_numbers', arguments: { a: 5, b: 3 } })), 'The sum of 5 and 3 is 8');
  },
  async 'elicitation-sep1034-client-defaults'(client) {
    const result = await client.callTool({ name: 'test_client_elicitation_defaults', arguments: {} });
    assert.match(text(result), /^Elicitation completed:/);
  },
  async 'sse-retry'(client) {
    assert.equal((await client.listTools()).tools[0].name, 'test_reconnection');
    assert.match(text(await client.callTool({ name: 'test_reconnection', arguments: {} })), /completed successfully/);
  },
  async 'json-schema-2020-12-preservation'(client) {
    const tools = (await client.listTools()).tools;
    const schema = tools.find((tool) => tool.name === 'json_schema_2020_12_tool').inputSchema;
    assert.equal(text(await client.callTool({ name: 'json_schema_echo', arguments: { schema } })), 'echoed');
  },
  'request-metadata': async (client) => { await client.listTools(); },
  async 'sep-2322-client-request-state'(client) {
    const call = async (name) => text(await client.callTool({ name, arguments: {} }));
    await client.listTools();
    const names = ['echo_state', 'no_state', 'unrelated'].map((name) => `test_mrtr_${name}`);
    assert.deepEqual(await Promise.all(names.map(call)), ['echo-state-ok', 'no-state-ok', 'unrelated-ok']);
    // This library takes no result of 2026-07-28 without a type. What counts is that it is not taken for a question.
    const last = await call('test_mrtr_no_result_type').catch((e) => e.code);
    assert.ok(['no-result-type-test-ok', 'INVALID_RESULT'].includes(last), last);
  },
  async 'http-standard-headers'(client) {
    for (const { name } of (await client.listTools()).tools) {
      assert.equal(text(await client.callTool({ name, arguments: {} })), 'Headers test completed');
    }
    for (const { uri } of (await client.listResources()).resources) {
      assert.deepEqual((await client.readResource({ uri })).contents, []);
    }
    for (const { name } of (await client.listPrompts()).prompts) {
      assert.deepEqual((await client.getPrompt({ name })).messages, []);
    }
  },
  async 'http-custom-headers'(client) {
    assert.equal((await client.listTools()).tools.length, 2);
    assert.equal(context.toolCalls.length, 2);
    for (const call of context.toolCalls) assert.equal(text(await client.callTool(call)), 'Custom headers test completed');
  },
  async 'http-invalid-tool-headers'(client) {
    // Everything that is offered is called: whoever stands between must not offer what it may not send.
    for (const { name, inputSchema } of (await client.listTools()).tools) {
      const values = Object.entries(inputSchema.properties).map(([key, p]) => [key, sample(p.type)]);
      await client.callTool({ name, arguments: Object.fromEntries(values) });
    }
  },
  'json-schema-ref-no-deref': async (client) => assert.equal((await client.listTools()).tools[0].name, 'lookup_user'),
};
const sample = (type) => ({ string: 'x', number: 1.5, integer: 1, boolean: true, object: {}, array: [], null: null })[type];

async function drive(url) {
  const mode = { old: 'legacy', new: { pin: '2026-07-28' } }[era];
  assert.ok(mode, 'the era is old or new');
  const capabilities = { elicitation: { form: { applyDefaults: true } }, sampling: {}, roots: { listChanged: true } };
  const client = new Client({ name: 'conformance-client', version: '1.0.0' }, { capabilities, versionNegotiation: { mode } });
  const confirmed = scenario === 'sep-2322-client-request-state' ? { confirmed: true } : {};
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { ...confirmed } }));
  client.setRequestHandler('sampling/createMessage', () => { throw new Error('nothing was to be sampled'); });
  client.setRequestHandler('roots/list', () => ({ roots: [] }));
  const run = SCENARIOS[scenario];
  assert.ok(run, `this client knows no scenario ${scenario}`);
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  await run(client);
  await client.close();
}

let front;
try {
  front = gateway ? await start(gateway, server) : null;
  await drive(front?.url ?? server);
} catch (e) {
  console.error(e);
  process.exitCode = 1;
}
await front?.end();
process.exit();
