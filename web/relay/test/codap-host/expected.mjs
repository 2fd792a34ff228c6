// What each tool asks of CODAP, written by hand from CODAP's documentation of its Data Interactive API
// (https://github.com/concord-consortium/codap/wiki/CODAP-Data-Interactive-Plugin-API), and what it returns when CODAP
// answers as codap-host/document.mjs does. Every tool of both sets stands here at least once.
import { CASES, COLLECTION, COMPONENTS, ITEMS, MAMMALS, SELECTION } from "./document.mjs";

const get = (resource) => ({ action: "get", resource });
const create = (resource, values) => ({ action: "create", resource, values });
const update = (resource, values) => ({ action: "update", resource, values });
const remove = (resource) => ({ action: "delete", resource });

const context = "dataContext[Mammals]";
const collection = `${context}.collection[Cases]`;
const whole = (name) => ({ dataContextName: "Mammals", ...(name && { collectionName: "Cases" }) });
const later = (name) => ({ dataContext: "Mammals", ...(name && { collection: "Cases" }) });

const attributes = [
  { id: 8, name: "Mammal", title: "Mammal" }, { id: 9, name: "Mass", title: "Mass" },
  { id: 10, name: "Latitude", title: "Latitude" }, { id: 11, name: "Longitude", title: "Longitude" },
];
const mass = { id: 9, name: "Mass", title: "Mass", type: "numeric", unit: "kg" };
const collections = [{ id: 52, name: "Diets", title: "Diets" }, COLLECTION];
const wholeAttributes = [
  { id: 8, name: "Mammal", title: "Mammal", type: "categorical" }, mass,
  { id: 10, name: "Latitude", title: "Latitude", type: "numeric" }, { id: 11, name: "Longitude", title: "Longitude", type: "numeric" },
];
const structure = { ...MAMMALS, collections: [{ ...COLLECTION, attrs: wholeAttributes }] };
const rows = [{ Mammal: "Jaguar", Mass: 115 }, { Mammal: "Asian Elephant", Mass: 5000 }];
const made = { itemIDs: [201, 202], caseIDs: [57, 58], count: 2 };
const changed = { updated: true, count: 1, notFound: [999], createdCases: [], deletedCases: [] };
const cut = ITEMS.map(({ id, values: { Mammal, Mass } }) => ({ id, values: { Mammal, Mass } }));
const graph = { component: { id: 31, type: "graph", title: "Mass by mammal" } };
const selection = { selection: SELECTION, count: 2 };
const frame = { position: { left: 10, top: 20 }, dimensions: { width: 300, height: 200 } };
const place = { position: { x: 10, y: 20 }, dimensions: { width: 300, height: 200 } };
const placeLater = { position: { x: 10, y: 20 }, width: 300, height: 200 };
const search = (operator, value, limit) => ({
  ...whole(true), searchCriteria: { attributeName: "Mammal", value, ...(operator && { operator }) }, ...(limit !== undefined && { limit }),
});
const found = (formula) => [get(`${collection}.caseFormulaSearch[${formula}]`)];

const data = [
  ["create_data_context", { name: "Birds", title: "Some birds", description: "Seen in May" },
    [create("dataContext", { name: "Birds", title: "Some birds", description: "Seen in May" })],
    { dataContext: { id: 4, name: "Birds", title: "Some birds" } }],
  ["createDataContext", { name: "Birds", title: "Some birds", collections: [{ name: "Birds", attrs: [{ name: "Wingspan", type: "numeric", unit: "cm" }] }] },
    [create("dataContext", { name: "Birds", title: "Some birds", collections: [{ name: "Birds", attrs: [{ name: "Wingspan", type: "numeric", unit: "cm" }] }] })],
    { dataContext: { id: 4, name: "Birds", title: "Some birds" } }],
  ["get_data_contexts", {}, [get("dataContextList")], { dataContexts: [MAMMALS], count: 1 }],
  ["getListOfDataContexts", {}, [get("dataContextList")], { dataContexts: [MAMMALS], count: 1 }],
  ["get_data_context", { name: "Mammals" }, [get(context)], { dataContext: structure }],
  ["getDataContext", { dataContext: "Mammals" }, [get(context)], { dataContext: structure }],
  ["update_data_context", { name: "Mammals", newName: "Beasts", description: "Old" },
    [update(context, { title: "Beasts", description: "Old", metadata: { description: "Old" } })],
    { updated: true, dataContext: { name: "Mammals", title: "Beasts", description: "Old" } }],
  ["delete_data_context", { name: "Mammals", confirmDelete: true }, [remove(context)], { deleted: true, dataContext: { name: "Mammals" } }],
  ["deleteDataContext", { dataContext: "Mammals" }, [remove(context)], { deleted: true, dataContext: { name: "Mammals" } }],

  ["create_collection", { ...whole(), collectionName: "Orders", parent: "_root_", attributes: [{ name: "Order", type: "categorical", description: "Taxon" }] },
    [create(`${context}.collection`, [{ name: "Orders", parent: "_root_", attrs: [{ name: "Order", type: "categorical", description: "Taxon" }] }])],
    { collection: { id: 35, name: "Orders" } }],
  ["createCollection", { dataContext: "Mammals", collection: { name: "Orders", title: "Taxa", parent: "_root_", attrs: [{ name: "Order" }] } },
    [create(`${context}.collection`, [{ name: "Orders", title: "Taxa", parent: "_root_", attrs: [{ name: "Order" }] }])],
    { collection: { id: 35, name: "Orders" } }],
  ["get_collections", whole(), [get(`${context}.collectionList`)], { collections, count: 2 }],
  ["getCollectionList", later(), [get(`${context}.collectionList`)], { collections, count: 2 }],
  ["get_collection", whole(true), [get(collection)], { collection: { ...COLLECTION, attrs: wholeAttributes } }],
  ["getCollection", later(true), [get(collection)], { collection: { ...COLLECTION, attrs: wholeAttributes } }],
  ["update_collection", { ...whole(true), title: "Animals" }, [update(collection, { title: "Animals" })],
    { updated: true, collection: { name: "Cases", title: "Animals" } }],
  ["delete_collection", { ...whole(true), confirmDelete: true }, [remove(collection)], { deleted: true, collection: { name: "Cases" } }],

  ["create_attribute", { ...whole(true), attributeName: "BMI", type: "numeric", formula: "Mass / Height ^ 2" },
    [create(`${collection}.attribute`, [{ name: "BMI", type: "numeric", formula: "Mass / Height ^ 2" }])],
    { attribute: { id: 60, name: "BMI", type: "numeric", formula: "Mass / Height ^ 2" } }],
  ["createAttribute", { ...later(true), attribute: { name: "Speed", unit: "km/h" } },
    [create(`${collection}.attribute`, [{ name: "Speed", unit: "km/h" }])], { attribute: { id: 60, name: "Speed", unit: "km/h" } }],
  ["get_attributes", whole(true), [get(`${collection}.attributeList`)], { attributes, count: 4 }],
  ["getAttributeList", later(true), [get(`${collection}.attributeList`)], { attributes, count: 4 }],
  ["get_attribute", { ...whole(true), attributeName: "Mass" }, [get(`${collection}.attribute[Mass]`)], { attribute: mass }],
  ["getAttribute", { ...later(true), attribute: "Mass" }, [get(`${collection}.attribute[Mass]`)], { attribute: mass }],
  ["update_attribute", { ...whole(true), attributeName: "Mass", newName: "Weight", description: "Alive" },
    [update(`${collection}.attribute[Mass]`, { name: "Weight", description: "Alive" })],
    { updated: true, attribute: { id: 9, name: "Weight", description: "Alive" } }],
  ["updateAttribute", { ...later(true), attribute: { name: "Mass", unit: "t" } }, [update(`${collection}.attribute[Mass]`, { unit: "t" })],
    { updated: true, attribute: { id: 9, name: "Mass", unit: "t" } }],
  ["delete_attribute", { ...whole(true), attributeName: "Mass", confirmDelete: true }, [remove(`${collection}.attribute[Mass]`)],
    { deleted: true, attribute: { name: "Mass" } }],
  ["deleteAttribute", { ...later(true), attribute: "Mass" }, [remove(`${collection}.attribute[Mass]`)], { deleted: true, attribute: { name: "Mass" } }],
  ["reorder_attributes", { ...whole(true), attributeName: "Mass", newPosition: 0 },
    [update(`${collection}.attributeLocation[Mass]`, { collection: "Cases", position: 0 })],
    { updated: true, attribute: { name: "Mass", collection: "Cases", position: 0 } }],
];

const values = [
  ["create_items", { ...whole(true), items: rows }, [get(context), create(`${context}.item`, rows)], made],
  ["createItems", { dataContext: "Mammals", items: rows }, [get(context), create(`${context}.item`, rows)], made],
  ["createItems", { ...later(true), items: [{ ...rows[0], Colour: "spotted" }, rows[1]] },
    [get(context), create(`${context}.item`, [{ ...rows[0], Colour: "spotted" }, rows[1]])], { ...made, unknownAttributes: ["Colour"] }],
  ["get_items", { ...whole(), limit: 2 }, [get(`${context}.itemSearch[*]`)], { items: ITEMS.slice(0, 2), count: 2, total: 3 }],
  ["getAllItems", later(), [get(`${context}.itemSearch[*]`)], { items: ITEMS, count: 3, total: 3 }],
  ["getAllItems", later(true), [get(`${collection}.attributeList`), get(`${context}.itemSearch[*]`)], { items: cut, count: 3, total: 3 }],
  ["get_item_by_id", { ...whole(), itemId: 102 }, [get(`${context}.itemByID[102]`)], { item: ITEMS[1] }],
  ["getItemByID", { ...later(), itemID: 102 }, [get(`${context}.itemByID[102]`)], { item: ITEMS[1] }],
  ["getItemByID", { ...later(true), itemID: 102 }, [get(`${collection}.attributeList`), get(`${context}.itemByID[102]`)], { item: cut[1] }],
  ["update_items", { ...whole(), updates: [{ id: 101, values: { Mass: 260 } }, { id: 999, values: { Mass: 1 } }] },
    [update(`${context}.item`, [{ id: 101, values: { Mass: 260 } }, { id: 999, values: { Mass: 1 } }])], changed],
  ["updateItems", { ...later(), items: [{ id: 101, Mass: 260 }, { id: 999, values: { Mass: 1 } }] },
    [update(`${context}.item`, [{ id: 101, values: { Mass: 260 } }, { id: 999, values: { Mass: 1 } }])], changed],
  ["delete_items", { ...whole(), itemIds: [101, "102"], confirmDelete: true },
    [remove(`${context}.itemByID[101]`), remove(`${context}.itemByID[102]`)], { deleted: true, itemIDs: [101, 102], count: 2 }],
  ["deleteItems", { ...later(true), items: [101, 102] },
    [get(collection), remove(`${context}.itemByID[101]`), remove(`${context}.itemByID[102]`)], { deleted: true, itemIDs: [101, 102], count: 2 }],
  ["get_case_count", whole(true), [get(`${collection}.caseCount`)], { count: 3 }],
  ["getItemCount", later(true), [get(`${collection}.caseCount`)], { count: 3 }],
  ["getItemCount", later(), [get(`${context}.itemCount`)], { count: 3 }],
  ["get_case_by_index", { ...whole(true), index: 1 }, [get(`${collection}.caseByIndex[1]`)], { case: CASES[1], index: 1 }],

  ["search_cases", search(undefined, "Lion"), found('`Mammal` = "Lion"'), { cases: CASES, count: 3, total: 3 }],
  ["search_cases", search("equals", 5), found("`Mammal` = 5"), { cases: CASES, count: 3, total: 3 }],
  ["search_cases", search("contains", "ion", 1), found('includes(`Mammal`, "ion")'), { cases: CASES.slice(0, 1), count: 1, total: 3 }],
  ["search_cases", search("startsWith", "Li", 0), found('beginsWith(`Mammal`, "Li")'), { cases: [], count: 0, total: 3 }],
  ["search_cases", search("endsWith", "ey"), found('endsWith(`Mammal`, "ey")'), { cases: CASES, count: 3, total: 3 }],
  ["search_cases", search("greaterThan", "1e3"), found("`Mammal` > 1000"), { cases: CASES, count: 3, total: 3 }],
  ["search_cases", search("lessThan", -0.5), found("`Mammal` < -0.5"), { cases: CASES, count: 3, total: 3 }],
  ["search_cases", search("equals", 'a"] b\\ `c` [d'), found('`Mammal` = "a\\"\\u005d b\\\\ \\u0060c\\u0060 \\u005bd"'), { cases: CASES, count: 3, total: 3 }],

  ["get_selection", whole(), [get(`${context}.selectionList`)], selection],
  ["getSelectedItems", later(), [get(`${context}.selectionList`)], selection],
  ["getSelectedItems", later(true), [get(collection), get(`${context}.selectionList`)], { selection: SELECTION.slice(0, 1), count: 1 }],
  ["select_cases", { ...whole(), caseIds: [13, "53"] }, [create(`${context}.selectionList`, [13, 53]), get(`${context}.selectionList`)], selection],
  ["select_cases", { ...whole(), caseIds: [13], extend: true }, [update(`${context}.selectionList`, [13]), get(`${context}.selectionList`)], selection],
  ["selectItems", { ...later(), items: [13, 53] }, [create(`${context}.selectionList`, [13, 53]), get(`${context}.selectionList`)], selection],
  ["selectItems", { ...later(), items: [13], extend: true }, [update(`${context}.selectionList`, [13]), get(`${context}.selectionList`)], selection],
  ["clear_selection", whole(), [create(`${context}.selectionList`, [])], { selection: [], count: 0 }],
  ["deselectAll", later(), [create(`${context}.selectionList`, [])], { selection: [], count: 0 }],
];

const shown = [
  ["create_table", { ...whole(), title: "All", ...place }, [create("component", { type: "caseTable", dataContext: "Mammals", title: "All", ...frame })],
    { component: { id: 31, type: "caseTable", title: "All" } }],
  ["createTable", { ...later(), title: "All", ...placeLater }, [create("component", { type: "caseTable", dataContext: "Mammals", title: "All", ...frame })],
    { component: { id: 31, type: "caseTable", title: "All" } }],
  ["create_graph", { ...whole(), title: "Mass by mammal", xAttribute: "Mammal", yAttribute: "Mass", ...place },
    [get(context), create("component", { type: "graph", dataContext: "Mammals", xAttributeName: "Mammal", yAttributeName: "Mass", title: "Mass by mammal", ...frame })], graph],
  ["create_graph", { ...whole(), title: "Mass by mammal", xAttribute: "Mass", graphType: "linePlot" },
    [get(context), create("component", { type: "graph", dataContext: "Mammals", xAttributeName: "Mass", title: "Mass by mammal" }), update("component[31]", { showConnectingLines: true })], graph],
  ["create_graph", { ...whole(), title: "Mass by mammal", xAttribute: "Mass", graphType: "histogram" },
    [get(context), create("component", { type: "graph", dataContext: "Mammals", xAttributeName: "Mass", title: "Mass by mammal" }), update("component[31]", { pointsAreFusedIntoBars: true })], graph],
  ["create_graph", { ...whole(), title: "Mass by mammal", xAttribute: "Mass", graphType: "boxPlot" },
    [get(context), create("component", { type: "graph", dataContext: "Mammals", xAttributeName: "Mass", title: "Mass by mammal" }), create("component[31].adornment", { type: "Box Plot" })],
    { ...graph, notes: ["The graph was made, but not as a boxPlot: The Box Plot adornment does not currently support create requests."] }],
  ["createGraph", { ...later(), title: "Mass by mammal", xAttributeName: "Mammal", yAttributeName: "Mass", legendAttributeName: "Mammal", ...placeLater },
    [get(context), create("component", { type: "graph", dataContext: "Mammals", xAttributeName: "Mammal", yAttributeName: "Mass", legendAttributeName: "Mammal", title: "Mass by mammal", ...frame })], graph],
  ["create_map", { ...whole(), title: "Where", latitudeAttribute: "Latitude", longitudeAttribute: "Longitude" },
    [get(context), create("component", { type: "map", dataContext: "Mammals", title: "Where" })], { component: { id: 31, type: "map", title: "Where" } }],
  ["createSlider", { title: "Speed", name: "v1", min: 0, max: 10, step: 0.5, value: 5, position: { x: 1, y: 2 } },
    [create("global", { name: "v1", value: 5 }),
      create("component", { type: "slider", title: "Speed", globalValueName: "v1", lowerBound: 0, upperBound: 10, multipleOf: 0.5, position: { left: 1, top: 2 } })],
    { component: { id: 31, type: "slider", title: "Speed" } }],
  ["createCalculator", { title: "Sums" }, [get("componentList"), create("component", { type: "calculator", title: "Sums" })],
    { component: { id: 31, type: "calculator", title: "Sums" } }],
  ["createText", { title: "Note", text: "Look here" }, [create("component", { type: "text", title: "Note", text: "Look here" })],
    { component: { id: 31, type: "text", title: "Note" } }],
  ["createWebView", { title: "Page", URL: "https://example.org/a" },
    [create("component", { type: "webView", title: "Page", URL: "https://example.org/a", dimensions: { width: 480, height: 360 } })],
    { component: { id: 31, type: "webView", title: "Page" } }],
  ["get_components", {}, [get("componentList")], { components: COMPONENTS, count: 3 }],
  ["getAllComponents", {}, [get("componentList")], { components: COMPONENTS, count: 3 }],
  ["getComponent", { component: 22 }, [get("component[22]")], { component: { ...COMPONENTS[1], ...frame } }],
  ["update_component", { componentId: 22, title: "Rows", position: { x: 5 }, dimensions: { height: 90 } },
    [update("component[22]", { title: "Rows", position: { left: 5 }, dimensions: { height: 90 } })],
    { updated: true, component: { id: 22, title: "Rows", position: { left: 5 }, dimensions: { height: 90 } } }],
  ["updateComponent", { component: 22, title: "Rows", ...place }, [update("component[22]", { title: "Rows", ...frame })],
    { updated: true, component: { id: 22, title: "Rows", ...frame } }],
  ["delete_component", { componentId: "22", confirmDelete: true }, [remove("component[22]")], { deleted: true, component: { id: 22 } }],
  ["deleteComponent", { component: 22 }, [remove("component[22]")], { deleted: true, component: { id: 22 } }],
];

const plugin = [
  ["initializePlugin", { name: "helper", title: "Helper", version: "2.0" },
    [update("interactiveFrame", { name: "helper", title: "Helper", version: "2.0" }), get("interactiveFrame")],
    { interactiveFrame: { id: 21, name: "Relay", title: "Relay", version: "1.0", dimensions: { width: 380, height: 400 }, codapVersion: "3.0.0", lang: "en" } }],
  // CODAP has no request for most of its notices: it sends them to every plugin. Asking for the data set shows that there is one.
  ["registerForNotifications", { request: "dataContextChangeNotice[Mammals]", callback: "mine" }, [get(context)],
    { registered: true, request: "dataContextChangeNotice[Mammals]", callback: "mine", notifications: [], dropped: 0 }],
  ["unregisterForNotifications", { request: "dataContextChangeNotice[Mammals]" }, [],
    { registered: false, request: "dataContextChangeNotice[Mammals]", callback: "mine", notifications: [], dropped: 0 }],
  ["registerForNotifications", { request: "document" }, [update("interactiveFrame", { subscribeToDocuments: true })],
    { registered: true, request: "document", notifications: [], dropped: 0 }],
  ["unregisterForNotifications", { request: "document" }, [update("interactiveFrame", { subscribeToDocuments: false })],
    { registered: false, request: "document", notifications: [], dropped: 0 }],
];

/** Calls in order: the tool, its arguments, the requests that CODAP gets, and the result. */
export const EXPECTED = [...data, ...values, ...shown, ...plugin].map(([tool, args, requests, result]) => ({ tool, args, requests, result }));
