#!/usr/bin/env node
// A person who is sent to an authorization server: signs in, says yes, and ends where the server sends the browser back to.
//
//   person.mjs URL USER PASSWORD [allow|deny]
//
// With MCP_TEST_PROVIDER the person signs in at the provider that the first page offers, whose pages ask for a name and for consent.
// With MCP_TEST_BROWSER, the path of a Chromium, a real browser does it; otherwise the forms are posted by hand. Prints
// {"pages": [title, …], "end": URL}. Nothing is pressed that is not on the page.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const PATIENCE = 120_000;
const [url, user, password, answer = 'allow'] = process.argv.slice(2);
const browser = process.env.MCP_TEST_BROWSER;
const provider = !!process.env.MCP_TEST_PROVIDER;
const back = new URL(url).searchParams.get('redirect_uri');
const plain = (text) => text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&lt;', '<').replaceAll('&gt;', '>')
  .replaceAll('&amp;', '&');

/** Posts the forms of the pages by hand. */
async function byForms() {
  const cookies = new Map();
  const pages = [];
  const go = async (at, init = {}) => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const reply = await fetch(at, { ...init, redirect: 'manual', headers: { ...init.headers, ...(cookie && { cookie }) } });
    for (const line of reply.headers.getSetCookie()) {
      const [, name, value] = line.match(/^([^=]+)=([^;]*)/);
      if (value) cookies.set(name, value); else cookies.delete(name);
    }
    return reply;
  };
  let at = url;
  let reply = await go(at);
  for (let step = 0; step < 20; step += 1) {
    const html = reply.headers.has('location') ? '' : await reply.text();
    const next = reply.headers.get('location') ?? html.match(/http-equiv="refresh" content="0;url=([^"]*)"/)?.[1];
    if (next) {
      at = new URL(plain(next), at).href;
      reply = await go(at);
      if (at.startsWith(back)) return { pages, end: at };
      continue;
    }
    pages.push(html.match(/<title>([^<]*)/)?.[1] ?? html);
    const forms = [...html.matchAll(/<form[^>]* action="([^"]+)"[^>]*>(.*?)<\/form>/gs)];
    const [, action, body] = forms.find(([, , inside]) => provider && inside.includes('name="provider"')) ?? forms[0] ?? [];
    if (!action) return { pages, end: at };
    const form = new URLSearchParams();
    for (const [, name, value] of body.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)) form.set(name, value);
    if (body.includes('name="provider"')) form.set('provider', '1');
    if (body.includes('name="login"')) { form.set('login', user); form.set('password', password); }
    if (body.includes('name="user"')) { form.set('user', user); form.set('password', password); }
    if (body.includes(`name="answer" value="${answer}"`)) form.set('answer', answer);
    at = new URL(action, at).href;
    reply = await go(at, { method: 'POST', body: form, headers: { origin: new URL(at).origin } });
  }
  return { pages, end: at };
}

/** Does it in Chromium, over its debugging protocol. */
async function byBrowser() {
  const folder = mkdtempSync(join(tmpdir(), 'person-'));
  const profile = join(folder, 'profile');
  const child = spawn(browser, [
    '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-extensions',
    '--disable-background-networking', '--disable-component-update', '--disable-sync', '--remote-debugging-port=0',
    `--user-data-dir=${profile}`, 'about:blank',
  ], { stdio: 'ignore' });
  const ended = new Promise((done) => child.once('exit', done));
  try {
    const port = await until(() => {
      const file = join(profile, 'DevToolsActivePort');
      return existsSync(file) && readFileSync(file, 'utf8').split('\n')[0];
    });
    const targets = await until(async () => (await fetch(`http://127.0.0.1:${port}/json`)).json().catch(() => null));
    const socket = new WebSocket(targets.find((target) => target.type === 'page').webSocketDebuggerUrl);
    await new Promise((done, fail) => { socket.onopen = done; socket.onerror = fail; });
    const waiting = new Map();
    let id = 0;
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      waiting.get(message.id)?.(message.result ?? {});
      waiting.delete(message.id);
    };
    const ask = (method, params) => new Promise((done) => {
      id += 1;
      waiting.set(id, done);
      socket.send(JSON.stringify({ id, method, params }));
    });
    const look = async (expression) => (await ask('Runtime.evaluate', { expression, returnByValue: true })).result?.value;
    const pages = [];
    await ask('Page.navigate', { url });
    const fill = `(() => {
      const user = document.querySelector('input[name=user], input[name=login]');
      const elsewhere = ${provider} && document.querySelector('button[name=provider]');
      const prompt = document.querySelector('input[name=prompt]');
      const answer = document.querySelector('button[name=answer][value=${answer}]');
      if (document.readyState !== 'complete' || window.pressed) return null;
      if (elsewhere) { window.pressed = true; elsewhere.click(); } else if (user) {
        user.value = ${JSON.stringify(user)};
        document.querySelector('input[name=password]').value = ${JSON.stringify(password)};
        window.pressed = true;
        document.querySelector('form button').click();
      } else if (answer) { window.pressed = true; answer.click(); }
      else if (prompt) { window.pressed = true; prompt.form.querySelector('button').click(); }
      return document.title;
    })()`;
    const end = await until(async () => {
      const at = await look('location.href');
      if (at?.startsWith(back)) return at;
      const title = await look(fill);
      if (title && pages.at(-1) !== title) pages.push(title);
      return null;
    });
    // Killed, it would leave processes behind that still write to its folder.
    socket.send(JSON.stringify({ id: 0, method: 'Browser.close' }));
    await ended;
    return { pages, end };
  } finally {
    child.kill();
    await ended;
    rmSync(folder, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 });
  }
}

async function until(look) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error('the browser got nowhere');
    await new Promise((done) => setTimeout(done, 100));
  }
}

console.log(JSON.stringify(await (browser ? byBrowser() : byForms())));
