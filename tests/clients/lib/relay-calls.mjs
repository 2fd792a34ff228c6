// Calls of tools in a page, through a relay that is a mock, or through a gateway by its REST API.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import { root } from '../../../web/relay/test/packages.mjs';
import { startRelay } from '../../../web/relay/test/mockRelay.mjs';

const TYPES = {
  '.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8', '.json': 'application/json', '.svg': 'image/svg+xml',
};

/** The checked-in pages, with the headers of the gateway. */
function page(path, ancestors, response) {
  const found = join(root, 'crates/relay/assets', path.endsWith('/') ? `${path}index.html` : path);
  if (path.includes('..') || !existsSync(found) || !statSync(found).isFile()) return response.writeHead(404).end();
  response.writeHead(200, {
    'content-type': TYPES[extname(found)] ?? 'application/octet-stream', 'cache-control': 'no-store', 'x-content-type-options': 'nosniff',
    'content-security-policy': `default-src 'self'; connect-src *; frame-ancestors ${ancestors}`, 'referrer-policy': 'no-referrer',
  });
  return response.end(readFileSync(found));
}

/** A mock that serves the pages too. `ancestors` may frame them. */
export async function mockCalls(ancestors) {
  const relay = await startRelay();
  const [serve] = relay.server.listeners('request');
  relay.server.removeAllListeners('request');
  relay.server.on('request', (request, response) => {
    const { pathname } = new URL(request.url, relay.url);
    return pathname.startsWith('/relay/') ? page(pathname.slice('/relay/'.length), ancestors, response) : serve(request, response);
  });
  return {
    base: relay.url,
    codes: () => [...relay.sessions.keys()],
    call: async (code, tool, args) => outcome(await relay.call(code, tool, args)),
    stop: () => relay.stop(),
  };
}

/** The REST API tells the message of an error, and not its type. */
const outcome = ({ result, error }) => (error === undefined ? { result } : { error: typeof error === 'string' ? { message: error } : error });

/** A gateway: a client of the REST API asks, and hears the results on its stream. */
export function gatewayCalls(base) {
  const streams = new Map();
  const ended = new AbortController();

  async function listen(code) {
    const waiting = new Map();
    const headers = { accept: 'text/event-stream', 'x-session-code': code };
    const response = await fetch(`${base}/api/stream?role=client`, { headers, signal: ended.signal });
    if (!response.ok) throw new Error(`the stream is refused: ${response.status} ${await response.text()}`);
    void (async () => {
      let text = '';
      for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
        text += part;
        const events = text.split('\n\n');
        text = events.pop();
        for (const event of events) {
          const data = event.split('\n').filter((line) => line.startsWith('data:')).map((line) => line.slice(5)).join('\n');
          const said = data ? JSON.parse(data) : {};
          if (!event.includes('event:')) arrived(waiting, said.requestId)(said);
        }
      }
    })().catch(() => {});
    return waiting;
  }

  /** What is waited for may come before it is waited for. */
  function arrived(waiting, id) {
    if (!waiting.has(id)) {
      let done;
      const promise = new Promise((resolve) => { done = resolve; });
      waiting.set(id, { promise, done });
    }
    return waiting.get(id).done;
  }

  return {
    base,
    codes: () => undefined,
    async call(code, tool, args) {
      if (!streams.has(code)) streams.set(code, listen(code));
      const waiting = await streams.get(code);
      const body = JSON.stringify({ sessionCode: code, tool, arguments: args });
      const response = await fetch(`${base}/api/request`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
      const said = await response.json();
      if (response.status !== 202) return { error: { status: response.status, ...said } };
      arrived(waiting, said.id);
      return outcome(await waiting.get(said.id).promise);
    },
    stop: () => ended.abort(),
  };
}
