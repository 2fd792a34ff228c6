// The worker library against a relay that follows the contract.
import assert from "node:assert/strict";
import { afterEach, describe, test } from "node:test";
import { FakeBrowser, FakeStorage } from "./fakeBrowser.mjs";
import { startRelay } from "./mockRelay.mjs";
import { load } from "./packages.mjs";

const { connect, ToolError } = await load("src/worker/index.ts");
const BACKOFF = { min: 20, max: 100 };
const cleanup = [];
afterEach(async () => {
  for (const undo of cleanup.splice(0).reverse()) await undo();
});

async function until(what, look, patience = 10_000) {
  const end = Date.now() + patience;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) assert.fail(`it never came: ${what}`);
    await new Promise((done) => setTimeout(done, 5));
  }
}

async function relayOf(options) {
  const relay = await startRelay(options);
  cleanup.push(() => relay.stop());
  return relay;
}

/** A page in a tab that has connected. */
function page(relay, tab, options = {}) {
  const worker = connect({ url: relay.url, backoff: BACKOFF, ...options }, tab.environment);
  const states = [];
  const problems = [];
  worker.on("state", (change) => states.push(change));
  worker.on("problem", ({ message }) => problems.push(message));
  cleanup.push(() => worker.stop());
  const is = (state, standby = false) => until(`${state} ${standby}`, () => worker.state.state === state && worker.state.standby === standby);
  return { worker, states, problems, is };
}

/** A handler that waits until it is let go, and counts how often it ran. */
function gate() {
  const ran = [];
  const waiting = [];
  const handler = (args, context) => {
    ran.push(args);
    return new Promise((done) => waiting.push({ args, context, done }));
  };
  return { ran, waiting, handler };
}

describe("sessions", () => {
  test("co_10: a page makes a session, connects, and a call is answered", async () => {
    const relay = await relayOf();
    const { worker, states } = page(relay, new FakeBrowser().tab(), { handlers: { add: ({ a, b }) => a + b } });
    const { code, hasToken, joinUrl } = await worker.ready;
    assert.match(code, /^[A-Z2-7]{8}$/);
    assert.equal(hasToken, true);
    assert.equal(joinUrl, `${relay.url}/relay/demo/#${code}.${relay.session(code).token}`);
    const answer = await relay.call(code, "add", { a: 1, b: 2 });
    assert.deepEqual([answer.result, answer.success, typeof answer.duration], [3, true, "number"]);
    assert.deepEqual(states.map(({ state }) => state), ["connecting", "connected"]);
  });

  test("the code and the token stand in no address", async () => {
    const relay = await relayOf();
    const { worker } = page(relay, new FakeBrowser().tab(), { handlers: { one: () => 1 } });
    const { code } = await worker.ready;
    await relay.call(code, "one");
    const { token } = relay.session(code);
    assert.ok(relay.seen.length >= 3);
    for (const { url, headers } of relay.seen) {
      assert.ok(!url.includes(code) && !url.includes(token), url);
      assert.equal(headers.referer, undefined);
    }
  });

  test("a code is joined, in small letters and with a token behind it too", async () => {
    const relay = await relayOf();
    const code = relay.create();
    const plain = page(relay, new FakeBrowser().tab(), { code: ` ${code.toLowerCase()} `, handlers: { one: () => 1 } });
    assert.equal((await plain.worker.ready).hasToken, false);
    assert.equal((await relay.call(code, "one")).result, 1);
    plain.worker.stop();
    const proved = page(relay, new FakeBrowser().tab(), { code: `${code}.${relay.session(code).token}` });
    assert.equal((await proved.worker.ready).hasToken, true);
  });

  test("a wrong or unknown code ends in the state error, with the relay's word for it", async () => {
    const relay = await relayOf();
    const wrong = page(relay, new FakeBrowser().tab(), { code: "too short" });
    await assert.rejects(wrong.worker.ready, /eight letters/);
    assert.equal(wrong.worker.state.error, "invalid_session_code");
    const unknown = page(relay, new FakeBrowser().tab(), { code: "AAAAAAAA" });
    await assert.rejects(unknown.worker.ready);
    assert.deepEqual([unknown.worker.state.state, unknown.worker.state.error], ["error", "session_not_found"]);
  });

  test("a reload resumes the session of the tab; if that is gone, a new one is made", async () => {
    const relay = await relayOf();
    const tab = new FakeBrowser().tab();
    const { code } = await page(relay, tab).worker.ready;
    const again = tab.reload();
    const second = page(relay, again);
    assert.equal((await second.worker.ready).code, code);
    relay.sessions.delete(code);
    const last = again.reload();
    const third = page(relay, last, { backoff: { min: 200, max: 60_000 } });
    const { code: fresh } = await third.worker.ready;
    assert.notEqual(fresh, code);
    // It still hears when the machine wakes up.
    last.offline = true;
    relay.cut(fresh);
    await until("a long pause", () => third.worker.state.retryIn > 5_000 || void last.wake());
    last.offline = false;
    last.wake();
    await third.is("connected");
  });

  test("an expired session ends in the state error and stays there", async () => {
    const relay = await relayOf();
    const { worker, is } = page(relay, new FakeBrowser().tab());
    const { code } = await worker.ready;
    relay.expire(code);
    await is("error");
    assert.equal(worker.state.error, "session_expired");
    await new Promise((done) => setTimeout(done, 200));
    assert.equal(relay.seen.filter(({ url }) => url.startsWith("/api/stream")).length, 1);
  });
});

describe("calls", () => {
  test("falsy results are results, undefined is null", async () => {
    const relay = await relayOf();
    const handlers = { no: () => false, zero: () => 0, empty: () => "", nothing: () => undefined };
    const { code } = await page(relay, new FakeBrowser().tab(), { handlers }).worker.ready;
    for (const [tool, expected] of Object.entries({ no: false, zero: 0, empty: "", nothing: null })) {
      const answer = await relay.call(code, tool);
      assert.deepEqual([answer.success, answer.result, "error" in answer], [true, expected, false]);
    }
  });

  test("co_10: failures have types", async () => {
    const relay = await relayOf();
    const handlers = {
      plain: () => { throw new Error("broken"); },
      typed: () => { throw new ToolError("invalid_args", "a is missing", { argument: "a" }); },
      odd: () => { throw "text"; },
    };
    const { code } = await page(relay, new FakeBrowser().tab(), { handlers }).worker.ready;
    const error = async (tool) => (await relay.call(code, tool)).error;
    assert.deepEqual(await error("plain"), { type: "execution_error", message: "broken" });
    assert.deepEqual(await error("typed"), { type: "invalid_args", message: "a is missing", details: { argument: "a" } });
    assert.deepEqual(await error("odd"), { type: "execution_error", message: "text" });
    assert.equal((await error("missing")).type, "tool_not_found");
    assert.equal((await error("constructor")).type, "tool_not_found");
  });

  test("co_9: calls run one at a time, in order; with concurrency they do not wait, and answers may come out of order", async () => {
    const relay = await relayOf();
    const one = gate();
    const { code } = await page(relay, new FakeBrowser().tab(), { handlers: { wait: one.handler } }).worker.ready;
    const answers = [1, 2, 3].map((n) => relay.call(code, "wait", { n }));
    await until("the first runs", () => one.waiting.length === 1);
    await new Promise((done) => setTimeout(done, 50));
    assert.equal(one.ran.length, 1);
    for (let n = 0; n < 3; n += 1) (await until(`call ${n}`, () => one.waiting[n])).done(n);
    assert.deepEqual((await Promise.all(answers)).map(({ result }) => result), [0, 1, 2]);

    const many = gate();
    const other = await page(relay, new FakeBrowser().tab(), { handlers: { wait: many.handler }, concurrency: 3 }).worker.ready;
    const three = [1, 2, 3].map((n) => relay.call(other.code, "wait", { n }));
    await until("all run", () => many.waiting.length === 3);
    for (const { args, done } of [...many.waiting].reverse()) done(args.n * 10);
    assert.deepEqual((await Promise.all(three)).map(({ result }) => result), [10, 20, 30]);
    assert.deepEqual(relay.session(other.code).answers.length, 3);
  });

  test("progress is told, a cancelled call is aborted and not answered", async () => {
    const relay = await relayOf();
    const { waiting, handler } = gate();
    const { code } = await page(relay, new FakeBrowser().tab(), { handlers: { wait: handler, next: () => "next" } }).worker.ready;
    void relay.call(code, "wait", {}, { id: "a".repeat(32) });
    const { context, done } = await until("it runs", () => waiting[0]);
    context.progress(1, 4, "a quarter");
    await until("progress", () => relay.session(code).progress.length === 1);
    assert.deepEqual(relay.session(code).progress[0].progress, { progress: 1, total: 4, message: "a quarter" });
    relay.cancel(code, "a".repeat(32), "changed my mind");
    await until("aborted", () => context.signal.aborted);
    assert.equal(context.signal.reason.message, "changed my mind");
    done("too late");
    assert.equal((await relay.call(code, "next")).result, "next");
    assert.equal(relay.session(code).answers.length, 1);
  });

  test("a call whose time is over is aborted, and one that waited too long never runs", async () => {
    const relay = await relayOf();
    const { ran, waiting, handler } = gate();
    const { code } = await page(relay, new FakeBrowser().tab(), { handlers: { wait: handler } }).worker.ready;
    void relay.call(code, "wait", { n: 1 }, { deadline: 150 });
    void relay.call(code, "wait", { n: 2 }, { deadline: 100 });
    const { context, done } = await until("the first runs", () => waiting[0]);
    await until("its time is over", () => context.signal.aborted);
    done();
    void relay.call(code, "wait", { n: 3 });
    await until("the third runs", () => ran.length === 2);
    assert.deepEqual(ran.map(({ n }) => n), [1, 3]);
  });

  test("tools of the page are registered, and again when they change", async () => {
    const relay = await relayOf();
    const tool = (name) => ({ name, description: `Does ${name}.`, inputSchema: { type: "object" }, handler: () => name });
    const { worker } = page(relay, new FakeBrowser().tab(), { tools: [tool("one")] });
    const { code } = await worker.ready;
    await until("registered", () => relay.session(code).tools.length === 1);
    assert.deepEqual(relay.session(code).tools, [{ name: "one", description: "Does one.", inputSchema: { type: "object" } }]);
    await worker.registerTools([tool("two"), tool("three")]);
    assert.deepEqual(relay.session(code).tools.map(({ name }) => name), ["two", "three"]);
    assert.equal((await relay.call(code, "three")).result, "three");
    assert.equal((await relay.call(code, "one")).error.type, "tool_not_found");
    relay.cut(code);
    await until("again connected", () => relay.session(code).workers.length === 1);
    assert.equal(relay.log.filter((line) => line.startsWith("PUT")).length, 2, "a new connection registers nothing new");
  });

  test("co_9: answers that come while one is on its way go together, at most ten", async () => {
    const relay = await relayOf();
    const { waiting, handler } = gate();
    const { code } = await page(relay, new FakeBrowser().tab(), { handlers: { wait: handler }, concurrency: 30 }).worker.ready;
    const calls = Array.from({ length: 25 }, (_, n) => relay.call(code, "wait", { n }));
    await until("all run", () => waiting.length === 25);
    for (const { args, done } of waiting) done(args.n);
    assert.deepEqual((await Promise.all(calls)).map(({ result }) => result), Array.from({ length: 25 }, (_, n) => n));
    assert.deepEqual(relay.batches, [10, 10, 4], "the first goes at once");
    assert.equal(relay.log.filter((line) => line.startsWith("POST /api/response")).length, 4);
  });

  test("co_9: of answers that go together, one that is refused does not hold up the others", async () => {
    const relay = await relayOf();
    const { waiting, handler } = gate();
    const { worker, problems } = page(relay, new FakeBrowser().tab(), { handlers: { wait: handler }, concurrency: 5 });
    const { code } = await worker.ready;
    const calls = [1, 2, 3].map((n) => relay.call(code, "wait", { n }));
    void relay.call(code, "wait", {}, { id: "f".repeat(32) });
    await until("all run", () => waiting.length === 4);
    relay.session(code).calls.delete("f".repeat(32));
    for (const { args, done } of [...waiting].reverse()) done(args.n ?? null);
    assert.deepEqual((await Promise.all(calls)).map(({ result }) => result), [1, 2, 3]);
    assert.deepEqual(problems, []);
  });

  test("co_9: after five failures answers wait, until the network is back", async () => {
    const relay = await relayOf({ heartbeatMs: 100 });
    const tab = new FakeBrowser().tab();
    const { worker, problems } = page(relay, tab, { handlers: { one: () => 1 } });
    const { code } = await worker.ready;
    let refused = 0;
    relay.fault = (_, path) => (path === "/api/response" ? ((refused += 1), 503) : undefined);
    const answer = relay.call(code, "one");
    await until("it is open", () => problems.some((message) => message.includes("answers wait")), 30_000);
    const before = refused;
    await new Promise((done) => setTimeout(done, 500));
    assert.equal(refused, before, "heartbeats do not bring it");
    relay.fault = () => undefined;
    tab.wake();
    assert.equal((await answer).result, 1);
  });

  test("co_9: a worker with a bound of attempts ends in the state error", async () => {
    const relay = await relayOf();
    const { worker, states, is } = page(relay, new FakeBrowser().tab(), { maxRetries: 2 });
    await worker.ready;
    relay.fault = (_, path) => (path === "/api/stream" ? 503 : undefined);
    relay.cut(worker.session.code);
    await is("error");
    assert.equal(states.filter(({ state }) => state === "reconnecting").length, 2);
  });

  test("an answer is brought three more times, and then with the next heartbeat", async () => {
    const relay = await relayOf({ heartbeatMs: 300 });
    const { worker, problems } = page(relay, new FakeBrowser().tab(), { handlers: { one: () => 1 } });
    const { code } = await worker.ready;
    let refused = 0;
    relay.fault = (_, path) => (path === "/api/response" && (refused += 1) <= 4 ? 503 : undefined);
    assert.equal((await relay.call(code, "one")).result, 1);
    assert.equal(refused, 5);
    assert.equal(problems.length, 1);
  });
});

describe("faults", () => {
  test("an answer that could not be brought goes as soon as the network is back, though the stream stood all the time", async () => {
    const relay = await relayOf();
    const tab = new FakeBrowser().tab();
    const { worker, problems } = page(relay, tab, { handlers: { one: () => 1 } });
    const { code } = await worker.ready;
    relay.fault = (_, path) => (path === "/api/response" ? "drop" : undefined);
    const answer = relay.call(code, "one");
    await until("it gives up", () => problems.length === 1);
    relay.fault = () => undefined;
    tab.wake();
    assert.equal((await answer).result, 1);
    assert.equal(worker.state.state, "connected");
  });

  test("a cut stream comes back, and a running call is left running and answered once", async () => {
    const relay = await relayOf();
    const { ran, waiting, handler } = gate();
    const { worker, states } = page(relay, new FakeBrowser().tab(), { handlers: { wait: handler } });
    const { code } = await worker.ready;
    const answer = relay.call(code, "wait");
    await until("it runs", () => waiting[0]);
    relay.cut(code);
    await until("reconnecting", () => states.some(({ state }) => state === "reconnecting"));
    await until("sent again", () => relay.session(code).calls.values().next().value?.request.redelivered);
    waiting[0].done("once");
    assert.equal((await answer).result, "once");
    assert.equal(ran.length, 1);
  });

  test("an answer that was lost with the network is brought from the journal when the call is sent again", async () => {
    const relay = await relayOf();
    const tab = new FakeBrowser().tab();
    const { ran, waiting, handler } = gate();
    const { worker } = page(relay, tab, { handlers: { wait: handler } });
    const { code } = await worker.ready;
    const phases = [];
    worker.on("call", ({ phase }) => phases.push(phase));
    const answer = relay.call(code, "wait");
    await until("it runs", () => waiting[0]);
    tab.offline = true;
    relay.cut(code);
    waiting[0].done("kept");
    await until("it tries", () => worker.state.state === "reconnecting");
    tab.offline = false;
    assert.equal((await answer).result, "kept");
    assert.equal(ran.length, 1);
    assert.ok(phases.includes("repeated"), phases.join());
  });

  test("after a reload: what was answered is answered again, what was running is unknown, what may run twice runs again", async () => {
    const relay = await relayOf();
    const tab = new FakeBrowser().tab();
    const before = gate();
    const handlers = { wait: before.handler, look: before.handler, quick: () => "quick" };
    const { worker } = page(relay, tab, { handlers, concurrency: 3 });
    const { code } = await worker.ready;
    const running = relay.call(code, "wait");
    const idempotent = relay.call(code, "look", {}, { idempotent: true });
    await until("both run", () => before.waiting.length === 2);
    // The answer of this one is lost.
    relay.fault = (_, path) => (path === "/api/response" ? "drop" : undefined);
    const answered = relay.call(code, "quick");
    await until("it was tried", () => relay.seen.some(({ url }) => url === "/api/response"));
    const reloaded = tab.reload();
    relay.fault = () => undefined;
    const after = [];
    const ran = (name) => () => (after.push(name), `${name} again`);
    const second = page(relay, reloaded, { handlers: { wait: ran("wait"), look: ran("look"), quick: ran("quick") } });
    await second.worker.ready;
    assert.equal((await answered).result, "quick");
    assert.equal((await running).error.type, "outcome_unknown");
    assert.equal((await idempotent).result, "look again");
    assert.deepEqual(after, ["look"]);
  });

  test("a silent gateway is left, and the call that came meanwhile arrives by the next connection", async () => {
    const relay = await relayOf({ heartbeatMs: 100 });
    const { worker, states } = page(relay, new FakeBrowser().tab(), { handlers: { one: () => 1 } });
    const { code } = await worker.ready;
    relay.silent = true;
    await until("it gives up", () => states.some(({ reason }) => reason?.includes("silent")));
    relay.silent = false;
    assert.equal((await relay.call(code, "one")).result, 1);
  });

  test("a machine that wakes up connects at once, however long the pause was to be", async () => {
    const relay = await relayOf({ heartbeatMs: 100 });
    const tab = new FakeBrowser().tab();
    const { worker, is } = page(relay, tab, { backoff: { min: 60_000, max: 60_000 }, handlers: { one: () => 1 } });
    const { code } = await worker.ready;
    tab.offline = true;
    relay.cut(code);
    await is("reconnecting");
    assert.ok(worker.state.retryIn >= 30_000, String(worker.state.retryIn));
    tab.offline = false;
    tab.wake();
    await is("connected");
    assert.equal((await relay.call(code, "one")).result, 1);
  });

  test("waking up after a long silence leaves a dead stream without waiting for heartbeats", async () => {
    const relay = await relayOf({ heartbeatMs: 1_000 });
    const tab = new FakeBrowser().tab();
    const { worker, states } = page(relay, tab);
    await worker.ready;
    tab.wake();
    await new Promise((done) => setTimeout(done, 50));
    assert.equal(states.at(-1).state, "connected", "a stream that was just heard of is left alone");
    relay.silent = true;
    await new Promise((done) => setTimeout(done, 1_300));
    tab.wake();
    await until("it is left", () => states.some(({ reason }) => reason?.includes("nothing was heard")), 500);
  });

  test("co_9: a stream that is held back on its way is replaced by polling", async () => {
    const relay = await relayOf();
    relay.fault = (_, path) => (path === "/api/stream" ? 200 : undefined);
    const { worker } = page(relay, new FakeBrowser().tab(), { handlers: { one: () => 1 } });
    const { code } = await worker.ready;
    assert.deepEqual([worker.state.state, worker.state.transport], ["connected", "poll"]);
    assert.equal((await relay.call(code, "one")).result, 1);
    assert.equal((await relay.call(code, "one")).result, 1);
    assert.ok(relay.seen.every(({ url }) => !url.includes(code)));
  });

  test("a gateway that is not there is tried again with longer and longer pauses", async () => {
    const relay = await relayOf();
    relay.fault = () => 503;
    const { worker, states, is } = page(relay, new FakeBrowser().tab(), { backoff: { min: 10, max: 80 } });
    await until("five attempts", () => states.filter(({ state }) => state === "reconnecting").length >= 5);
    const pauses = states.filter(({ retryIn }) => retryIn !== undefined).map(({ retryIn }) => retryIn);
    assert.ok(pauses[0] <= 10 && pauses[3] >= 40 && pauses.every((pause) => pause <= 80), pauses.join());
    relay.fault = () => undefined;
    await is("connected");
    await worker.ready;
  });
});

for (const locks of [true, false]) {
  describe(locks ? "tabs with Web Locks" : "tabs with leases", () => {
    test("two tabs with one code: one serves, the other stands by and takes over with the token", async () => {
      const relay = await relayOf();
      const browser = new FakeBrowser({ locks });
      const [left, right] = [browser.tab(), browser.tab()];
      const first = page(relay, left, { handlers: { who: () => "first" } });
      const { code } = await first.worker.ready;
      const second = page(relay, right, { code, handlers: { who: () => "second" } });
      await second.is("disconnected", true);
      assert.equal(relay.session(code).workers.length, 1);
      assert.equal((await relay.call(code, "who")).result, "first");
      left.gone();
      await second.is("connected");
      assert.equal((await relay.call(code, "who")).result, "second");
    });

    test("the copy of a tab has a journal of its own: a call of the first does not run again in it", async () => {
      const relay = await relayOf();
      const browser = new FakeBrowser({ locks });
      const tab = browser.tab();
      const { waiting, handler } = gate();
      const { code } = await page(relay, tab, { handlers: { wait: handler } }).worker.ready;
      let again = 0;
      const copy = page(relay, tab.duplicate(), { handlers: { wait: () => (again += 1) } });
      await copy.is("disconnected", true);
      const answer = relay.call(code, "wait");
      await until("it runs", () => waiting[0]);
      tab.gone();
      await copy.is("connected");
      assert.deepEqual([(await answer).by, again], ["relay", 0], "the relay saw another journal and sent nothing");
    });
  });
}

test("a worker that is stopped at once holds nothing: the next one of the page goes on with the same journal", async () => {
  const relay = await relayOf();
  const tab = new FakeBrowser().tab();
  const { code } = await page(relay, tab).worker.ready;
  const journal = tab.storage.getItem("signalbox.journal");
  const again = tab.reload();
  page(relay, again).worker.stop();
  const short = page(relay, again).worker;
  await null;
  await null;
  short.stop();
  const last = page(relay, again, { code });
  await last.worker.ready;
  await last.is("connected");
  assert.equal(again.storage.getItem("signalbox.journal"), journal);
});

describe("storage", () => {
  test("without any storage the page works, and every load has a journal of its own", async () => {
    const relay = await relayOf();
    const tab = new FakeBrowser().tab();
    tab.environment.tabStorage = undefined;
    tab.environment.sharedStorage = undefined;
    const { code } = await page(relay, tab, { handlers: { one: () => 1 } }).worker.ready;
    assert.equal((await relay.call(code, "one")).result, 1);
  });

  test("an answer of five million characters is brought, and a full storage stops nothing", async () => {
    const relay = await relayOf();
    const large = "x".repeat(5_000_000);
    const tab = new FakeBrowser().tab(new FakeStorage(new Map(), 2_000));
    const { code } = await page(relay, tab, { handlers: { large: () => large } }).worker.ready;
    assert.equal((await relay.call(code, "large")).result.length, 5_000_000);
    assert.equal((await relay.call(code, "large")).result.length, 5_000_000);
  });
});
