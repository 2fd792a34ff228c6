#!/usr/bin/env node
// Drives a gateway through the authorization scenarios of the conformance runner.
//
//   auth-client.mjs GATEWAY URL
//
// The runner appends the URL of its own protected server and names the scenario in MCP_CONFORMANCE_SCENARIO. That server becomes the
// backend of a gateway. This program is the client of the gateway and its user's browser: it opens every address that the gateway
// wants to be opened, follows where that leads, and calls each tool twice. Exit code 0: every call got an answer.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const PATIENCE = 15_000;
const [binary, server] = process.argv.slice(2);
const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const folder = mkdtempSync(join(tmpdir(), 'auth-gateway-'));
const quoted = JSON.stringify;

/** The configuration of the gateway in this scenario. */
function config() {
  const outbound = ['allow = ["localhost", "127.0.0.1", "::1"]'];
  const auth = [];
  if (scenario.startsWith('auth/client-credentials')) auth.push('type = "client_credentials"');
  else if (scenario === 'auth/enterprise-managed-authorization') {
    auth.push('type = "enterprise"', `exchange_url = ${quoted(context.idp_token_endpoint)}`);
    auth.push(`exchange_client_id = ${quoted(context.idp_client_id)}`, 'secret_file = "id-token"');
    writeFileSync(join(folder, 'id-token'), `${context.idp_id_token}\n`);
  } else if (scenario === 'auth/wif-jwt-bearer') {
    auth.push('type = "jwt_bearer"', 'secret_file = "workload-jwt"');
    writeFileSync(join(folder, 'workload-jwt'), `${context.valid_jwt}\n`);
  } else auth.push('type = "oauth"');
  if (context.client_id) auth.push(`client_id = ${quoted(context.client_id)}`);
  if (context.client_secret) {
    auth.push('client_secret_file = "client-secret"');
    writeFileSync(join(folder, 'client-secret'), `${context.client_secret}\n`);
  }
  if (context.private_key_pem) {
    auth.push('client_key_file = "client-key.pem"');
    writeFileSync(join(folder, 'client-key.pem'), context.private_key_pem);
  }
  if (scenario === 'auth/basic-cimd') {
    outbound.push('client_metadata_url = "https://conformance-test.local/client-metadata.json"');
  }
  return ['[auth.outbound]', ...outbound, '[backends.judge]', `url = ${quoted(server)}`, '[backends.judge.auth]', ...auth].join('\n');
}

const wanted = [];
const opened = new Set();

/** A browser and its user: it goes where it is sent, says yes to the page of the gateway, and keeps its cookie. */
async function open(url) {
  opened.add(url);
  let at = url;
  let method = 'GET';
  let cookie = '';
  for (let hop = 0; hop < 6; hop += 1) {
    const answer = await fetch(at, { method, redirect: 'manual', headers: cookie ? { cookie } : {} });
    const next = answer.headers.get('location');
    console.error(`browser: ${answer.status} ${new URL(at).pathname}`);
    cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? cookie;
    const asks = !next && method === 'GET' && (await answer.text()).includes('<form method="post">');
    if (!next && !asks) return answer.status;
    method = asks ? 'POST' : 'GET';
    at = next ? new URL(next, at).href : at;
  }
  return 0;
}

async function start() {
  writeFileSync(join(folder, 'signalbox.toml'), config());
  const args = ['serve', '--listen', '127.0.0.1:0', '-c', join(folder, 'signalbox.toml'), '--data-dir', join(folder, 'data')];
  const child = spawn(binary, args, { stdio: ['ignore', 'inherit', 'pipe'] });
  const url = await new Promise((found, fail) => {
    const timer = setTimeout(() => fail(new Error('the gateway does not listen')), PATIENCE);
    child.once('exit', (code) => fail(new Error(`the gateway ended with ${code}`)));
    createInterface(child.stderr).on('line', (line) => {
      console.error(`gateway: ${line}`);
      const at = line.match(/serves MCP at (\S+)/);
      if (at) { clearTimeout(timer); found(at[1]); }
      const address = line.match(/open (http:\/\/\S+?\/auth\/connect\/[\w-]+)/);
      if (address) wanted.push(address[1]);
    });
  });
  return { url, child };
}

let session;
let number = 0;

async function post(url, message) {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  if (session) Object.assign(headers, { 'mcp-session-id': session, 'mcp-protocol-version': '2025-06-18' });
  const answer = await fetch(url, { method: 'POST', headers, body: quoted({ jsonrpc: '2.0', ...message }) });
  session ??= answer.headers.get('mcp-session-id');
  return answer.text();
}

/** One request to the gateway; its answer, or what went wrong. */
async function ask(url, method, params) {
  number += 1;
  const text = await post(url, { id: number, method, params });
  const data = text.startsWith('{') ? [text] : text.split('\n').filter((line) => line.startsWith('data: {')).map((line) => line.slice(6));
  return JSON.parse(data.at(-1));
}

/** The same, and after a sign-in once more. */
async function insist(url, method, params) {
  for (let round = 0; ; round += 1) {
    const answer = await ask(url, method, params);
    const address = answer.error?.data?.url;
    if (!address || round > 2) return answer;
    const status = await open(address);
    if (status !== 200) return answer;
  }
}

/** Signs in until the backend is ready; false if a sign-in is refused or nothing moves any more. */
async function ready(url) {
  const until = Date.now() + PATIENCE;
  while (Date.now() < until) {
    const next = wanted.find((address) => !opened.has(address));
    if (next && (await open(next)) !== 200) return false;
    if ((await fetch(new URL('/readyz', url))).status === 200) return true;
    await new Promise((again) => setTimeout(again, 50));
  }
  return false;
}

const gateway = await start();
try {
  if (!(await ready(gateway.url))) throw new Error('the backend did not become ready');
  await ask(gateway.url, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'auth', version: '1' } });
  await post(gateway.url, { method: 'notifications/initialized' });
  const listed = await insist(gateway.url, 'tools/list', {});
  if (!listed.result) throw new Error(quoted(listed));
  const { result } = listed;
  for (const { name } of [...result.tools, ...result.tools]) {
    const answer = await insist(gateway.url, 'tools/call', { name, arguments: {} });
    if (!answer.result) throw new Error(quoted(answer));
  }
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
await new Promise((done) => { gateway.child.once('exit', done); gateway.child.kill(); });
rmSync(folder, { recursive: true, force: true });
process.exit();
