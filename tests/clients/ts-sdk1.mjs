#!/usr/bin/env node
// The shared scenario with npm @modelcontextprotocol/sdk 1.x (initialize era only).
import { APPS, depsRequire, main } from './lib/scenario.mjs';

const require = depsRequire();
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { SSEClientTransport } = require('@modelcontextprotocol/sdk/client/sse.js');
const { WebSocketClientTransport } = require('@modelcontextprotocol/sdk/client/websocket.js');
const types = require('@modelcontextprotocol/sdk/types.js');

async function pages(fetch, member) {
  const all = [];
  let cursor;
  do {
    const page = await fetch(cursor === undefined ? {} : { cursor });
    all.push(...page[member]);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return all;
}

await main({
  name: 'ts-sdk1',
  eras: ['old'],
  async open(o, hooks, wrap) {
    const capabilities = {};
    if (o.caps.includes('elicitation')) capabilities.elicitation = { form: {}, url: {} };
    if (o.caps.includes('sampling')) capabilities.sampling = {};
    if (o.caps.includes('roots')) capabilities.roots = { listChanged: true };
    if (o.caps.includes('apps')) capabilities.extensions = APPS;
    const client = new Client({ name: 'signalbox-ts-sdk1', version: '1.0.0' }, { capabilities });
    client.onerror = hooks.transportError;
    if (capabilities.elicitation) client.setRequestHandler(types.ElicitRequestSchema, (r) => hooks.elicitation(r.params));
    if (capabilities.sampling) client.setRequestHandler(types.CreateMessageRequestSchema, (r) => hooks.sampling(r.params));
    if (capabilities.roots) client.setRequestHandler(types.ListRootsRequestSchema, (r) => hooks.roots(r.params));
    client.setNotificationHandler(types.LoggingMessageNotificationSchema, (n) => hooks.log(n.params));
    client.setNotificationHandler(types.ToolListChangedNotificationSchema, () => hooks.listChanged('tools'));
    client.setNotificationHandler(types.PromptListChangedNotificationSchema, () => hooks.listChanged('prompts'));
    client.setNotificationHandler(types.ResourceListChangedNotificationSchema, () => hooks.listChanged('resources'));
    client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, (n) => hooks.resourceUpdated(n.params));

    const requestInit = { headers: o.headers };
    const transport = o.stdio
      ? new StdioClientTransport({ command: o.stdio[0], args: o.stdio.slice(1), env: process.env, stderr: 'inherit' })
      : o.sse ? new SSEClientTransport(new URL(o.sse), { requestInit })
      : /^wss?:/.test(o.url) ? new WebSocketClientTransport(new URL(o.url))
      : new StreamableHTTPClientTransport(new URL(o.url), { requestInit });
    let version;
    transport.setProtocolVersion = ((original) => function (v) {
      version = v;
      return original?.call(this, v);
    })(transport.setProtocolVersion);
    await client.connect(wrap(transport));
    return {
      info: () => ({
        negotiatedEra: 'old', protocolVersion: version ?? null, sessionId: transport.sessionId ?? null, serverInfo: client.getServerVersion(),
        serverCapabilities: client.getServerCapabilities(), instructions: client.getInstructions() ?? null,
      }),
      capabilities: () => client.getServerCapabilities(),
      tools: () => pages((p) => client.listTools(p), 'tools'),
      prompts: () => pages((p) => client.listPrompts(p), 'prompts'),
      resources: () => pages((p) => client.listResources(p), 'resources'),
      templates: () => pages((p) => client.listResourceTemplates(p), 'resourceTemplates'),
      read: (uri) => client.readResource({ uri }),
      getPrompt: (p) => client.getPrompt(p),
      complete: (p) => client.complete(p),
      call: (c, { timeout, onProgress }) => client.callTool(c, undefined, { timeout, onprogress: onProgress, resetTimeoutOnProgress: true }),
      setLogLevel: (level) => client.setLoggingLevel(level),
      async listen(_listChanged, uris) {
        for (const uri of uris) await client.subscribeResource({ uri });
        return { mode: 'old', uris };
      },
      async close() {
        if (transport.terminateSession) await transport.terminateSession();
        await client.close();
      },
    };
  },
});
