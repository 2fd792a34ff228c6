// The scenario shared by the Node clients. A client script gives an adapter; this file parses the command line,
// runs the steps and prints one JSON document. The same document is written by lib/scenario.py.
import { createRequire } from 'node:module';
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
export const depsDir = resolve(process.env.MCP_TEST_DEPS || join(here, '..', '..', '..', '.deps'));

export const STEPS = ['tools', 'call', 'prompts', 'resources', 'complete', 'elicit', 'progress', 'logs', 'links', 'listchanged'];
const ASKED = ['elicitation', 'sampling', 'roots'];
const CAPS = [...ASKED, 'apps'];
// Extension that a client declares which shows the pages of MCP Apps.
export const APPS = { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } };
// Stands for the URI of the last resource link, in the arguments of a call.
const LINK = '$link';

/** Loads packages from the folder that script/install-test-deps filled. Exit code 77 means "not installed". */
export function depsRequire() {
  const base = join(depsDir, 'npm', 'package.json');
  if (!existsSync(base)) {
    console.error('not installed: run script/install-test-deps first');
    process.exit(77);
  }
  return createRequire(base);
}

class UsageError extends Error {}

function pair(text, option) {
  const at = text.indexOf('=');
  const name = at < 0 ? text : text.slice(0, at);
  if (!name) throw new UsageError(`${option} needs NAME=JSON`);
  if (at < 0) return { name, arguments: {} };
  try {
    return { name, arguments: JSON.parse(text.slice(at + 1)) };
  } catch (e) {
    throw new UsageError(`${option} ${name}: not JSON: ${e.message}`);
  }
}

function list(text, allowed, option) {
  const out = text.split(',').map((s) => s.trim()).filter(Boolean);
  for (const s of out) if (!allowed.includes(s)) throw new UsageError(`${option}: unknown ${s}; known: ${allowed.join(',')}`);
  return out;
}

export function parseArgs(argv) {
  const o = {
    url: null, sse: null, stdio: null, era: null, protocolVersion: null, headers: {}, steps: null, caps: null,
    tool: null, calls: [], parallel: false, callTimeout: 60, prompts: [], reads: [], subscribe: [], completes: [],
    answer: 'answered', action: 'accept', progress: false, logLevel: null, linger: 0, trace: false, allowErrors: false,
    timeout: 120, awaitTools: false,
  };
  for (let i = 0; i < argv.length; i++) {
    const arg = argv[i];
    const value = () => {
      if (++i >= argv.length) throw new UsageError(`${arg} needs a value`);
      return argv[i];
    };
    const number = () => {
      const n = Number(value());
      if (!Number.isFinite(n) || n < 0) throw new UsageError(`${arg} needs a number of seconds`);
      return n;
    };
    switch (arg) {
      case '--url': o.url = value(); break;
      case '--sse': o.sse = value(); break;
      case '--stdio': o.stdio = argv.slice(i + 1); i = argv.length; break;
      case '--era': o.era = value(); break;
      case '--protocol-version': o.protocolVersion = value(); break;
      case '--header': {
        const h = value();
        const at = h.indexOf(':');
        if (at < 1) throw new UsageError('--header needs "Name: value"');
        o.headers[h.slice(0, at).trim()] = h.slice(at + 1).trim();
        break;
      }
      case '--steps': o.steps = list(value(), STEPS, arg); break;
      case '--caps': o.caps = list(value(), CAPS, arg); break;
      case '--tool': o.tool = value(); break;
      case '--call': o.calls.push(pair(value(), arg)); break;
      case '--parallel': o.parallel = true; break;
      case '--call-timeout': o.callTimeout = number(); break;
      case '--get-prompt': o.prompts.push(pair(value(), arg)); break;
      case '--read': o.reads.push(value()); break;
      case '--subscribe': o.subscribe.push(value()); break;
      case '--complete': o.completes.push(JSON.parse(value())); break;
      case '--answer': o.answer = value(); break;
      case '--action': o.action = value(); break;
      case '--progress': o.progress = true; break;
      case '--log-level': o.logLevel = value(); break;
      case '--linger': o.linger = number(); break;
      case '--await-tools': o.awaitTools = true; break;
      case '--timeout': o.timeout = number(); break;
      case '--trace': o.trace = true; break;
      case '--allow-errors': o.allowErrors = true; break;
      default: throw new UsageError(`unknown option ${arg}`);
    }
  }
  if ([o.url, o.sse, o.stdio].filter((x) => x !== null).length !== 1) throw new UsageError('give one of --url, --sse, --stdio');
  if (o.stdio && !o.stdio.length) throw new UsageError('--stdio needs a command');
  if (o.era && !['old', 'new', 'auto'].includes(o.era)) throw new UsageError('--era is old, new or auto');
  if (!['accept', 'decline', 'cancel'].includes(o.action)) throw new UsageError('--action is accept, decline or cancel');
  // Naming a passive step switches on what it needs.
  const named = (s) => !!o.steps && o.steps.includes(s);
  if (named('elicit') && !o.caps) o.caps = [...ASKED];
  if (named('progress')) o.progress = true;
  if (named('logs') && !o.logLevel) o.logLevel = 'debug';
  o.caps ??= [];
  return o;
}

/** The deterministic answer to a form: TEXT in the first plain string property, and a value for each other required one. */
export function formAnswer(schema, text) {
  const props = Object.entries(schema?.properties ?? {});
  const plain = ([, p]) => p.type === 'string' && !p.enum && !p.oneOf && !p.format;
  const content = {};
  const first = props.find(plain) ?? props.find(([, p]) => p.type === 'string' && !p.enum && !p.oneOf);
  if (first) content[first[0]] = text;
  for (const [name, p] of props) {
    if (name in content || !(schema.required ?? []).includes(name)) continue;
    content[name] = p.default ?? p.enum?.[0] ?? p.oneOf?.[0]?.const
      ?? { boolean: true, integer: p.minimum ?? 1, number: p.minimum ?? 1, array: [p.items?.enum?.[0] ?? p.items?.anyOf?.[0]?.const ?? text] }[p.type]
      ?? text;
  }
  return content;
}

export function errorObject(e) {
  const out = { message: String(e?.message ?? e) };
  if (e?.code !== undefined) out.code = e.code;
  if (e?.data !== undefined) out.data = e.data;
  if (e?.status !== undefined) out.status = e.status;
  if (e?.name && e.name !== 'Error') out.type = e.name;
  if (e?.cause) out.cause = String(e.cause?.message ?? e.cause);
  return out;
}

const sleep = (s) => new Promise((done) => setTimeout(done, s * 1000));

/** Records every JSON-RPC message of a transport without changing its class. */
function tap(transport, wire) {
  const send = transport.send;
  transport.send = function (message, options) {
    for (const m of Array.isArray(message) ? message : [message]) wire.push({ dir: 'send', message: m });
    return send.call(this, message, options);
  };
  let handler;
  Object.defineProperty(transport, 'onmessage', {
    configurable: true,
    enumerable: true,
    get: () => handler,
    set(next) {
      handler = next && ((message, extra) => {
        wire.push({ dir: 'recv', message });
        return next(message, extra);
      });
    },
  });
  return transport;
}

/**
 * adapter: {name, eras, open(o, hooks, wrap) -> session}; session: {info(), call, tools, prompts, resources, templates,
 * read, getPrompt, complete, subscribe, setLogLevel, listen, close}.
 */
export async function main(adapter) {
  let o;
  try {
    o = parseArgs(process.argv.slice(2));
    o.era ??= adapter.eras[0];
    if (!adapter.eras.includes(o.era)) throw new UsageError(`${adapter.name} knows --era ${adapter.eras.join('|')}`);
  } catch (e) {
    console.error(`${adapter.name}: ${e.message}`);
    process.exit(2);
  }
  const wire = [];
  const doc = {
    client: adapter.name, era: o.era, transport: o.stdio ? 'stdio' : o.sse ? 'sse' : 'http', ok: false,
    serverRequests: [], progress: { count: 0, received: 0, notifications: [] }, logs: [],
    listChanged: { tools: 0, prompts: 0, resources: 0 }, resourceUpdates: [], steps: {}, errors: [],
  };
  const finish = () => {
    // The library gives up a token once the call is answered, and so may miss the last notification: "received" counts
    // what was on the wire, "count" what the library handed over.
    doc.progress.received = wire.filter((w) => w.dir === 'recv' && w.message.method === 'notifications/progress').length;
    doc.ok = doc.errors.length === 0;
    if (o.trace) doc.wire = wire;
    // A pipe takes the text asynchronously: leave only once it is written.
    process.stdout.write(`${JSON.stringify(doc, null, 1)}\n`, () => process.exit(doc.ok || (o.allowErrors && !doc.fatal) ? 0 : 1));
  };
  const fail = (step, e) => {
    const error = errorObject(e);
    doc.errors.push({ step, ...error });
    return error;
  };
  const watchdog = setTimeout(() => {
    doc.fatal = true;
    fail('timeout', new Error(`not finished after ${o.timeout} s`));
    finish();
  }, o.timeout * 1000);

  const received = (method, params, answer) => {
    doc.serverRequests.push({ method, params, answer });
    return answer;
  };
  const hooks = {
    elicitation: (params) => received('elicitation/create', params, o.action !== 'accept' ? { action: o.action }
      : params?.mode === 'url' ? { action: 'accept' }
      : { action: 'accept', content: formAnswer(params?.requestedSchema, o.answer) }),
    sampling: (params) => received('sampling/createMessage', params, {
      model: 'signalbox-test-model', role: 'assistant', stopReason: 'endTurn', content: { type: 'text', text: 'sampled' },
    }),
    roots: (params) => received('roots/list', params, { roots: [{ uri: 'file:///tmp', name: 'tmp' }] }),
    log: (params) => doc.logs.push(params),
    listChanged: (what) => { doc.listChanged[what]++; },
    resourceUpdated: (params) => doc.resourceUpdates.push(params),
    progress: (p) => { doc.progress.count++; doc.progress.notifications.push(p); },
    transportError: (e) => { (doc.transportErrors ??= []).push(errorObject(e)); },
  };

  let session;
  try {
    session = await adapter.open(o, hooks, (t) => tap(t, wire));
    Object.assign(doc, session.info());
  } catch (e) {
    doc.fatal = true;
    fail('connect', e);
    clearTimeout(watchdog);
    finish();
    return;
  }
  const has = (s) => !!session.capabilities()?.[s];
  const want = (s, byDefault) => (o.steps ? o.steps.includes(s) : byDefault);
  const sent = (method, from) => wire.slice(from).filter((w) => w.dir === 'send' && w.message.method === method).length;
  const rawItems = (member, from) => wire.slice(from).flatMap((w) => (w.dir === 'recv' && w.message.result?.[member]) || []);
  const attempt = async (step, run) => {
    try {
      return await run();
    } catch (e) {
      return { error: fail(step, e) };
    }
  };

  // Logs may come without the capability, but only a server that declares it can be asked for a level.
  if (o.logLevel && (has('logging') || doc.negotiatedEra === 'new')) await attempt('logs', () => session.setLogLevel(o.logLevel));
  if (want('listchanged', false) || o.subscribe.length) {
    doc.steps.subscribe = await attempt('subscribe', () => session.listen(want('listchanged', false), o.subscribe));
  }
  if (want('tools', has('tools'))) {
    const from = wire.length;
    doc.steps.tools = await attempt('tools', async () => {
      let tools = await session.tools();
      // Changes may have been told before the list came.
      for (let told = 0; o.awaitTools && !tools.length; tools = await session.tools()) {
        while (doc.listChanged.tools <= told) await sleep(0.05);
        told = doc.listChanged.tools;
      }
      const raw = rawItems('tools', from);
      const name = o.tool ?? tools[0]?.name;
      return {
        count: tools.length, names: tools.map((t) => t.name), pages: sent('tools/list', from),
        tool: tools.find((t) => t.name === name) ?? null, rawTool: raw.find((t) => t.name === name) ?? null,
      };
    });
  }
  if (want('prompts', has('prompts'))) {
    const from = wire.length;
    doc.steps.prompts = await attempt('prompts', async () => {
      const prompts = await session.prompts();
      return { count: prompts.length, names: prompts.map((p) => p.name), pages: sent('prompts/list', from), prompts };
    });
    doc.steps.getPrompt = [];
    for (const p of o.prompts) {
      doc.steps.getPrompt.push({ ...p, ...(await attempt(`getPrompt ${p.name}`, async () => ({ result: await session.getPrompt(p) }))) });
    }
  }
  if (want('resources', has('resources'))) {
    const from = wire.length;
    doc.steps.resources = await attempt('resources', async () => {
      const resources = await session.resources();
      const templates = await session.templates();
      return {
        count: resources.length, uris: resources.map((r) => r.uri), pages: sent('resources/list', from),
        templates: templates.map((t) => t.uriTemplate), resources, resourceTemplates: templates,
      };
    });
    doc.steps.read = [];
    for (const uri of o.reads) {
      doc.steps.read.push({ uri, ...(await attempt(`read ${uri}`, async () => ({ result: await session.read(uri) }))) });
    }
  }
  if (want('complete', o.completes.length > 0)) {
    doc.steps.complete = [];
    for (const params of o.completes) {
      doc.steps.complete.push({ params, ...(await attempt('complete', async () => ({ result: await session.complete(params) }))) });
    }
  }
  // elicit, progress, logs and links happen inside calls, so any of them runs the calls too.
  const callSteps = ['call', 'elicit', 'progress', 'logs', 'links'];
  let link = LINK;
  // Reads what a result links to.
  const follow = async (content) => {
    const links = [];
    for (const { uri } of content.filter((block) => block.type === 'resource_link')) {
      link = uri;
      links.push({ uri, ...(await attempt(`read ${uri}`, async () => ({ result: await session.read(uri) }))) });
    }
    return links;
  };
  if (o.calls.length && (!o.steps || o.steps.some((s) => callSteps.includes(s)))) {
    const one = async (asked) => {
      const filled = Object.entries(asked.arguments).map(([name, value]) => [name, value === LINK ? link : value]);
      const c = { ...asked, arguments: Object.fromEntries(filled) };
      const started = Date.now();
      let progress = 0;
      const onProgress = o.progress ? (p) => { progress++; hooks.progress(p); } : undefined;
      const out = await attempt(`call ${c.name}`, async () => ({ result: await session.call(c, { timeout: o.callTimeout * 1000, onProgress }) }));
      const ms = Date.now() - started;
      const links = want('links', false) ? { links: await follow(out.result?.content ?? []) } : {};
      return { ...c, ...out, progress, ms, ...links };
    };
    doc.steps.call = [];
    if (o.parallel) doc.steps.call = await Promise.all(o.calls.map(one));
    else for (const c of o.calls) doc.steps.call.push(await one(c));
  }
  if (o.linger) await sleep(o.linger);
  await attempt('close', () => session.close());
  clearTimeout(watchdog);
  finish();
}
