// The tools of CODAP against a CODAP that answers as its documentation says.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { answer, SELECTION } from "./codap-host/document.mjs";
import { EXPECTED } from "./codap-host/expected.mjs";
import { load, root } from "./packages.mjs";

const { toolHandlers } = await load("src/codap/tools/index.ts");
const file = (name) => JSON.parse(readFileSync(join(root, "crates/relay/assets", name), "utf8"));
const [document, later] = [file("tools-document.json"), file("tools-later.json")];
const listed = [...document, ...later];

/** Handlers that write down what they ask. */
function recorded(ask = answer, listen) {
  const requests = [];
  const handlers = toolHandlers(async (request) => {
    requests.push(structuredClone(request));
    return structuredClone(ask(request));
  }, listen);
  const call = (tool, args, signal = new AbortController().signal) => handlers[tool](args, { signal });
  return { requests, handlers, call };
}

const refused = (type, message, argument) => (thrown) => {
  assert.equal(thrown.type, type);
  if (message instanceof RegExp) assert.match(thrown.message, message);
  else assert.equal(thrown.message, message);
  if (argument) assert.equal(thrown.details.argument, argument);
  return true;
};

describe("the lists of tools", () => {
  test("co_15, co_16: 33 and 34 tools with the names and schemas of the earlier system", () => {
    const shape = (tools) => JSON.stringify(tools.map(({ name, inputSchema }) => ({ name, inputSchema })));
    const hash = (tools) => createHash("sha256").update(shape(tools)).digest("hex").slice(0, 16);
    assert.deepEqual([document.length, later.length], [33, 34]);
    assert.deepEqual([hash(document), hash(later)], ["2f6d7a23e2e4fb09", "28e1d8535170c195"], "names and schemas are fixed: clients know them");
    const origin = join(root, "../shared/data/codap-tools.json");
    if (!existsSync(origin)) return;
    const { snake_case_33, camelCase_34 } = JSON.parse(readFileSync(origin, "utf8"));
    assert.deepEqual(document.map(({ name, inputSchema }) => ({ name, inputSchema })), snake_case_33.map(({ name, inputSchema }) => ({ name, inputSchema })));
    assert.deepEqual(later.map(({ name, inputSchema }) => ({ name, inputSchema })), camelCase_34.map(({ name, inputSchema }) => ({ name, inputSchema })));
  });

  test("every tool has a title, a description and hints", () => {
    for (const { name, title, description, annotations, ...rest } of listed) {
      assert.ok(title && description.length > 60 && description.length < 700, name);
      assert.deepEqual(Object.keys(rest), ["inputSchema"], name);
      assert.deepEqual(Object.keys(annotations), ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"], name);
      assert.ok(!annotations.readOnlyHint || (annotations.idempotentHint && !annotations.destructiveHint), name);
      assert.equal(annotations.destructiveHint, /^(delete|update_(items|attribute)|update(Items|Attribute))/.test(name), name);
    }
  });

  test("c_21: every listed tool has a handler and every handler is listed", () => {
    assert.deepEqual(Object.keys(recorded().handlers).sort(), listed.map(({ name }) => name).sort());
  });

  test("what is called read-only asks CODAP only to get", () => {
    const readOnly = new Set(listed.filter(({ annotations }) => annotations.readOnlyHint).map(({ name }) => name));
    for (const { tool, requests } of EXPECTED.filter(({ tool }) => readOnly.has(tool))) {
      assert.ok(requests.every(({ action }) => action === "get"), tool);
    }
  });
});

describe("requests and results", () => {
  test("the table of expected requests has every tool", () => {
    assert.deepEqual([...new Set(EXPECTED.map(({ tool }) => tool))].sort(), listed.map(({ name }) => name).sort());
  });

  const { requests, call } = recorded(answer, () => () => {});
  for (const { tool, args, requests: wanted, result } of EXPECTED) {
    test(`${tool} ${JSON.stringify(args).slice(0, 90)}`, async () => {
      requests.length = 0;
      assert.deepEqual(await call(tool, args), result);
      assert.deepEqual(requests, wanted);
    });
  }
});

describe("arguments", () => {
  const bad = [
    ["create_data_context", {}, "name", "name is missing"],
    ["create_data_context", { name: 5 }, "name", "name must be a string, and is the number 5"],
    ["create_data_context", { name: "  " }, "name", "name must not be empty"],
    ["create_data_context", [], "arguments", "arguments must be an object, and is a list"],
    ["createDataContext", { name: "A" }, "collections", "collections is missing"],
    ["createDataContext", { name: "A", collections: [{ name: "B", attrs: [{}] }] }, "collections[0].attrs[0].name", "collections[0].attrs[0].name is missing"],
    ["get_collections", {}, "dataContextName", "dataContextName is missing"],
    ["get_attributes", {}, "dataContextName", "dataContextName is missing"],
    ["getAttributeList", {}, "dataContext", "dataContext is missing"],
    ["create_items", { dataContextName: "Mammals", collectionName: "Cases", items: [] }, "items", "items must not be empty"],
    ["create_items", { dataContextName: "Mammals", collectionName: "Cases", items: [1] }, "items[0]", "items[0] must be an object, and is the number 1"],
    ["get_items", { dataContextName: "Mammals", limit: -1 }, "limit", "limit must be at least 0, and is -1"],
    ["get_case_by_index", { dataContextName: "Mammals", collectionName: "Cases", index: 1.5 }, "index", "index must be a whole number, and is 1.5"],
    ["update_items", { dataContextName: "Mammals", updates: [{ id: 1 }] }, "updates[0].values", "updates[0].values is missing"],
    ["updateItems", { dataContext: "Mammals", items: [{ id: 1 }] }, "items[0].id", "items[0].id has no values beside it to write"],
    ["delete_items", { dataContextName: "Mammals", itemIds: [{}], confirmDelete: true }, "itemIds[0]", /must be an id/],
    ["search_cases", { dataContextName: "Mammals", collectionName: "Cases", searchCriteria: { attributeName: "Mass", value: 1, operator: "like" } },
      "searchCriteria.operator", /must be one of equals, contains, .* and is the string "like"/],
    ["search_cases", { dataContextName: "Mammals", collectionName: "Cases", searchCriteria: { attributeName: "Mass", value: {} } }, "searchCriteria.value", /a string or a number/],
    ["create_attribute", { dataContextName: "Mammals", collectionName: "Cases", attributeName: "A", type: "colour" }, "type", /must be one of numeric/],
    ["create_attribute", { dataContextName: "Mammals", collectionName: "Cases", attributeName: "A" }, "type", "type is missing"],
    ["update_attribute", { dataContextName: "Mammals", collectionName: "Cases", attributeName: "A" }, "arguments", /something to change/],
    ["update_data_context", { name: "Mammals", newName: "A", title: "B" }, "newName", /CODAP keeps the name/],
    ["update_component", { componentId: 22 }, "arguments", /something to change/],
    ["update_component", { componentId: 22, dimensions: { width: 0 } }, "dimensions.width", /greater than 0/],
    ["create_graph", { dataContextName: "Mammals", graphType: "histogram" }, "xAttribute", /is needed for a histogram/],
    ["create_graph", { dataContextName: "Mammals", xAttribute: "Weight" }, "xAttribute", 'xAttribute is no attribute of Mammals: "Weight"; there are Mammal, Mass, Latitude, Longitude'],
    ["createGraph", { dataContext: "Mammals", legendAttributeName: "Weight" }, "legendAttributeName", /no attribute of Mammals/],
    ["create_map", { dataContextName: "Mammals", latitudeAttribute: "Breite" }, "latitudeAttribute", /no attribute of Mammals/],
    ["createSlider", { title: "A", name: "a", min: 3, max: 3 }, "max", /greater than min/],
    ["createSlider", { title: "A", name: "a", min: 0, max: 3, value: 4 }, "value", /between min and max/],
    ["createWebView", { URL: "javascript:alert(1)" }, "URL", /http or https/],
    ["createWebView", { URL: "/relative" }, "URL", /http or https/],
    ["registerForNotifications", { request: "anything" }, "request", /must be dataContextChangeNotice/],
    ["unregisterForNotifications", { request: "component" }, "request", /is not registered/],
  ];
  for (const [tool, args, argument, message] of bad) {
    test(`${tool}: ${argument}`, async () => {
      const { call, requests } = recorded(answer, () => () => {});
      await assert.rejects(call(tool, args), refused("invalid_args", message, argument));
      assert.ok(requests.every(({ action }) => action === "get"), "nothing was changed");
    });
  }

  test("deleting wants to be confirmed, and asks nothing before that", async () => {
    for (const { name } of document.filter(({ name }) => name.startsWith("delete_"))) {
      const { args } = EXPECTED.find(({ tool }) => tool === name);
      for (const confirmDelete of [false, undefined]) {
        const { call, requests } = recorded();
        await assert.rejects(call(name, { ...args, confirmDelete }), refused("invalid_args", /confirmDelete must be true/, "confirmDelete"));
        assert.deepEqual(requests, []);
      }
    }
  });

  test("an optional argument that is null is absent", async () => {
    const { call, requests } = recorded();
    await call("create_data_context", { name: "Birds", title: null, description: null });
    assert.deepEqual(requests, [{ action: "create", resource: "dataContext", values: { name: "Birds" } }]);
  });

  test("a member of every object's prototype is no argument", async () => {
    await assert.rejects(recorded().call("get_data_context", JSON.parse('{"__proto__": {"name": "Mammals"}}')), refused("invalid_args", "name is missing"));
  });
});

describe("names and values cannot break out of a selector", () => {
  test("a name with a closing bracket is refused wherever it goes into a selector", async () => {
    const hostile = "x].collection[Cases";
    for (const { tool, args } of EXPECTED) {
      for (const [name, value] of Object.entries(args)) {
        if (value !== "Mammals" && value !== "Cases" && !/^(attributeName|attribute|itemId|componentId)$/.test(name)) continue;
        // The collection of new items is looked up, and goes into no selector.
        if (/^create_?[iI]tems$/.test(tool) && /^collection/.test(name)) continue;
        if (typeof value === "object" || (tool.startsWith("create") && /^(name|collectionName|attributeName)$/.test(name) && value !== "Mammals" && value !== "Cases")) continue;
        const { call, requests } = recorded(answer, () => () => {});
        await assert.rejects(call(tool, { ...args, [name]: hostile }), refused("invalid_args", /must not contain "\]"/, name), `${tool}.${name}`);
        assert.ok(requests.every(({ resource }) => !resource.includes(hostile)), `${tool}.${name}`);
      }
    }
  });

  test("a search holds whatever is searched for", async () => {
    for (const value of ['"', "\\", "]", "[", "`", "\n", "\u2028", '" or true or "', "\\\"]", "`Mass`", "x].caseCount", "${a}", "\\u005d"]) {
      for (const operator of ["equals", "contains", "startsWith", "endsWith", "greaterThan"]) {
        const { call, requests } = recorded();
        await call("search_cases", { dataContextName: "Mammals", collectionName: "Cases", searchCriteria: { attributeName: "Mass", value, operator } });
        const [, formula] = /^dataContext\[Mammals\]\.collection\[Cases\]\.caseFormulaSearch\[([^\]]+)\]$/.exec(requests[0].resource);
        const [, literal] = /^(?:`Mass` [=>] |(?:includes|beginsWith|endsWith)\(`Mass`, )("(?:[^"\\`]|\\.)*")\)?$/.exec(formula);
        // The formula language reads strings as JSON does.
        assert.equal(JSON.parse(literal), value);
      }
    }
  });

  test("an attribute of any name is one name in the formula", async () => {
    const { call, requests } = recorded();
    await call("search_cases", { dataContextName: "Mammals", collectionName: "Cases", searchCriteria: { attributeName: "Life` span\\", value: 1 } });
    assert.equal(requests[0].resource, "dataContext[Mammals].collection[Cases].caseFormulaSearch[`Life\\` span\\\\` = 1]");
    const searchCriteria = { attributeName: "Height [cm]", value: 1 };
    await assert.rejects(call("search_cases", { dataContextName: "Mammals", collectionName: "Cases", searchCriteria }), refused("invalid_args", /"\]"/, "searchCriteria.attributeName"));
  });
});

describe("what CODAP refuses", () => {
  test("its own words are the message", async () => {
    await assert.rejects(recorded().call("get_data_context", { name: "Nothing" }), refused("codap_error", "DataContext not found"));
    await assert.rejects(recorded().call("get_item_by_id", { dataContextName: "Mammals", itemId: 5 }), refused("codap_error", "Item not found"));
    const args = { dataContextName: "Mammals", updates: [{ id: 1, values: { Mass: 1 } }] };
    await assert.rejects(recorded().call("update_items", args), refused("codap_error", "CODAP refused to update dataContext[Mammals].item and gave no reason"));
  });

  test("a collection that does not exist ends the call before anything is written", async () => {
    const there = { dataContextName: "Mammals", collectionName: "Nowhere", items: [{ Mass: 1 }] };
    const { call, requests } = recorded();
    await assert.rejects(call("create_items", there), refused("invalid_args", 'collectionName is no collection of Mammals: "Nowhere"; there are Cases', "collectionName"));
    await assert.rejects(call("deleteItems", { dataContext: "Mammals", collection: "Nowhere", items: [101] }), refused("codap_error", "Collection not found"));
    assert.deepEqual(requests.map(({ action }) => action), ["get", "get"]);
  });

  test("an attribute that CODAP writes otherwise is known", async () => {
    const values = { name: "A", collections: [{ name: "B", attrs: [{ name: "Life_Span" }] }] };
    const { call } = recorded(({ action }) => ({ success: true, values: action === "get" ? values : undefined, itemIDs: [1], caseIDs: [2] }));
    const added = await call("createItems", { dataContext: "A", items: [{ "Life Span": 3, Colour: "red", colour: "" }] });
    assert.deepEqual(added, { itemIDs: [1], caseIDs: [2], count: 1, unknownAttributes: ["Colour", "colour"] });
  });

  test("a CODAP that does not answer, or answers nonsense", async () => {
    const silent = toolHandlers(async () => { throw new Error("no answer within 60000 ms"); });
    const context = { signal: new AbortController().signal };
    await assert.rejects(silent.get_data_contexts({}, context), refused("codap_error", "CODAP did not answer: no answer within 60000 ms"));
    const odd = toolHandlers(async () => undefined);
    await assert.rejects(odd.get_data_contexts({}, context), refused("codap_error", "CODAP's answer is no object"));
    const empty = toolHandlers(async () => ({ success: true }));
    assert.deepEqual(await empty.get_items({ dataContextName: "A" }, context), { items: [], count: 0, total: 0 });
    assert.deepEqual(await empty.create_table({ dataContextName: "A", title: "T" }, context), { component: { type: "caseTable", title: "T" } });
  });

  test("of several items, those that could be deleted are told", async () => {
    const { call } = recorded();
    await assert.rejects(call("delete_items", { dataContextName: "Mammals", itemIds: [101, 5, 103], confirmDelete: true }), (thrown) => {
      assert.equal(thrown.type, "codap_error");
      assert.equal(thrown.message, "1 of 3 items could not be deleted; item 5: Item not found");
      assert.deepEqual(thrown.details, { deleted: [101, 103], failed: [{ id: 5, message: "Item not found" }] });
      return true;
    });
  });

  test("a call that is cancelled asks no more", async () => {
    const controller = new AbortController();
    const { call, requests } = recorded((request) => (controller.abort(), answer(request)));
    await assert.rejects(call("delete_items", { dataContextName: "Mammals", itemIds: [101, 102], confirmDelete: true }, controller.signal), refused("execution_error", /cancelled/));
    assert.equal(requests.length, 1);
  });
});

describe("components", () => {
  test("a calculator that is shown is not hidden by creating it", async () => {
    const shown = { id: 40, type: "calculator", hidden: false };
    const { call, requests } = recorded(() => ({ success: true, values: [shown] }));
    assert.deepEqual(await call("createCalculator", {}), { component: shown });
    assert.equal(requests.length, 1);
  });

  test("a graph is told the name of the data set, whatever it was called by", async () => {
    for (const dataContext of ["Mammals of the world", "2"]) {
      const { call, requests } = recorded();
      await call("createGraph", { dataContext, xAttributeName: "Mass" });
      assert.deepEqual(requests[1].values, { type: "graph", dataContext: "Mammals", xAttributeName: "Mass" });
    }
  });

  test("a map says when its coordinates have names that CODAP does not recognise", async () => {
    const values = { collections: [{ attrs: [{ name: "Breite" }, { name: "lng" }] }] };
    const { call } = recorded(({ action }) => ({ success: true, values: action === "get" ? values : { id: 1, type: "map" } }));
    const { notes } = await call("create_map", { dataContextName: "Mammals", latitudeAttribute: "Breite", longitudeAttribute: "lng" });
    assert.equal(notes.length, 1);
    assert.match(notes[0], /Breite \(latitudeAttribute\) may have to be renamed/);
  });
});

describe("notifications", () => {
  test("are kept until they are fetched, and dropped from the front", async () => {
    const listeners = new Map();
    const { call, requests } = recorded(answer, (resource, listener) => (listeners.set(resource, listener), () => listeners.delete(resource)));
    const request = "dataContextChangeNotice[Mammals]";
    await call("registerForNotifications", { request });
    const notice = (number) => ({ resource: request, values: { operation: "selectCases", number } });
    for (let number = 0; number < 103; number += 1) listeners.get(request)(notice(number));
    const { notifications, dropped } = await call("registerForNotifications", { request });
    assert.deepEqual([notifications.length, notifications[0], dropped], [100, notice(3), 3]);
    listeners.get(request)(notice(200));
    assert.deepEqual((await call("unregisterForNotifications", { request })).notifications, [notice(200)]);
    assert.deepEqual([listeners.size, requests.length], [0, 1]);
  });

  test("there is a bound on what is listened to, and none without a listener", async () => {
    const { call } = recorded(() => ({ success: true, values: SELECTION }), () => () => {});
    for (let number = 0; number < 50; number += 1) await call("registerForNotifications", { request: `component[${number}]` });
    await assert.rejects(call("registerForNotifications", { request: "component" }), refused("invalid_args", /one too many/));
    await assert.rejects(recorded().call("registerForNotifications", { request: "component" }), refused("execution_error", "this page gets no notifications"));
  });
});
