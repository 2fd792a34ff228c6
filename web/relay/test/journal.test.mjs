// The journal, and the reader of streams.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeBrowser } from "./fakeBrowser.mjs";
import { load } from "./packages.mjs";

const { Journal } = await load("src/worker/journal.ts");
const { readEvents } = await load("src/worker/sse.ts");

describe("the journal", () => {
  test("remembers what ran and how it ended, over a reload", async () => {
    const tab = new FakeBrowser().tab();
    const journal = await Journal.open(tab.environment);
    journal.begin("ran");
    journal.end("ran", { result: [1, { two: null }] });
    journal.begin("failed");
    journal.end("failed", { error: { type: "invalid_args", message: "no" } });
    journal.begin("running");
    assert.deepEqual(["ran", "running", "other"].map((id) => journal.look(id)), [{ result: [1, { two: null }] }, "running", "unknown"]);
    const again = await Journal.open(tab.reload().environment);
    assert.equal(again.id, journal.id);
    assert.deepEqual(["ran", "failed", "running", "other"].map((id) => again.look(id)), [
      { result: [1, { two: null }] }, { error: { type: "invalid_args", message: "no" } }, "lost", "unknown",
    ]);
  });

  test("is bounded in number: the oldest that have ended are forgotten first, those that run never", async () => {
    const journal = await Journal.open(new FakeBrowser().tab().environment);
    journal.begin("running");
    for (let n = 0; n < 500; n += 1) {
      journal.begin(`${n}`);
      journal.end(`${n}`, { result: n });
    }
    assert.equal(journal.held.calls, 200);
    assert.deepEqual(["running", "0", "499"].map((id) => journal.look(id)), ["running", "unknown", { result: 499 }]);
  });

  test("is bounded in bytes: what is dropped is known to have run", async () => {
    const journal = await Journal.open(new FakeBrowser().tab().environment);
    for (let n = 0; n < 5; n += 1) {
      journal.begin(`${n}`);
      journal.end(`${n}`, { result: "x".repeat(3_000_000) });
    }
    assert.ok(journal.held.size <= 8_000_000, String(journal.held.size));
    assert.equal(journal.look("0"), "lost");
    assert.equal(journal.look("4").result.length, 3_000_000);
  });

  test("a large outcome is not kept over a reload, and then counts as unknown", async () => {
    const tab = new FakeBrowser().tab();
    const journal = await Journal.open(tab.environment);
    journal.begin("large");
    journal.end("large", { result: "x".repeat(400_000) });
    assert.equal((await Journal.open(tab.reload().environment)).look("large"), "lost");
  });

  test("what others wrote into the storage does no harm", async () => {
    const tab = new FakeBrowser().tab();
    const { id } = await Journal.open(tab.environment);
    tab.storage.setItem("signalbox.call.broken", "{");
    tab.storage.setItem("signalbox.call.null", "null");
    const again = await Journal.open(tab.reload().environment);
    assert.deepEqual([again.id, again.look("broken"), again.look("null")], [id, "unknown", "unknown"]);
  });
});

describe("the reader of streams", () => {
  const events = async (...pieces) => {
    const bytes = pieces.map((piece) => (typeof piece === "string" ? new TextEncoder().encode(piece) : piece));
    const body = new ReadableStream({ start: (controller) => { bytes.forEach((piece) => controller.enqueue(piece)); controller.close(); } });
    let alive = 0;
    const found = [];
    for await (const event of readEvents(body, () => (alive += 1))) found.push([event.event, event.data]);
    return { found, alive };
  };

  test("reads events however they are cut, with every kind of line end", async () => {
    const text = ": comment\nevent: a\ndata: 1\n\nevent:b\r\ndata:2\r\ndata: 3\r\n\r\ndata: ü😀\r\rdata: never ends";
    const expected = [["a", "1"], ["b", "2\n3"], ["message", "ü😀"]];
    const bytes = new TextEncoder().encode(text);
    assert.deepEqual((await events(text)).found, expected);
    for (let size = 1; size < 7; size += 1) {
      const pieces = [];
      for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.slice(at, at + size));
      assert.deepEqual((await events(...pieces)).found, expected, `pieces of ${size}`);
    }
  });

  test("comments are signs of life", async () => {
    assert.deepEqual(await events(": one\n\n", ": two\n\n"), { found: [], alive: 2 });
  });
});
