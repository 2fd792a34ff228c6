#!/usr/bin/env node
// The CODAP plugin in Chromium, in the frame of a page that speaks CODAP's frame protocol. Every tool is called through a relay,
// and what CODAP is asked is compared with what CODAP documents.
//
//   relay-codap.mjs CHROMIUM                   through a relay of its own, which serves the checked-in pages
//   relay-codap.mjs CHROMIUM GATEWAY PORT      through a gateway, which lets http://127.0.0.1:PORT frame the plugin
//
// Prints {"tools", "calls", "requests"}.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { EXPECTED } from '../../web/relay/test/codap-host/expected.mjs';
import { bundle, relay as pages } from '../../web/relay/test/packages.mjs';
import { Browser } from './lib/chromium.mjs';
import { gatewayCalls, mockCalls } from './lib/relay-calls.mjs';

const [program, gateway, port = '0'] = process.argv.slice(2);
/** What the plugin asks when it is opened. */
const OPENING = [
  { action: 'update', resource: 'interactiveFrame', values: { name: 'Signalbox relay', version: '1.0', dimensions: { width: 360, height: 520 } } },
  { action: 'get', resource: 'interactiveFrame' },
];

/** Serves the host page, at an origin that is not the relay's. */
async function hostPage() {
  const script = await bundle('test/codap-host/host.mjs');
  const html = readFileSync(join(pages, 'test/codap-host/index.html'));
  const server = createServer((request, response) => {
    const path = new URL(request.url, 'http://host').pathname;
    if (path === '/host.js') return response.setHeader('content-type', 'text/javascript').end(script);
    if (path === '/favicon.ico') return response.writeHead(204).end();
    return response.setHeader('content-type', 'text/html').end(html);
  });
  await new Promise((done) => server.listen(Number(port), '127.0.0.1', done));
  return { origin: `http://127.0.0.1:${server.address().port}`, close: () => (server.close(), server.closeAllConnections()) };
}

/** The plugin in the host page, as a person and an agent see it. */
class Plugin {
  constructor(browser, relay) {
    this.browser = browser;
    this.relay = relay;
    this.frame = relay.base;
  }

  look(expression) {
    return this.browser.look({ tab: 'codap', frame: this.frame, expression });
  }

  wait(expression) {
    return this.browser.wait({ tab: 'codap', frame: this.frame, expression });
  }

  shown(id) {
    return this.look(text(id));
  }

  /** Presses a button by the keyboard. */
  async press(id) {
    await this.look(`document.getElementById('${id}').focus()`);
    await this.browser.press({ tab: 'codap', keys: ['Enter'] });
  }

  /** The host page. */
  host(expression) {
    return this.browser.look({ tab: 'codap', expression });
  }

  /** What CODAP was asked since the last time. */
  asked() {
    return this.host('window.recorded.splice(0)');
  }

  call(tool, args) {
    return this.relay.call(this.code, tool, args);
  }

  /** Waits for a session that is not the old one, and remembers its code. */
  async connected(old = '') {
    await this.wait(`document.getElementById('state').dataset.state === 'connected' && !['', '${old}'].includes(${text('code')})`);
    this.code = await this.shown('code');
    assert.match(this.code, /^[A-Z2-7]{8}$/);
    assert.equal(this.relay.codes()?.at(-1) ?? this.code, this.code);
  }
}

const text = (id) => `document.getElementById('${id}').textContent`;

async function showsTheSession(plugin) {
  assert.equal(await plugin.shown('address'), `${plugin.relay.base}/api/mcp`);
  await plugin.press('copy-code');
  await plugin.wait(`${text('copied')} === 'The code is copied.'`);
  const tree = await plugin.browser.tree({ tab: 'codap', frame: plugin.frame });
  const has = (role, name) => assert.ok(tree.some((one) => one[0] === role && one[1] === name), `${role} ${name} in ${JSON.stringify(tree)}`);
  has('heading', 'Agents in this document');
  has('region', 'Session');
  has('button', 'Copy code');
  has('button', 'Copy address');
  has('button', 'New session');
  has('status', [...plugin.code].join(' '));
  assert.ok(tree.every(([role, name]) => role !== 'button' || name), 'every button has a name');
}

async function everyTool(plugin) {
  let requests = 0;
  for (const { tool, args, requests: wanted, result } of EXPECTED) {
    const outcome = await plugin.call(tool, args);
    const asked = await plugin.asked();
    assert.deepEqual({ tool, asked, outcome }, { tool, asked: wanted, outcome: { result } });
    requests += asked.length;
  }
  return requests;
}

async function refusals(plugin) {
  const typed = (type, message, details) => (gateway ? { message } : { type, message, details });
  const { error } = await plugin.call('get_data_context', { name: 'Nothing' });
  assert.deepEqual(error, typed('codap_error', 'DataContext not found', { request: { action: 'get', resource: 'dataContext[Nothing]' } }));
  await plugin.wait(`${text('call')} === 'get_data_context failed: DataContext not found.'`);
  const wrong = await plugin.call('delete_items', { dataContextName: 'Mammals', itemIds: [1], confirmDelete: false });
  assert.deepEqual(wrong.error, typed('invalid_args', 'confirmDelete must be true: what is deleted is gone', { argument: 'confirmDelete' }));
  assert.deepEqual((await plugin.asked()).map(({ resource }) => resource), ['dataContext[Nothing]']);
}

async function notices(plugin) {
  const request = 'dataContextChangeNotice[Mammals]';
  await plugin.call('registerForNotifications', { request });
  const values = { operation: 'selectCases', result: { success: true, cases: [] } };
  assert.deepEqual(await plugin.host(`window.notify(${JSON.stringify(request)}, ${JSON.stringify(values)})`), { success: true });
  await plugin.host("window.notify('dataContextChangeNotice[Other]', { operation: 'selectCases' })");
  const { result } = await plugin.call('registerForNotifications', { request });
  assert.deepEqual(result.notifications, [{ resource: request, values }]);
  // The document that CODAP saves holds no code.
  assert.ok(!JSON.stringify(await plugin.host('window.savedState()')).includes(plugin.code));
}

/** A reload keeps the session; a new session takes its place when a person asks for one. */
async function keepsAndRenews(plugin) {
  const code = plugin.code;
  await plugin.browser.reload({ tab: 'codap' });
  await plugin.connected();
  assert.equal(plugin.code, code);
  assert.deepEqual((await plugin.call('getItemCount', { dataContext: 'Mammals' })).result, { count: 3 });
  await plugin.press('renew');
  await plugin.connected(code);
  assert.deepEqual((await plugin.call('getItemCount', { dataContext: 'Mammals' })).result, { count: 3 });
}

async function inCodap(browser, relay, host) {
  const plugin = new Plugin(browser, relay);
  // CODAP is there only after the library's own two seconds are over.
  await browser.open({ tab: 'codap', url: `${host.origin}/?late=3000&di=${encodeURIComponent(`${relay.base}/relay/codap/`)}` });
  await plugin.connected();
  assert.deepEqual((await plugin.asked()).slice(-2), OPENING);
  await showsTheSession(plugin);
  const requests = await everyTool(plugin);
  await refusals(plugin);
  await notices(plugin);
  await keepsAndRenews(plugin);
  assert.deepEqual(browser.said({ tab: 'codap' }), [], 'nothing was blocked, and nothing went wrong');
  await browser.close({ tab: 'codap' });
  return { tools: new Set(EXPECTED.map(({ tool }) => tool)).size, calls: EXPECTED.length, requests };
}

/** Without CODAP around it the page says what to do, and makes no session. */
async function alone(browser, relay) {
  const sessions = relay.codes()?.length;
  const url = `${relay.base}/relay/codap/`;
  await browser.open({ tab: 'alone', url });
  await browser.wait({ tab: 'alone', expression: `${text('state')} === 'This page works inside of CODAP.'` });
  assert.equal(await browser.look({ tab: 'alone', expression: text('plugin-address') }), url);
  assert.equal(relay.codes()?.length, sessions);
}

const host = await hostPage();
const relay = gateway ? gatewayCalls(gateway) : await mockCalls(host.origin);
const browser = await Browser.start(program);
try {
  const done = await inCodap(browser, relay, host);
  await alone(browser, relay);
  console.log(JSON.stringify(done));
} finally {
  await browser.stop();
  await relay.stop();
  host.close();
}
