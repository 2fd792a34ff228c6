#!/usr/bin/env node
// npm @modelcontextprotocol/client 2.x signs in at the authorization server of a protected MCP server by its own OAuth flow. With
// MCP_TEST_SDK1=1 it is @modelcontextprotocol/sdk 1.x. A URL that ends in /sse is spoken to by HTTP+SSE.
//
//   oauth-ts-client2.mjs URL TOOL ARGUMENTS USER PASSWORD PAUSE
//
// The library finds the authorization server, registers itself, and gives an address for the browser, which `person.mjs` opens. After
// the first call it waits PAUSE seconds and calls again, so that the library has to refresh. Prints
// {"pages", "tools", "results", "registered", "scope", "refreshed"}.
import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { depsRequire } from './lib/scenario.mjs';

const require = depsRequire();
const sdk1 = !!process.env.MCP_TEST_SDK1;
const parts = ['index', 'streamableHttp', 'sse', 'auth'];
const library = sdk1
  ? Object.assign({}, ...parts.map((part) => require(`@modelcontextprotocol/sdk/client/${part}.js`)))
  : require('@modelcontextprotocol/client');
const { Client, SSEClientTransport, StreamableHTTPClientTransport, UnauthorizedError } = library;
const [url, tool, args, user, password, pause] = process.argv.slice(2);

let arrived;
const back = new Promise((done) => { arrived = done; });
const door = createServer((request, reply) => {
  const at = new URL(request.url, 'http://127.0.0.1');
  reply.setHeader('content-type', 'text/html').end('<title>back</title>');
  if (at.pathname === '/callback') arrived(at.searchParams);
});
await new Promise((done) => door.listen(0, '127.0.0.1', done));
const redirectUrl = `http://127.0.0.1:${door.address().port}/callback`;

const kept = { saves: [] };
const provider = {
  redirectUrl,
  clientMetadata: {
    client_name: 'TypeScript client', redirect_uris: [redirectUrl], grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'], token_endpoint_auth_method: 'none',
  },
  state: () => (kept.state ??= crypto.randomUUID()),
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client; },
  tokens: () => kept.tokens,
  saveTokens: (tokens) => { kept.tokens = tokens; kept.saves.push(tokens); },
  redirectToAuthorization: (at) => { kept.at = at; },
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  codeVerifier: () => kept.verifier,
};
const connect = async () => {
  const client = new Client({ name: 'oauth-ts-client2', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } });
  const Transport = url.endsWith('/sse') ? SSEClientTransport : StreamableHTTPClientTransport;
  const transport = new Transport(new URL(url), { authProvider: provider });
  return { client, transport };
};

let { client, transport } = await connect();
let refused = false;
await client.connect(transport).catch((error) => {
  if (!(error instanceof UnauthorizedError) && !kept.at) throw error;
  refused = true;
});
if (!refused || !kept.at) throw new Error('the server asked for nothing');
const person = fileURLToPath(new URL('person.mjs', import.meta.url));
const { stdout } = await promisify(execFile)(process.execPath, [person, kept.at.href, user, password]);
const params = await back;
if (params.get('state') !== kept.state) throw new Error('another state came back');
await transport.finishAuth(sdk1 ? params.get('code') : params);
({ client, transport } = await connect());
await client.connect(transport);
const call = async () => (await client.callTool({ name: tool, arguments: JSON.parse(args) })).content[0].text;
const results = [await call()];
const tools = (await client.listTools()).tools.map((one) => one.name);
await new Promise((done) => setTimeout(done, Number(pause) * 1000));
results.push(await call());
await client.close();
door.close();
door.closeAllConnections();
const [first, ...later] = kept.saves;
console.log(JSON.stringify({
  pages: JSON.parse(stdout).pages, tools, results, registered: !!kept.client?.client_id && !kept.client.client_secret,
  scope: first.scope, refreshed: later.some((one) => one.refresh_token && one.refresh_token !== first.refresh_token),
}));
