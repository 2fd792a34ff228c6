// The document of the demo page: CODAP's requests, and the tools of CODAP on top of them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { load, relay } from "./packages.mjs";

const { DataDocument } = await load("src/demo/document/dataDocument.ts");
const { keep, restore } = await load("src/demo/document/snapshot.ts");
const { toolHandlers } = await load("src/codap/tools/index.ts");

/** A document with a data set of two levels. */
async function mammals() {
  const document = new DataDocument();
  const ask = async (action, resource, values) => {
    const answer = await document.ask({ action, resource, values });
    assert.equal(answer.success, true, JSON.stringify(answer));
    return answer;
  };
  await ask("create", "dataContext", {
    name: "Mammals", title: "Some mammals",
    collections: [{ name: "Diets", attrs: [{ name: "Diet" }] }, { name: "Animals", attrs: [{ name: "Name" }, { name: "Mass", type: "numeric", unit: "kg" }] }],
  });
  const items = [["plants", "Elephant", 5000], ["meat", "Lion", 190], ["plants", "Rabbit", 2], ["meat", "Fox", 14], ["both", "Bear", 300]];
  const made = await ask("create", "dataContext[Mammals].item", items.map(([Diet, Name, Mass]) => ({ Diet, Name, Mass })));
  return { document, ask, made };
}

describe("CODAP's requests", () => {
  test("items with the same values of the upper collection are one case of it", async () => {
    const { ask, made } = await mammals();
    assert.deepEqual([made.itemIDs.length, made.caseIDs.length], [5, 8]);
    assert.equal((await ask("get", "dataContext[Mammals].collection[Diets].caseCount")).values, 3);
    const { values } = await ask("get", "dataContext[Mammals].collection[Diets].caseByIndex[0]");
    assert.deepEqual([values.case.values, values.case.children.length, values.caseIndex], [{ Diet: "plants" }, 2, 0]);
    const child = (await ask("get", `dataContext[Mammals].caseByID[${values.case.children[1]}]`)).values.case;
    assert.deepEqual([child.values, child.parent], [{ Name: "Rabbit", Mass: 2 }, values.case.id]);
  });

  test("cases keep their ids when others come and go", async () => {
    const { ask, made } = await mammals();
    const ids = async () => (await ask("get", "dataContext[Mammals].collection[Animals].caseSearch[*]")).values.map(({ id }) => id);
    const before = await ids();
    await ask("delete", `dataContext[Mammals].itemByID[${made.itemIDs[1]}]`);
    assert.deepEqual(await ids(), before.filter((_, at) => at !== 1));
  });

  test("queries and formulas find the same", async () => {
    const { ask } = await mammals();
    const names = async (resource) => (await ask("get", `dataContext[Mammals].${resource}`)).values.map(({ values }) => values.Name);
    assert.deepEqual(await names("itemSearch[Mass > 100]"), ["Elephant", "Lion", "Bear"]);
    assert.deepEqual(await names("itemSearch[Diet==meat]"), ["Lion", "Fox"]);
    assert.deepEqual(await names("collection[Animals].caseSearch[Mass<=14]"), ["Rabbit", "Fox"]);
    const formula = (text) => names(`collection[Animals].caseFormulaSearch[${text}]`);
    assert.deepEqual(await formula("`Mass` > 100"), ["Elephant", "Lion", "Bear"]);
    assert.deepEqual(await formula('`Diet` = "meat" and Mass < 20'), ["Fox"]);
    assert.deepEqual(await formula('includes(`Name`, "a")'), ["Elephant", "Rabbit", "Bear"]);
    assert.deepEqual(await formula('beginsWith(Name, "\\u0045") | endsWith(Name, "x")'), ["Elephant", "Fox"]);
    assert.deepEqual(await formula("Mass > mean(Mass)"), ["Elephant"]);
    assert.deepEqual(await formula("-(Mass - 2) ^ 2 / 4 = -36 or not (Mass >= 2)"), ["Fox"]);
  });

  test("attributes with a formula are computed, and a formula that refers to itself ends", async () => {
    const { ask } = await mammals();
    await ask("create", "dataContext[Mammals].collection[Animals].attribute", [{ name: "Grams", formula: "Mass * 1000" }, { name: "Loop", formula: "Loop + 1" }, { name: "Bad", formula: "Mass * (" }]);
    const [{ values }] = (await ask("get", "dataContext[Mammals].itemSearch[Name==Rabbit]")).values;
    assert.equal(values.Grams, 2000);
    assert.match(String(values.Loop), /refers to itself/);
    assert.match(values.Bad, /ends too early/);
  });

  test("a selected parent selects its items, and a parent is selected when all of them are", async () => {
    const { ask } = await mammals();
    const { values } = await ask("get", "dataContext[Mammals].collection[Diets].caseByIndex[1]");
    await ask("create", "dataContext[Mammals].selectionList", [values.case.id]);
    const selected = (await ask("get", "dataContext[Mammals].selectionList")).values;
    assert.deepEqual(selected.map(({ collectionName }) => collectionName), ["Diets", "Animals", "Animals"]);
    await ask("update", "dataContext[Mammals].selectionList", { expression: "Mass = 2" });
    assert.equal((await ask("get", "dataContext[Mammals].collection[Animals].selectionList")).values.length, 3);
  });

  test("hostile requests are refused, and nothing is thrown", async () => {
    const { document } = await mammals();
    const deep = `${"(".repeat(5_000)}1`;
    const requests = [
      undefined, null, {}, { action: "get" }, { action: "get", resource: "" }, { action: "get", resource: "constructor" },
      { action: "toString", resource: "dataContext[Mammals]" }, { action: "get", resource: "dataContext[Nobody]" }, { action: "get", resource: "dataContext[[[" },
      { action: "create", resource: "dataContext", values: 7 }, { action: "create", resource: "dataContext", values: { name: "x", collections: [null] } },
      { action: "create", resource: "component", values: { type: "__proto__" } }, { action: "create", resource: "component", values: { type: "graph", dataContext: "none" } },
      { action: "get", resource: `dataContext[Mammals].collection[Animals].caseFormulaSearch[${deep}]` },
      { action: "get", resource: "dataContext[Mammals].collection[Animals].caseFormulaSearch[nothing(1)]" },
      { action: "get", resource: "dataContext[Mammals].collection[Animals].caseFormulaSearch[constructor(1)]" },
      { action: "create", resource: "dataContext[Mammals].selectionList", values: "all" },
      { action: "update", resource: "dataContext[Mammals].item", values: [{ id: 1 }] },
      { action: "create", resource: "dataContext[Mammals].item", values: new Array(50_001).fill({}) },
    ];
    for (const request of requests) {
      const answer = await document.ask(request);
      assert.deepEqual([answer.success, typeof answer.values.error], [false, "string"], JSON.stringify(request)?.slice(0, 100));
    }
    await document.ask({ action: "create", resource: "dataContext[Mammals].item", values: { __proto__: { polluted: 1 }, constructor: 1 } });
    assert.equal({}.polluted, undefined);
  });

  test("a document is there again after a reload", async () => {
    const { document, ask } = await mammals();
    const kept = new Map();
    const storage = { getItem: (key) => kept.get(key) ?? null, setItem: (key, text) => kept.set(key, text), removeItem: (key) => kept.delete(key) };
    keep(document, storage);
    await ask("create", "dataContext[Mammals].selectionList", { expression: "Mass > 100" });
    await ask("create", "component", { type: "graph", dataContext: "Mammals", xAttributeName: "Mass" });
    const again = new DataDocument();
    restore(again, storage);
    for (const resource of ["dataContext[Mammals]", "dataContext[Mammals].itemSearch[*]", "dataContext[Mammals].selectionList", "componentList"]) {
      const request = { action: "get", resource };
      assert.deepEqual(await again.ask(request), await document.ask(request), resource);
    }
    kept.set([...kept.keys()][0], "{broken");
    restore(new DataDocument(), storage);
  });
});

/** Calls of every tool in an order in which all succeed. `$n.path` is what the nth call answered. */
const CALLS = JSON.parse(readFileSync(join(relay, "test/calls.json"), "utf8"));

test("co_15, co_16: all 67 tools work on the document, and what they changed is there", async () => {
  const document = new DataDocument();
  const handlers = toolHandlers(document.ask, document.listenTo);
  const answers = [];
  const filled = (value) => {
    if (typeof value === "string" && /^\$\d+\./.test(value)) {
      const [first, ...path] = value.slice(1).split(".");
      return path.reduce((found, name) => found?.[name], answers[Number(first)]);
    }
    if (Array.isArray(value)) return value.map(filled);
    return typeof value === "object" && value ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, filled(one)])) : value;
  };
  for (const [tool, args] of CALLS) {
    const signal = new AbortController().signal;
    answers.push(await handlers[tool](filled(args), { signal }).catch((thrown) => assert.fail(`${tool}: ${thrown.message}`)));
  }
  assert.deepEqual(new Set(CALLS.map(([tool]) => tool)), new Set(Object.keys(handlers)));
  assert.equal(new Set(CALLS.map(([tool]) => tool)).size, 67);
  const told = (tool) => answers[CALLS.findIndex(([name]) => name === tool)];
  assert.deepEqual(told("get_items").items.map(({ values }) => values), [
    { Plot: "a", Slenderness: 4, Height: 10, Girth: 40 }, { Plot: "b", Slenderness: 4.5, Height: 20, Girth: 90 },
  ]);
  assert.deepEqual([told("get_case_count").count, told("search_cases").total], [2, 2]);
  assert.equal(told("get_selection").count, 2, "the plot of the only selected stem is selected with it");
  assert.equal(told("create_graph").notes, undefined);
  assert.equal(told("unregisterForNotifications").notifications.length, 1);
  assert.deepEqual(document.contexts, []);
});
