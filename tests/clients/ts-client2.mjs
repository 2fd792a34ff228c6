#!/usr/bin/env node
// The shared scenario with npm @modelcontextprotocol/client 2.x. --era old: initialize; new: pinned to 2026-07-28;
// auto: probes with server/discover and falls back.
import { APPS, depsRequire, main } from './lib/scenario.mjs';

const require = depsRequire();
const { Client, StreamableHTTPClientTransport, SSEClientTransport } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');

await main({
  name: 'ts-client2',
  eras: ['auto', 'old', 'new'],
  async open(o, hooks, wrap) {
    const capabilities = {};
    if (o.caps.includes('elicitation')) capabilities.elicitation = { form: {}, url: {} };
    if (o.caps.includes('sampling')) capabilities.sampling = {};
    if (o.caps.includes('roots')) capabilities.roots = { listChanged: true };
    if (o.caps.includes('apps')) capabilities.extensions = APPS;
    const mode = { old: 'legacy', new: { pin: '2026-07-28' }, auto: 'auto' }[o.era];
    const options = { capabilities, versionNegotiation: { mode, probe: { timeoutMs: 10000 } } };
    if (o.protocolVersion) options.supportedProtocolVersions = [o.protocolVersion];
    const client = new Client({ name: 'signalbox-ts-client2', version: '1.0.0' }, options);
    client.onerror = hooks.transportError;
    if (capabilities.elicitation) client.setRequestHandler('elicitation/create', (r) => hooks.elicitation(r.params));
    if (capabilities.sampling) client.setRequestHandler('sampling/createMessage', (r) => hooks.sampling(r.params));
    if (capabilities.roots) client.setRequestHandler('roots/list', (r) => hooks.roots(r.params));
    client.setNotificationHandler('notifications/message', (n) => { hooks.log(n.params); });
    for (const what of ['tools', 'prompts', 'resources']) {
      client.setNotificationHandler(`notifications/${what}/list_changed`, () => { hooks.listChanged(what); });
    }
    client.setNotificationHandler('notifications/resources/updated', (n) => { hooks.resourceUpdated(n.params); });

    const requestInit = { headers: o.headers };
    const transport = o.stdio
      ? new StdioClientTransport({ command: o.stdio[0], args: o.stdio.slice(1), env: process.env, stderr: 'inherit' })
      : o.sse ? new SSEClientTransport(new URL(o.sse), { requestInit })
      : new StreamableHTTPClientTransport(new URL(o.url), { requestInit });
    await client.connect(wrap(transport));
    const modern = client.getProtocolEra() === 'modern';
    let meta; // the 2026-07-28 way to ask for logs: on each request
    const withMeta = (params) => (meta ? { ...params, _meta: { ...params?._meta, ...meta } } : params);
    let subscription;
    return {
      info: () => ({
        negotiatedEra: modern ? 'new' : 'old', protocolVersion: client.getNegotiatedProtocolVersion() ?? null,
        sessionId: transport.sessionId ?? null, serverInfo: client.getServerVersion(),
        serverCapabilities: client.getServerCapabilities(), instructions: client.getInstructions() ?? null,
      }),
      capabilities: () => client.getServerCapabilities(),
      tools: async () => (await client.listTools()).tools,
      prompts: async () => (await client.listPrompts()).prompts,
      resources: async () => (await client.listResources()).resources,
      templates: async () => (await client.listResourceTemplates()).resourceTemplates,
      read: (uri) => client.readResource(withMeta({ uri })),
      getPrompt: (p) => client.getPrompt(withMeta(p)),
      complete: (p) => client.complete(withMeta(p)),
      call: (c, { timeout, onProgress }) => client.callTool(withMeta(c), { timeout, onprogress: onProgress }),
      async setLogLevel(level) {
        if (modern) meta = { 'io.modelcontextprotocol/logLevel': level };
        else await client.setLoggingLevel(level);
      },
      async listen(listChanged, uris) {
        if (!modern) {
          for (const uri of uris) await client.subscribeResource({ uri });
          return { mode: 'old', uris };
        }
        const filter = {};
        if (listChanged) Object.assign(filter, { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true });
        if (uris.length) filter.resourceSubscriptions = uris;
        subscription = await client.listen(filter);
        return { mode: 'new', honored: subscription.honoredFilter };
      },
      async close() {
        if (subscription) await subscription.close();
        if (!modern && transport.terminateSession) await transport.terminateSession();
        await client.close();
      },
    };
  },
});
