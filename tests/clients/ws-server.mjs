#!/usr/bin/env node
// A small MCP server with npm @modelcontextprotocol/sdk 1.x over the WebSockets of npm ws, on a free port of this machine.
import { depsRequire } from './lib/scenario.mjs';

const require = depsRequire();
const { McpServer } = require('@modelcontextprotocol/sdk/server/mcp.js');
const { WebSocketServer } = require('ws');
const { z } = require('zod');

function transport(socket) {
  const self = {
    async start() {
      socket.on('message', (data) => self.onmessage?.(JSON.parse(data.toString())));
      socket.on('close', () => self.onclose?.());
      socket.on('error', (error) => self.onerror?.(error));
    },
    async send(message) {
      // Large messages go in fragments, as some servers send them.
      const bytes = Buffer.from(JSON.stringify(message));
      const half = bytes.length >> 1;
      socket.send(bytes.subarray(0, half), { fin: false, binary: false });
      socket.send(bytes.subarray(half), { fin: true, binary: false });
    },
    async close() {
      socket.close();
    },
  };
  return self;
}

function server(request) {
  const mcp = new McpServer({ name: 'node-ws', version: '1.0.0' });
  mcp.registerTool('shout', { inputSchema: { text: z.string() } }, async ({ text }) => ({
    content: [{ type: 'text', text: text.toUpperCase() }],
  }));
  mcp.registerTool('greeted_with', {}, async () => ({
    content: [{ type: 'text', text: JSON.stringify({ key: request.headers['x-key'], path: request.url }) }],
  }));
  return mcp;
}

const listener = new WebSocketServer({ host: '127.0.0.1', port: 0, handleProtocols: (offered) => (offered.has('mcp') ? 'mcp' : false) });
listener.on('connection', (socket, request) => {
  // Pings that the gateway has to answer whatever else it does.
  const ping = setInterval(() => socket.ping(), 100);
  socket.on('close', () => clearInterval(ping));
  server(request).connect(transport(socket));
});
listener.on('listening', () => console.log(`listening ws://127.0.0.1:${listener.address().port}/mcp`));
