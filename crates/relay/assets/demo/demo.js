// src/demo/page.ts
import { connect } from "../worker.js";

// src/worker/toolError.ts
var ToolError = class extends Error {
  constructor(type, message, details) {
    super(message);
    this.type = type;
    this.details = details;
    this.name = "ToolError";
  }
  type;
  details;
};

// src/codap/tools/arguments.ts
function kind(value) {
  if (value === null) return "null";
  return Array.isArray(value) ? "a list" : typeof value === "object" ? "an object" : `the ${typeof value} ${JSON.stringify(value)}`;
}
var Arguments = class _Arguments {
  #members;
  #path;
  constructor(value, path = "") {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw wrong(path || "arguments", `must be an object, and is ${kind(value)}`);
    }
    this.#members = value;
    this.#path = path;
  }
  /** The members as they came. */
  get members() {
    return this.#members;
  }
  /** Where the member stands, as errors name it. */
  at(name) {
    return this.#path ? `${this.#path}.${name}` : name;
  }
  #read(name) {
    const value = Object.hasOwn(this.#members, name) ? this.#members[name] : void 0;
    return value === null ? void 0 : value;
  }
  #required(name, value) {
    if (value === void 0) throw wrong(this.at(name), "is missing");
    return value;
  }
  optionalText(name) {
    const value = this.#read(name);
    if (value !== void 0 && typeof value !== "string") throw wrong(this.at(name), `must be a string, and is ${kind(value)}`);
    return value;
  }
  text(name) {
    const value = this.#required(name, this.optionalText(name));
    if (value.trim() === "") throw wrong(this.at(name), "must not be empty");
    return value;
  }
  oneOf(name, values) {
    const value = this.optionalText(name);
    if (value === void 0) return void 0;
    const found = values.find((one) => one === value);
    if (found === void 0) throw wrong(this.at(name), `must be one of ${values.join(", ")}, and is ${kind(value)}`);
    return found;
  }
  optionalNumber(name, range2 = {}) {
    const value = this.#read(name);
    if (value === void 0) return void 0;
    if (typeof value !== "number" || !Number.isFinite(value)) throw wrong(this.at(name), `must be a number, and is ${kind(value)}`);
    if (range2.whole && !Number.isInteger(value)) throw wrong(this.at(name), `must be a whole number, and is ${value}`);
    if (range2.min !== void 0 && value < range2.min) throw wrong(this.at(name), `must be at least ${range2.min}, and is ${value}`);
    if (range2.over !== void 0 && value <= range2.over) throw wrong(this.at(name), `must be greater than ${range2.over}, and is ${value}`);
    return value;
  }
  number(name, range2 = {}) {
    return this.#required(name, this.optionalNumber(name, range2));
  }
  flag(name) {
    const value = this.#read(name) ?? false;
    if (typeof value !== "boolean") throw wrong(this.at(name), `must be true or false, and is ${kind(value)}`);
    return value;
  }
  /** Deleting has to be confirmed. */
  confirmed() {
    if (!this.flag("confirmDelete")) throw wrong(this.at("confirmDelete"), "must be true: what is deleted is gone");
  }
  id(name) {
    return id(this.#required(name, this.#read(name)), this.at(name));
  }
  ids(name) {
    return this.list(name).map((one, index) => id(one, `${this.at(name)}[${index}]`));
  }
  list(name) {
    return this.#required(name, this.optionalList(name));
  }
  optionalList(name) {
    const value = this.#read(name);
    if (value !== void 0 && !Array.isArray(value)) throw wrong(this.at(name), `must be a list, and is ${kind(value)}`);
    return value;
  }
  /** A list that must hold something. */
  filled(name) {
    const value = this.list(name);
    if (value.length === 0) throw wrong(this.at(name), "must not be empty");
    return value;
  }
  objects(name) {
    return this.filled(name).map((one, index) => new _Arguments(one, `${this.at(name)}[${index}]`));
  }
  optionalObjects(name) {
    return this.optionalList(name)?.map((one, index) => new _Arguments(one, `${this.at(name)}[${index}]`));
  }
  object(name) {
    return this.#required(name, this.optionalObject(name));
  }
  optionalObject(name) {
    const value = this.#read(name);
    return value === void 0 ? void 0 : new _Arguments(value, this.at(name));
  }
  /** A value to search for or to write. */
  value(name) {
    const value = this.#required(name, this.#read(name));
    if (typeof value === "string" || typeof value === "number" && Number.isFinite(value)) return value;
    throw wrong(this.at(name), `must be a string or a number, and is ${kind(value)}`);
  }
};
function id(value, path) {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (typeof value !== "string" || value === "") throw wrong(path, `must be an id (a string or a number), and is ${kind(value)}`);
  return /^\d{1,15}$/.test(value) ? Number(value) : value;
}
function wrong(argument, problem) {
  return new ToolError("invalid_args", `${argument} ${problem}`, { argument });
}
function present(members) {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== void 0));
}

// src/codap/tools/attributeDefinition.ts
var TYPES = ["numeric", "categorical", "date", "boundary", "qualitative"];
function attributeProperties(args) {
  return present({
    type: args.oneOf("type", TYPES),
    description: args.optionalText("description"),
    unit: args.optionalText("unit"),
    formula: args.optionalText("formula")
  });
}
function attributeDefinition(args) {
  return { name: args.text("name"), ...attributeProperties(args) };
}
function attributes(args, name) {
  return args.optionalObjects(name)?.map(attributeDefinition);
}
function answered(values, definition) {
  if (typeof values !== "object" || values === null) return definition;
  const { attrs } = values;
  return Array.isArray(attrs) ? attrs[0] ?? definition : values;
}

// src/codap/tools/resource.ts
function selected(key, name, argument) {
  const text3 = String(name);
  if (text3.includes("]")) {
    throw wrong(argument, `must not contain "]", which ends a name in CODAP's selectors; give the numeric id instead`);
  }
  return `${key}[${text3}]`;
}
var ContextResource = class {
  constructor(name, argument) {
    this.name = name;
    this.path = selected("dataContext", name, argument);
  }
  name;
  path;
  /** A resource of the data context: `dataContext[Mammals].collectionList`. */
  of(key) {
    return `${this.path}.${key}`;
  }
  itemById(id2, argument) {
    return this.of(selected("itemByID", id2, argument));
  }
  collection(name, argument) {
    return new CollectionResource(this, name, argument);
  }
};
var CollectionResource = class {
  constructor(context, name, argument) {
    this.context = context;
    this.name = name;
    this.path = context.of(selected("collection", name, argument));
  }
  context;
  name;
  path;
  of(key) {
    return `${this.path}.${key}`;
  }
  attribute(name, argument) {
    return this.of(selected("attribute", name, argument));
  }
  attributeLocation(name, argument) {
    return this.of(selected("attributeLocation", name, argument));
  }
};

// src/codap/tools/contexts.ts
function contextOf(args, argument) {
  return new ContextResource(args.text(argument), args.at(argument));
}
async function structureOf(context, codap) {
  const { values } = await codap.get(context.path);
  const collections2 = Array.isArray(values?.collections) ? values.collections : void 0;
  const attributes2 = collections2?.flatMap(({ attrs = [] }) => attrs.map(({ name }) => name));
  return { name: typeof values?.name === "string" ? values.name : context.name, collections: collections2, attributes: attributes2 };
}
function collectionDefinition(args) {
  return present({
    name: args.text("name"),
    title: args.optionalText("title"),
    description: args.optionalText("description"),
    attrs: attributes(args, "attrs")
  });
}
async function create(args, codap, collections2) {
  const values = present({
    name: args.text("name"),
    title: args.optionalText("title"),
    description: args.optionalText("description"),
    collections: collections2
  });
  const { values: made } = await codap.create("dataContext", values);
  return { dataContext: made ?? { name: values.name } };
}
async function list(codap) {
  const dataContexts2 = await codap.list("dataContextList");
  return { dataContexts: dataContexts2, count: dataContexts2.length };
}
async function read(context, codap) {
  const { values } = await codap.get(context.path);
  return { dataContext: values };
}
async function update(args, codap) {
  const context = contextOf(args, "name");
  const description = args.optionalText("description");
  const title = newTitle(args);
  if (title === void 0 && description === void 0) throw wrong("arguments", "must hold something to change: newName, title or description");
  const metadata = description === void 0 ? void 0 : { description };
  await codap.update(context.path, present({ title, description, metadata }));
  return { updated: true, dataContext: present({ name: context.name, title, description }) };
}
function newTitle(args) {
  const newName = args.optionalText("newName");
  const title = args.optionalText("title");
  if (newName !== void 0 && title !== void 0 && newName !== title) {
    throw wrong("newName", "cannot differ from title: CODAP keeps the name that it was created with and shows the title");
  }
  return title ?? newName;
}
async function remove(context, codap) {
  await codap.delete(context.path);
  return { deleted: true, dataContext: { name: context.name } };
}
var contextTools = {
  create_data_context: (args, codap) => create(args, codap),
  get_data_contexts: (_, codap) => list(codap),
  get_data_context: (args, codap) => read(contextOf(args, "name"), codap),
  update_data_context: update,
  delete_data_context: async (args, codap) => {
    args.confirmed();
    return remove(contextOf(args, "name"), codap);
  },
  createDataContext: (args, codap) => {
    args.list("collections");
    const collections2 = args.optionalObjects("collections") ?? [];
    return create(args, codap, collections2.length > 0 ? collections2.map(collectionDefinition) : void 0);
  },
  getListOfDataContexts: (_, codap) => list(codap),
  getDataContext: (args, codap) => read(contextOf(args, "dataContext"), codap),
  deleteDataContext: (args, codap) => remove(contextOf(args, "dataContext"), codap)
};

// src/codap/tools/collections.ts
var DOCUMENT = { context: "dataContextName", collection: "collectionName" };
var LATER = { context: "dataContext", collection: "collection" };
function collectionOf(args, { context, collection: collection2 }) {
  return contextOf(args, context).collection(args.text(collection2), args.at(collection2));
}
async function knownCollection(args, argument, context, codap) {
  const name = args.optionalText(argument);
  if (name === void 0) return void 0;
  const { values } = await codap.get(context.collection(args.text(argument), args.at(argument)).path);
  return values ?? { name };
}
async function create2(context, collection2, codap) {
  const { values } = await codap.create(context.of("collection"), [collection2]);
  const [made] = Array.isArray(values) ? values : [values];
  return { collection: made ?? { name: collection2.name } };
}
async function list2(context, codap) {
  const collections2 = await codap.list(context.of("collectionList"));
  return { collections: collections2, count: collections2.length };
}
async function read2(collection2, codap) {
  const { values } = await codap.get(collection2.path);
  return { collection: values };
}
async function update2(args, codap) {
  const collection2 = collectionOf(args, DOCUMENT);
  const title = newTitle(args);
  if (title === void 0) throw wrong("arguments", "must hold something to change: newName or title");
  await codap.update(collection2.path, { title });
  return { updated: true, collection: { name: collection2.name, title } };
}
async function remove2(args, codap) {
  args.confirmed();
  const collection2 = collectionOf(args, DOCUMENT);
  await codap.delete(collection2.path);
  return { deleted: true, collection: { name: collection2.name } };
}
var collectionTools = {
  create_collection: (args, codap) => {
    const collection2 = present({ name: args.text("collectionName"), parent: args.optionalText("parent"), attrs: attributes(args, "attributes") });
    return create2(contextOf(args, "dataContextName"), collection2, codap);
  },
  get_collections: (args, codap) => list2(contextOf(args, "dataContextName"), codap),
  get_collection: (args, codap) => read2(collectionOf(args, DOCUMENT), codap),
  update_collection: update2,
  delete_collection: remove2,
  createCollection: (args, codap) => {
    const given = args.object("collection");
    const collection2 = present({
      name: given.text("name"),
      title: given.optionalText("title"),
      description: given.optionalText("description"),
      parent: given.optionalText("parent"),
      attrs: attributes(given, "attrs")
    });
    return create2(contextOf(args, "dataContext"), collection2, codap);
  },
  getCollectionList: (args, codap) => list2(contextOf(args, "dataContext"), codap),
  getCollection: (args, codap) => read2(collectionOf(args, LATER), codap)
};

// src/codap/tools/attributes.ts
async function create3(collection2, attribute3, codap) {
  const { values } = await codap.create(collection2.of("attribute"), [attribute3]);
  return { attribute: answered(values, attribute3) };
}
async function list3(collection2, codap) {
  const attributes2 = await codap.list(collection2.of("attributeList"));
  return { attributes: attributes2, count: attributes2.length };
}
async function read3(args, naming, argument, codap) {
  const { values } = await codap.get(collectionOf(args, naming).attribute(args.text(argument), argument));
  return { attribute: values };
}
async function update3(resource, name, changes, codap) {
  if (Object.keys(changes).length === 0) throw wrong("arguments", "must hold something to change");
  const { values } = await codap.update(resource, changes);
  return { updated: true, attribute: answered(values, { name, ...changes }) };
}
async function remove3(args, naming, argument, codap) {
  const name = args.text(argument);
  await codap.delete(collectionOf(args, naming).attribute(name, argument));
  return { deleted: true, attribute: { name } };
}
async function reorder(args, codap) {
  const collection2 = collectionOf(args, DOCUMENT);
  const name = args.text("attributeName");
  const position2 = args.number("newPosition", { whole: true, min: 0 });
  await codap.update(collection2.attributeLocation(name, "attributeName"), { collection: collection2.name, position: position2 });
  return { updated: true, attribute: { name, collection: collection2.name, position: position2 } };
}
var attributeTools = {
  create_attribute: (args, codap) => {
    const name = args.text("attributeName");
    args.text("type");
    return create3(collectionOf(args, DOCUMENT), { name, ...attributeProperties(args) }, codap);
  },
  get_attributes: (args, codap) => list3(collectionOf(args, DOCUMENT), codap),
  get_attribute: (args, codap) => read3(args, DOCUMENT, "attributeName", codap),
  update_attribute: (args, codap) => {
    const name = args.text("attributeName");
    const newName = args.optionalText("newName") === void 0 ? {} : { name: args.text("newName") };
    return update3(collectionOf(args, DOCUMENT).attribute(name, "attributeName"), name, { ...newName, ...attributeProperties(args) }, codap);
  },
  delete_attribute: async (args, codap) => {
    args.confirmed();
    return remove3(args, DOCUMENT, "attributeName", codap);
  },
  reorder_attributes: reorder,
  createAttribute: (args, codap) => create3(collectionOf(args, LATER), attributeDefinition(args.object("attribute")), codap),
  getAttributeList: (args, codap) => list3(collectionOf(args, LATER), codap),
  getAttribute: (args, codap) => read3(args, LATER, "attribute", codap),
  updateAttribute: (args, codap) => {
    const attribute3 = args.object("attribute");
    const name = attribute3.text("name");
    return update3(collectionOf(args, LATER).attribute(name, attribute3.at("name")), name, attributeProperties(attribute3), codap);
  },
  deleteAttribute: (args, codap) => remove3(args, LATER, "attribute", codap)
};

// src/codap/tools/query.ts
var OPERATORS = ["equals", "contains", "startsWith", "endsWith", "greaterThan", "lessThan"];
function formula({ attribute: attribute3, operator, value }) {
  const name = attributeName(attribute3);
  switch (operator) {
    case "equals":
      return `${name} = ${literal(value)}`;
    case "greaterThan":
      return `${name} > ${ordered(value)}`;
    case "lessThan":
      return `${name} < ${ordered(value)}`;
    case "contains":
      return `includes(${name}, ${text(String(value))})`;
    case "startsWith":
      return `beginsWith(${name}, ${text(String(value))})`;
    case "endsWith":
      return `endsWith(${name}, ${text(String(value))})`;
  }
}
function attributeName(name) {
  if (name.includes("]")) {
    throw wrong("searchCriteria.attributeName", `must not contain "]", which ends a search in CODAP's selectors; rename the attribute first`);
  }
  return `\`${name.replace(/[\\`]/g, "\\$&")}\``;
}
function literal(value) {
  return typeof value === "number" ? String(value) : text(value);
}
function ordered(value) {
  if (typeof value === "number") return String(value);
  return value.trim() !== "" && Number.isFinite(Number(value)) ? String(Number(value)) : text(value);
}
function text(value) {
  const escaped = value.replace(/["\\]/g, "\\$&").replace(/[\u0000-\u001f\u007f\u2028\u2029[\]`]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
  return `"${escaped}"`;
}

// src/codap/tools/cases.ts
var SEARCH_LIMIT = 100;
async function count(resource, codap) {
  const { values } = await codap.get(resource);
  return { count: values };
}
async function byIndex(args, codap) {
  const index = args.number("index", { whole: true, min: 0 });
  const { values } = await codap.get(collectionOf(args, DOCUMENT).of(`caseByIndex[${index}]`));
  return { case: values?.case ?? values, index: values?.caseIndex ?? index };
}
async function search(args, codap) {
  const collection2 = collectionOf(args, DOCUMENT);
  const criteria = args.object("searchCriteria");
  const query = formula({
    attribute: criteria.text("attributeName"),
    operator: criteria.oneOf("operator", OPERATORS) ?? "equals",
    value: criteria.value("value")
  });
  const limit = args.optionalNumber("limit", { whole: true, min: 0 }) ?? SEARCH_LIMIT;
  const found = await codap.list(collection2.of(`caseFormulaSearch[${query}]`));
  const cases = found.slice(0, limit);
  return { cases, count: cases.length, total: found.length };
}
var caseTools = {
  get_case_count: (args, codap) => count(collectionOf(args, DOCUMENT).of("caseCount"), codap),
  get_case_by_index: byIndex,
  search_cases: search,
  getItemCount: (args, codap) => {
    const whole = args.optionalText("collection") === void 0;
    return count(whole ? contextOf(args, "dataContext").of("itemCount") : collectionOf(args, LATER).of("caseCount"), codap);
  }
};

// src/codap/tools/codap.ts
var Codap = class {
  #ask;
  #signal;
  constructor(ask, signal) {
    this.#ask = ask;
    this.#signal = signal;
  }
  /** The answer, which may be a refusal. */
  async try(request) {
    if (this.#signal.aborted) throw new ToolError("execution_error", "the call was cancelled before CODAP was asked", { request });
    let answer;
    try {
      answer = await this.#ask(request);
    } catch (thrown) {
      const reason = thrown instanceof Error ? thrown.message : String(thrown);
      throw new ToolError("codap_error", `CODAP did not answer: ${reason}`, { request: short(request) });
    }
    if (typeof answer !== "object" || answer === null) throw new ToolError("codap_error", "CODAP's answer is no object", { request: short(request) });
    return answer;
  }
  async #send(request) {
    const answer = await this.try(request);
    if (!answer.success) throw new ToolError("codap_error", refusal(answer, request), { request: short(request) });
    return answer;
  }
  get(resource) {
    return this.#send({ action: "get", resource });
  }
  create(resource, values) {
    return this.#send({ action: "create", resource, values });
  }
  update(resource, values) {
    return this.#send({ action: "update", resource, values });
  }
  delete(resource) {
    return this.#send({ action: "delete", resource });
  }
  /** What a resource that lists has; an answer without a list is an empty one. */
  async list(resource) {
    const { values } = await this.get(resource);
    return Array.isArray(values) ? values : [];
  }
};
function refusal(answer, request) {
  const said = answer.values?.error;
  return typeof said === "string" && said !== "" ? said : `CODAP refused to ${request.action} ${request.resource} and gave no reason`;
}
function short({ action, resource }) {
  return { action, resource };
}

// src/codap/tools/components.ts
function position(args) {
  const given = args.optionalObject("position");
  return given && present({ left: given.optionalNumber("x"), top: given.optionalNumber("y") });
}
function newPosition(args) {
  const given = position(args);
  return given && { left: given.left ?? 0, top: given.top ?? 0 };
}
function dimensions(args) {
  if (args === void 0) return void 0;
  const given = present({ width: args.optionalNumber("width", { over: 0 }), height: args.optionalNumber("height", { over: 0 }) });
  return Object.keys(given).length > 0 ? given : void 0;
}
function frame(args) {
  const size = dimensions(args.optionalObject("dimensions") ?? args);
  return { title: args.optionalText("title"), position: newPosition(args), dimensions: size };
}
async function createComponent(values, codap, notes = []) {
  const wanted = present(values);
  const { values: made } = await codap.create("component", wanted);
  const component = made ?? present({ type: values.type, title: values.title });
  return { component, ...notes.length > 0 && { notes } };
}
function table(args, argument, codap) {
  return createComponent({ type: "caseTable", dataContext: contextOf(args, argument).name, ...frame(args) }, codap);
}
function attribute(args, argument, { name, attributes: attributes2 }) {
  const wanted = args.optionalText(argument);
  if (wanted !== void 0 && attributes2 !== void 0 && !attributes2.includes(wanted)) {
    throw wrong(argument, `is no attribute of ${name}: ${JSON.stringify(wanted)}; there are ${attributes2.join(", ") || "none"}`);
  }
  return wanted;
}
var PLOTS = {
  scatterPlot: void 0,
  linePlot: { showConnectingLines: true },
  histogram: { pointsAreFusedIntoBars: true },
  boxPlot: "Box Plot"
};
var GRAPH_TYPES = Object.keys(PLOTS);
async function graph(args, codap) {
  const type = args.oneOf("graphType", GRAPH_TYPES) ?? "scatterPlot";
  if (type !== "scatterPlot" && args.optionalText("xAttribute") === void 0 && args.optionalText("yAttribute") === void 0) {
    throw wrong("xAttribute", `or yAttribute is needed for a ${type}`);
  }
  const look = frame(args);
  const context = await structureOf(contextOf(args, "dataContextName"), codap);
  const axes2 = { xAttributeName: attribute(args, "xAttribute", context), yAttributeName: attribute(args, "yAttribute", context) };
  const made = await createComponent({ type: "graph", dataContext: context.name, ...axes2, ...look }, codap);
  const plot = PLOTS[type];
  const { id: id2 } = made.component;
  if (plot === void 0 || typeof id2 !== "number" && typeof id2 !== "string") return made;
  const component = selected("component", id2, "component");
  const request = plot === "Box Plot" ? { action: "create", resource: `${component}.adornment`, values: { type: plot } } : { action: "update", resource: component, values: plot };
  const answer = await codap.try(request);
  return answer.success ? made : { ...made, notes: [`The graph was made, but not as a ${type}: ${refusal(answer, request)}`] };
}
async function plainGraph(args, codap) {
  const look = frame(args);
  const context = await structureOf(contextOf(args, "dataContext"), codap);
  const axes2 = {
    xAttributeName: attribute(args, "xAttributeName", context),
    yAttributeName: attribute(args, "yAttributeName", context),
    legendAttributeName: attribute(args, "legendAttributeName", context)
  };
  return createComponent({ type: "graph", dataContext: context.name, ...axes2, ...look }, codap);
}
var COORDINATES = { latitudeAttribute: /^lat(itude?)?$/i, longitudeAttribute: /^(lon|lng|long|longitude?)$/i };
async function map(args, codap) {
  const look = frame(args);
  const context = await structureOf(contextOf(args, "dataContextName"), codap);
  const notes = Object.entries(COORDINATES).flatMap(([argument, pattern]) => {
    const name = attribute(args, argument, context);
    if (name === void 0 || pattern.test(name)) return [];
    return [`CODAP takes coordinates from attributes with names such as Latitude and Longitude; ${name} (${argument}) may have to be renamed.`];
  });
  return createComponent({ type: "map", dataContext: context.name, ...look }, codap, notes);
}
async function list4(codap) {
  const components2 = await codap.list("componentList");
  return { components: components2, count: components2.length };
}
async function read4(id2, argument, codap) {
  const { values } = await codap.get(selected("component", id2, argument));
  return { component: values };
}
async function update4(args, argument, codap) {
  const id2 = args.id(argument);
  const changes = present({ title: args.optionalText("title"), position: position(args), dimensions: dimensions(args.optionalObject("dimensions")) });
  if (Object.keys(changes).length === 0) throw wrong("arguments", "must hold something to change: title, position or dimensions");
  await codap.update(selected("component", id2, argument), changes);
  return { updated: true, component: { id: id2, ...changes } };
}
async function remove4(id2, argument, codap) {
  await codap.delete(selected("component", id2, argument));
  return { deleted: true, component: { id: id2 } };
}
var componentTools = {
  create_table: (args, codap) => table(args, "dataContextName", codap),
  create_graph: graph,
  create_map: map,
  get_components: (_, codap) => list4(codap),
  update_component: (args, codap) => update4(args, "componentId", codap),
  delete_component: async (args, codap) => {
    args.confirmed();
    return remove4(args.id("componentId"), "componentId", codap);
  },
  createTable: (args, codap) => table(args, "dataContext", codap),
  createGraph: plainGraph,
  getAllComponents: (_, codap) => list4(codap),
  getComponent: (args, codap) => read4(args.id("component"), "component", codap),
  updateComponent: (args, codap) => update4(args, "component", codap),
  deleteComponent: (args, codap) => remove4(args.id("component"), "component", codap)
};

// src/codap/tools/items.ts
var canonical = (name) => String(name).trim().replace(/\W/gu, "_");
async function create4(args, context, collection2, codap) {
  const items2 = args.objects("items").map(({ members }) => members);
  const { name, collections: collections2, attributes: attributes2 } = await structureOf(context, codap);
  const wanted = collection2 === void 0 ? void 0 : args.text(collection2);
  if (collection2 !== void 0 && collections2?.some(({ id: id2, name: name2, title }) => [String(id2), name2, title].includes(wanted)) === false) {
    const there = collections2.map((one) => one.name).join(", ") || "none";
    throw wrong(collection2, `is no collection of ${name}: ${JSON.stringify(wanted)}; there are ${there}`);
  }
  const known = new Set(attributes2?.map(canonical));
  const unknownAttributes = attributes2 === void 0 ? [] : [...new Set(items2.flatMap(Object.keys))].filter((one) => !known.has(canonical(one)));
  const { itemIDs = [], caseIDs = [] } = await codap.create(context.of("item"), items2);
  return { itemIDs, caseIDs, count: items2.length, ...unknownAttributes.length > 0 && { unknownAttributes } };
}
async function columns(args, context, codap) {
  if (args.optionalText("collection") === void 0) return void 0;
  const collection2 = context.collection(args.text("collection"), args.at("collection"));
  const attributes2 = await codap.list(collection2.of("attributeList"));
  return new Set(attributes2.map(({ name }) => name));
}
function cut(item2, columns2) {
  if (columns2 === void 0 || item2.values === void 0) return item2;
  return { ...item2, values: Object.fromEntries(Object.entries(item2.values).filter(([name]) => columns2.has(name))) };
}
async function list5(context, codap, limit, wanted) {
  const all2 = await codap.list(context.of("itemSearch[*]"));
  const items2 = all2.slice(0, limit).map((item2) => cut(item2, wanted));
  return { items: items2, count: items2.length, total: all2.length };
}
async function read5(context, id2, argument, codap, wanted) {
  const { values } = await codap.get(context.itemById(id2, argument));
  return { item: cut(values ?? { id: id2 }, wanted) };
}
async function update5(context, changes, codap) {
  const { values } = await codap.update(context.of("item"), changes);
  const ids2 = (name) => Array.isArray(values?.[name]) ? values[name] : [];
  const changed = ids2("changedCases");
  const notFound = Array.isArray(values?.changedCases) ? changes.map(({ id: id2 }) => id2).filter((id2) => !changed.includes(id2)) : [];
  return { updated: true, count: changes.length - notFound.length, notFound, createdCases: ids2("createdCases"), deletedCases: ids2("deletedCases") };
}
async function remove5(context, ids2, argument, codap) {
  const requests = ids2.map((id2, index) => {
    return [id2, { action: "delete", resource: context.itemById(id2, `${argument}[${index}]`) }];
  });
  const deleted = [];
  const failed = [];
  for (const [id2, request] of requests) {
    const answer = await codap.try(request);
    if (answer.success) deleted.push(id2);
    else failed.push({ id: id2, message: refusal(answer, request) });
  }
  const [first] = failed;
  if (first !== void 0) {
    throw new ToolError("codap_error", `${failed.length} of ${ids2.length} items could not be deleted; item ${first.id}: ${first.message}`, { deleted, failed });
  }
  return { deleted: true, itemIDs: deleted, count: deleted.length };
}
function filled(ids2, argument) {
  if (ids2.length === 0) throw wrong(argument, "must not be empty");
  return ids2;
}
function change(item2) {
  const { id: _, ...beside } = item2.members;
  const names = Object.keys(beside);
  const values = names.length === 1 && typeof beside.values === "object" ? item2.object("values").members : beside;
  if (Object.keys(values).length === 0) throw wrong(item2.at("id"), "has no values beside it to write");
  return { id: item2.id("id"), values };
}
var itemTools = {
  create_items: (args, codap) => create4(args, contextOf(args, "dataContextName"), "collectionName", codap),
  get_items: (args, codap) => list5(contextOf(args, "dataContextName"), codap, args.optionalNumber("limit", { whole: true, min: 0 })),
  get_item_by_id: (args, codap) => read5(contextOf(args, "dataContextName"), args.id("itemId"), "itemId", codap),
  update_items: (args, codap) => {
    const changes = args.objects("updates").map((one) => ({ id: one.id("id"), values: one.object("values").members }));
    return update5(contextOf(args, "dataContextName"), changes, codap);
  },
  delete_items: async (args, codap) => {
    args.confirmed();
    return remove5(contextOf(args, "dataContextName"), filled(args.ids("itemIds"), "itemIds"), "itemIds", codap);
  },
  createItems: (args, codap) => {
    const collection2 = args.optionalText("collection") === void 0 ? void 0 : "collection";
    return create4(args, contextOf(args, "dataContext"), collection2, codap);
  },
  getAllItems: async (args, codap) => {
    const context = contextOf(args, "dataContext");
    return list5(context, codap, void 0, await columns(args, context, codap));
  },
  getItemByID: async (args, codap) => {
    const context = contextOf(args, "dataContext");
    const id2 = args.id("itemID");
    return read5(context, id2, "itemID", codap, await columns(args, context, codap));
  },
  updateItems: async (args, codap) => {
    const context = contextOf(args, "dataContext");
    const changes = args.objects("items").map(change);
    await knownCollection(args, "collection", context, codap);
    return update5(context, changes, codap);
  },
  deleteItems: async (args, codap) => {
    const context = contextOf(args, "dataContext");
    const ids2 = filled(args.ids("items"), "items");
    await knownCollection(args, "collection", context, codap);
    return remove5(context, ids2, "items", codap);
  }
};

// src/codap/tools/notifications.ts
var NOTICES_KEPT = 100;
var RESOURCES_LISTENED = 50;
var KINDS = [
  [/^dataContextChangeNotice\[([^\]]+)\]$/, ([, name]) => ["get", `dataContext[${name}]`]],
  [/^component\[([^\]]+)\]$/, ([, name]) => ["get", `component[${name}]`]],
  [/^global\[([^\]]+)\]$/, ([, name]) => ["get", `global[${name}]`]],
  [/^document$/, () => ["update", "interactiveFrame", { subscribeToDocuments: true }, { subscribeToDocuments: false }]],
  [/^(?:component|documentChangeNotice|undoChangeNotice|dragDrop\[attribute\])$/, () => ["get", "interactiveFrame"]]
];
var Subscription = class {
  constructor(request, callback, listen) {
    this.request = request;
    this.callback = callback;
    this.stop = listen(request, (notice) => this.#keep(notice));
  }
  request;
  callback;
  #kept = [];
  #dropped = 0;
  stop;
  #keep(notice) {
    this.#kept.push(notice);
    if (this.#kept.length <= NOTICES_KEPT) return;
    this.#kept.shift();
    this.#dropped += 1;
  }
  /** What came since the last time. */
  fetch(registered) {
    const notifications = this.#kept.map(({ resource, values }) => ({ resource, values }));
    const dropped = this.#dropped;
    this.#kept = [];
    this.#dropped = 0;
    return { registered, ...present({ request: this.request, callback: this.callback }), notifications, dropped };
  }
};
function kindOf(request) {
  for (const [pattern, asked] of KINDS) {
    const match = pattern.exec(request);
    if (match !== null) return asked(match);
  }
  const known = "dataContextChangeNotice[NAME], documentChangeNotice, component, component[ID], global[NAME], undoChangeNotice, dragDrop[attribute] or document";
  throw wrong("request", `must be ${known}, and is ${JSON.stringify(request)}`);
}
function notificationTools(listen) {
  const subscriptions = /* @__PURE__ */ new Map();
  async function register(args, codap) {
    const request = args.text("request");
    const callback = args.optionalText("callback");
    const [action, resource, on] = kindOf(request);
    const known = subscriptions.get(request);
    if (known !== void 0) {
      known.callback = callback ?? known.callback;
      return known.fetch(true);
    }
    if (listen === void 0) throw new ToolError("execution_error", "this page gets no notifications");
    if (subscriptions.size >= RESOURCES_LISTENED) throw wrong("request", `would be one too many: ${subscriptions.size} are registered`);
    await (action === "get" ? codap.get(resource) : codap.update(resource, on));
    const subscription = new Subscription(request, callback, listen);
    subscriptions.set(request, subscription);
    return subscription.fetch(true);
  }
  async function unregister(args, codap) {
    const request = args.text("request");
    const [action, resource, , off] = kindOf(request);
    const subscription = subscriptions.get(request);
    if (subscription === void 0) throw wrong("request", `is not registered: ${JSON.stringify(request)}`);
    if (action === "update") await codap.update(resource, off);
    subscription.stop();
    subscriptions.delete(request);
    return subscription.fetch(false);
  }
  return { registerForNotifications: register, unregisterForNotifications: unregister };
}

// src/codap/tools/selection.ts
async function read6(context, codap, collection2) {
  const all2 = await codap.list(context.of("selectionList"));
  const selection2 = collection2 === void 0 ? all2 : all2.filter((one) => {
    return collection2.id === void 0 ? one.collectionName === collection2.name : one.collectionID === collection2.id;
  });
  return { selection: selection2, count: selection2.length };
}
async function select(context, ids2, extend, codap) {
  const resource = context.of("selectionList");
  await (extend ? codap.update(resource, ids2) : codap.create(resource, ids2));
  return read6(context, codap);
}
async function clear(context, codap) {
  await codap.create(context.of("selectionList"), []);
  return { selection: [], count: 0 };
}
var selectionTools = {
  get_selection: (args, codap) => read6(contextOf(args, "dataContextName"), codap),
  select_cases: (args, codap) => select(contextOf(args, "dataContextName"), args.ids("caseIds"), args.flag("extend"), codap),
  clear_selection: (args, codap) => clear(contextOf(args, "dataContextName"), codap),
  getSelectedItems: async (args, codap) => {
    const context = contextOf(args, "dataContext");
    return read6(context, codap, await knownCollection(args, "collection", context, codap));
  },
  selectItems: async (args, codap) => {
    const context = contextOf(args, "dataContext");
    const [ids2, extend] = [args.ids("items"), args.flag("extend")];
    await knownCollection(args, "collection", context, codap);
    return select(context, ids2, extend, codap);
  },
  deselectAll: (args, codap) => clear(contextOf(args, "dataContext"), codap)
};

// src/codap/tools/widgets.ts
var WEB_VIEW = { width: 480, height: 360 };
async function slider(args, codap) {
  const name = args.text("name");
  const [lowerBound, upperBound] = [args.number("min"), args.number("max")];
  if (upperBound <= lowerBound) throw wrong("max", `must be greater than min (${lowerBound}), and is ${upperBound}`);
  const value = args.optionalNumber("value") ?? lowerBound;
  if (value < lowerBound || value > upperBound) throw wrong("value", `must lie between min and max, and is ${value}`);
  const multipleOf = args.optionalNumber("step", { over: 0 });
  const component = { type: "slider", title: args.text("title"), globalValueName: name, lowerBound, upperBound, multipleOf, position: newPosition(args) };
  await codap.create("global", { name, value });
  return createComponent(component, codap);
}
async function calculator(args, codap) {
  const wanted = { type: "calculator", title: args.optionalText("title"), position: newPosition(args) };
  const components2 = await codap.list("componentList");
  const shown3 = components2.find(({ type, hidden }) => type === "calculator" && hidden !== true);
  return shown3 === void 0 ? createComponent(wanted, codap) : { component: shown3 };
}
function webAddress(args) {
  const given = args.text("URL");
  const address = URL.canParse(given) ? new URL(given) : void 0;
  if (address === void 0 || !["http:", "https:"].includes(address.protocol)) {
    throw wrong("URL", `must be a whole http or https address, and is ${JSON.stringify(given)}`);
  }
  return address.href;
}
var TOLD = ["id", "name", "title", "version", "dimensions", "codapVersion", "lang", "locale"];
async function initialize(args, codap) {
  const given = { name: args.text("name"), title: args.text("title"), version: args.text("version") };
  await codap.update("interactiveFrame", given);
  const { values } = await codap.get("interactiveFrame");
  const told = Object.fromEntries(TOLD.map((name) => [name, values?.[name]]));
  return { interactiveFrame: { ...given, ...present(told) } };
}
var widgetTools = {
  initializePlugin: initialize,
  createSlider: slider,
  createCalculator: calculator,
  createText: (args, codap) => {
    return createComponent({ type: "text", title: args.optionalText("title"), text: args.text("text"), position: newPosition(args) }, codap);
  },
  createWebView: (args, codap) => {
    return createComponent({ type: "webView", title: args.optionalText("title"), URL: webAddress(args), dimensions: WEB_VIEW, position: newPosition(args) }, codap);
  }
};

// src/codap/tools/index.ts
function toolHandlers(ask, listen) {
  const tools = {
    ...contextTools,
    ...collectionTools,
    ...attributeTools,
    ...itemTools,
    ...caseTools,
    ...selectionTools,
    ...componentTools,
    ...widgetTools,
    ...notificationTools(listen)
  };
  return Object.fromEntries(Object.entries(tools).map(([name, tool]) => [name, handler(tool, ask)]));
}
function handler(tool, ask) {
  return async (args, { signal }) => tool(new Arguments(args ?? {}), new Codap(ask, signal));
}

// src/demo/document/model.ts
var MAX_CONTEXTS = 100;
var MAX_COLLECTIONS = 20;
var MAX_ATTRIBUTES = 500;
var MAX_ITEMS = 5e4;
var MAX_COMPONENTS = 100;
var Refusal = class extends Error {
};
function attributesOf(context) {
  return context.collections.flatMap(({ attributes: attributes2 }) => attributes2);
}
function byName(all2, name) {
  const text3 = String(name);
  const numbered = () => /^\d+$/.test(text3) ? all2.find(({ id: id2 }) => id2 === Number(text3)) : void 0;
  return all2.find((one) => one.name === text3) ?? all2.find((one) => one.title === text3) ?? numbered();
}
var rows = /* @__PURE__ */ new WeakMap();
function rowOf(context, item2) {
  let known = rows.get(context);
  if (known?.version !== context.version) {
    rows.set(context, known = { version: context.version, rows: new Map(context.items.map((one, row) => [one, row])) });
  }
  return known.rows.get(item2) ?? 0;
}

// src/demo/document/resource.ts
function readResource(text3) {
  const parts = /* @__PURE__ */ new Map();
  let kind2 = "";
  let selector;
  let rest = text3;
  while (rest !== "") {
    const match = /^(\w+)(?:\[([^\]]*)\])?(?:\.|$)/.exec(rest);
    if (!match) throw new Refusal(`the resource "${text3}" cannot be read`);
    kind2 = match[1] ?? "";
    selector = match[2];
    if (selector !== void 0) parts.set(kind2, selector);
    rest = rest.slice(match[0].length);
  }
  return { kind: kind2, selector, parts };
}
function contextOf2(named, resource) {
  const name = resource.parts.get("dataContext");
  const found = name === void 0 ? named.contexts[0] : byName(named.contexts, name);
  if (!found) throw new Refusal(name === void 0 ? "there is no data context" : `there is no data context ${name}`);
  return found;
}
function collectionOf2(context, resource) {
  const name = resource.parts.get("collection");
  if (name === void 0) return void 0;
  const found = byName(context.collections, name);
  if (!found) throw new Refusal(`there is no collection ${name} in ${context.name}`);
  return found;
}
function neededCollection(context, resource) {
  const found = collectionOf2(context, resource);
  if (!found) throw new Refusal(`${resource.kind} needs a collection`);
  return found;
}
function attributeOf(context, resource) {
  const name = resource.selector ?? "";
  const within2 = collectionOf2(context, resource);
  for (const collection2 of within2 ? [within2] : context.collections) {
    const attribute3 = byName(collection2.attributes, name);
    if (attribute3) return { attribute: attribute3, collection: collection2 };
  }
  throw new Refusal(`there is no attribute ${name} in ${within2?.name ?? context.name}`);
}
function componentOf(named, resource) {
  const name = resource.parts.get("component") ?? "";
  const found = byName(named.components, name);
  if (!found) throw new Refusal(`there is no component ${name}`);
  return found;
}

// src/demo/document/values.ts
var Values = class {
  #members;
  constructor(value, what) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Refusal(`the values of ${what} must be an object`);
    this.#members = value;
  }
  get members() {
    return this.#members;
  }
  has(name) {
    return Object.hasOwn(this.#members, name) && this.#members[name] !== void 0;
  }
  get(name) {
    return Object.hasOwn(this.#members, name) ? this.#members[name] : void 0;
  }
  text(name) {
    const value = this.get(name);
    return typeof value === "string" || typeof value === "number" ? String(value) : void 0;
  }
  number(name) {
    const value = this.get(name);
    return typeof value === "number" && Number.isFinite(value) ? value : void 0;
  }
  list(name) {
    const value = this.get(name);
    return Array.isArray(value) ? value : [];
  }
};
function each(values, what) {
  if (values === void 0 || values === null) throw new Refusal(`${what} needs values`);
  return (Array.isArray(values) ? values : [values]).map((value) => new Values(value, what));
}
function ids(values) {
  const one = (value) => {
    if (typeof value === "object" && value !== null && "id" in value) return Number(value.id);
    return typeof value === "number" || typeof value === "string" ? Number(value) : Number.NaN;
  };
  if (!Array.isArray(values)) throw new Refusal("the values must be a list of ids");
  return values.map(one);
}

// src/demo/document/collections.ts
function shownAttribute({ id: id2, name, title, type, description, formula: formula2, unit, precision, editable, hidden }) {
  return {
    name,
    type,
    title,
    description,
    editable,
    hidden,
    renameable: true,
    deleteable: true,
    ...formula2 && { formula: formula2 },
    guid: id2,
    id: id2,
    ...precision !== void 0 && { precision },
    ...unit && { unit }
  };
}
function shownCollection(context, collection2) {
  const { id: id2, name, title, description, labels } = collection2;
  const parent = context.collections[context.collections.indexOf(collection2) - 1];
  return {
    attrs: collection2.attributes.map(shownAttribute),
    guid: id2,
    id: id2,
    name,
    title,
    ...description && { description },
    ...labels && { labels },
    ...parent && { parent: parent.id },
    type: "DG.Collection"
  };
}
function makeCollection(document2, context, values) {
  const name = values.text("name");
  if (!name) throw new Refusal("a collection needs a name");
  const same = context.collections.find((one) => one.name === name);
  if (same) return same;
  const [first] = context.collections;
  if (context.collections.length === 1 && first?.attributes.length === 0 && context.items.length === 0) context.collections = [];
  if (context.collections.length >= MAX_COLLECTIONS) throw new Refusal(`there are ${MAX_COLLECTIONS} collections already`);
  const collection2 = {
    id: document2.newId(),
    name,
    title: values.text("title") ?? name,
    description: values.text("description") ?? "",
    attributes: [],
    labels: values.has("labels") ? new Values(values.get("labels"), "labels").members : void 0
  };
  for (const attribute3 of [...values.list("attributes"), ...values.list("attrs")]) {
    makeAttribute(document2, context, collection2, new Values(attribute3, "an attribute"));
  }
  const parent = values.text("parent");
  const above = parent === void 0 ? void 0 : byName(context.collections, parent);
  const place = above ? context.collections.indexOf(above) + 1 : parent === void 0 ? context.collections.length : 0;
  context.collections.splice(place, 0, collection2);
  return collection2;
}
function makeAttribute(document2, context, collection2, values) {
  const name = values.text("name");
  if (!name) throw new Refusal("an attribute needs a name");
  const same = attributesOf(context).find((one) => one.name === name);
  if (same) return same;
  if (attributesOf(context).length >= MAX_ATTRIBUTES) throw new Refusal(`there are ${MAX_ATTRIBUTES} attributes already`);
  const attribute3 = {
    id: document2.newId(),
    name,
    title: name,
    type: void 0,
    description: "",
    formula: "",
    unit: "",
    precision: void 0,
    editable: true,
    hidden: false
  };
  change2(attribute3, values);
  collection2.attributes.push(attribute3);
  return attribute3;
}
function change2(attribute3, values) {
  attribute3.title = values.text("title") ?? (attribute3.title === attribute3.name ? values.text("name") : void 0) ?? attribute3.title;
  attribute3.name = values.text("name") || attribute3.name;
  attribute3.type = values.text("type") ?? attribute3.type;
  attribute3.description = values.text("description") ?? attribute3.description;
  attribute3.formula = values.text("formula") ?? attribute3.formula;
  attribute3.unit = values.text("unit") ?? attribute3.unit;
  attribute3.precision = values.number("precision") ?? attribute3.precision;
  if (values.has("editable")) attribute3.editable = values.get("editable") === true;
  if (values.has("hidden")) attribute3.hidden = values.get("hidden") === true;
}
var short2 = ({ id: id2, name, title }) => ({ name, guid: id2, title, id: id2 });
var collection = {
  create(document2, resource, values) {
    const context = contextOf2(document2, resource);
    const made = each(values, "a collection").map((one) => makeCollection(document2, context, one));
    document2.changed(context, "createCollection");
    return { success: true, values: made.map(({ id: id2, name }) => ({ id: id2, name })) };
  },
  get(document2, resource) {
    const context = contextOf2(document2, resource);
    return { success: true, values: shownCollection(context, neededCollection(context, resource)) };
  },
  update(document2, resource, values) {
    const context = contextOf2(document2, resource);
    const found = neededCollection(context, resource);
    const [wanted] = each(values, "a collection");
    const name = wanted?.text("name");
    if (name && context.collections.some((one) => one.name === name && one !== found)) throw new Refusal(`there is a collection ${name} already`);
    found.title = wanted?.text("title") ?? (found.title === found.name && name ? name : found.title);
    found.name = name || found.name;
    if (wanted?.has("labels")) found.labels = new Values(wanted.get("labels"), "labels").members;
    document2.changed(context, "updateCollection");
    return { success: true };
  },
  delete(document2, resource) {
    const context = contextOf2(document2, resource);
    const found = neededCollection(context, resource);
    context.collections = context.collections.filter((one) => one !== found);
    for (const { id: id2 } of found.attributes) for (const item2 of context.items) item2.values.delete(id2);
    if (context.collections.length === 0) {
      context.items = [];
      context.selected.clear();
      makeCollection(document2, context, new Values({ name: "Cases" }, "a collection"));
    }
    document2.changed(context, "deleteCollection");
    return { success: true, values: { collections: [found.id] } };
  }
};
var attribute2 = {
  create(document2, resource, values) {
    const context = contextOf2(document2, resource);
    const into = collectionOf2(context, resource) ?? context.collections.at(-1);
    if (!into) throw new Refusal(`there is no collection in ${context.name}`);
    const made = each(values, "an attribute").map((one) => makeAttribute(document2, context, into, one));
    document2.changed(context, "createAttributes");
    return { success: true, values: { attrs: made.map(shownAttribute) } };
  },
  get(document2, resource) {
    return { success: true, values: shownAttribute(attributeOf(contextOf2(document2, resource), resource).attribute) };
  },
  update(document2, resource, values) {
    const context = contextOf2(document2, resource);
    const found = attributeOf(context, resource).attribute;
    const [wanted] = each(values, "an attribute");
    const name = wanted?.text("name");
    if (name && attributesOf(context).some((one) => one.name === name && one !== found)) throw new Refusal(`there is an attribute ${name} already`);
    if (wanted) {
      document2.renamed(context, found.name, name || found.name);
      change2(found, wanted);
    }
    document2.changed(context, "updateAttributes");
    return { success: true, values: { attrs: [shownAttribute(found)] } };
  },
  delete(document2, resource) {
    const context = contextOf2(document2, resource);
    const { attribute: found, collection: from } = attributeOf(context, resource);
    from.attributes = from.attributes.filter((one) => one !== found);
    for (const item2 of context.items) item2.values.delete(found.id);
    document2.changed(context, "deleteAttributes");
    return { success: true };
  }
};
var attributeLocation = {
  update(document2, resource, values) {
    const context = contextOf2(document2, resource);
    const { attribute: found, collection: from } = attributeOf(context, resource);
    const [wanted] = each(values, "a place");
    const name = wanted?.text("collection");
    const parent = context.collections[context.collections.indexOf(from) - 1];
    const into = name === void 0 ? from : name === "parent" ? parent : byName(context.collections, name);
    if (!into) throw new Refusal(`there is no collection ${name} in ${context.name}`);
    from.attributes = from.attributes.filter((one) => one !== found);
    const place = Math.round(wanted?.number("position") ?? into.attributes.length);
    into.attributes.splice(Math.min(Math.max(place, 0), into.attributes.length), 0, found);
    document2.changed(context, "moveAttribute");
    return { success: true };
  }
};
var collections = {
  collection,
  collectionList: {
    get: (document2, resource) => ({
      success: true,
      values: contextOf2(document2, resource).collections.map(short2)
    })
  },
  attribute: attribute2,
  attributeList: {
    get(document2, resource) {
      const context = contextOf2(document2, resource);
      const within2 = collectionOf2(context, resource);
      return { success: true, values: (within2?.attributes ?? attributesOf(context)).map(short2) };
    }
  },
  attributeLocation
};

// src/demo/document/components.ts
var TYPES2 = {
  caseTable: { width: 480, height: 260 },
  caseCard: { width: 480, height: 260 },
  graph: { width: 400, height: 320 },
  map: { width: 400, height: 320 },
  slider: { width: 320, height: 100 },
  calculator: { width: 220, height: 120 },
  text: { width: 320, height: 140 },
  webView: { width: 320, height: 120 }
};
var COMMON = /* @__PURE__ */ new Set(["type", "name", "title", "position", "dimensions", "id", "__proto__"]);
var FARTHEST = 4e3;
var LARGEST = 2e3;
function change3(component, values) {
  component.name = values.text("name") ?? component.name;
  component.title = values.text("title") ?? component.title;
  const bound = (value, before, least, most) => Math.min(Math.max(Math.round(value ?? before), least), most);
  const position2 = values.get("position");
  if (typeof position2 === "object" && position2 !== null) {
    const at = new Values(position2, "a position");
    const { left, top } = component.position;
    component.position = {
      left: bound(at.number("left") ?? at.number("x"), left, 0, FARTHEST),
      top: bound(at.number("top") ?? at.number("y"), top, 0, FARTHEST)
    };
  }
  const size = values.has("dimensions") ? new Values(values.get("dimensions"), "dimensions") : values;
  const { width, height } = component.dimensions;
  component.dimensions = { width: bound(size.number("width"), width, 120, LARGEST), height: bound(size.number("height"), height, 60, LARGEST) };
  for (const [name, value] of Object.entries(values.members)) if (!COMMON.has(name)) component.specific[name] = value;
}
function create5(document2, _, values) {
  const [wanted] = each(values, "a component");
  const type = wanted?.text("type") ?? "";
  const usual = Object.hasOwn(TYPES2, type) ? TYPES2[type] : void 0;
  if (!wanted || !usual) throw new Refusal(`components of type ${type || "(none)"} are not supported`);
  const about = wanted.text("dataContext");
  const context = about === void 0 ? void 0 : byName(document2.contexts, about);
  if (about !== void 0 && !context) throw new Refusal(`there is no data context ${about}`);
  const same = type === "caseTable" && document2.components.find((one) => one.type === type && one.specific.dataContext === context?.name);
  if (!same && document2.components.length >= MAX_COMPONENTS) throw new Refusal(`there are ${MAX_COMPONENTS} components already`);
  const component = same || {
    id: document2.newId(),
    type,
    name: "",
    title: context?.title ?? type,
    position: free(document2),
    dimensions: usual,
    specific: {}
  };
  change3(component, wanted);
  if (context) component.specific.dataContext = context.name;
  if (!same) document2.components.push(component);
  document2.tell(`component[${component.id}]`, { operation: "create", type, id: component.id });
  return { success: true, values: { id: component.id, title: component.title, type, ...component.name && { name: component.name } } };
}
function free(document2) {
  const last = document2.components.at(-1);
  if (!last) return { left: 0, top: 0 };
  const left = last.position.left + last.dimensions.width + 16;
  const bottom = Math.max(...document2.components.map(({ position: position2, dimensions: dimensions2 }) => position2.top + dimensions2.height));
  return left < 900 ? { left, top: last.position.top } : { left: 0, top: bottom + 16 };
}
var shown = ({ id: id2, type, name, title, position: position2, dimensions: dimensions2, specific }) => ({
  ...specific,
  id: id2,
  type,
  ...name && { name },
  title,
  position: position2,
  dimensions: dimensions2
});
var components = {
  component: {
    create: create5,
    get: (document2, resource) => ({ success: true, values: shown(componentOf(document2, resource)) }),
    update(document2, resource, values) {
      const component = componentOf(document2, resource);
      for (const wanted of each(values, "a component")) change3(component, wanted);
      document2.tell(`component[${component.id}]`, { operation: "update", type: component.type, id: component.id });
      return { success: true };
    },
    delete(document2, resource) {
      const component = componentOf(document2, resource);
      document2.components = document2.components.filter((one) => one !== component);
      document2.tell(`component[${component.id}]`, { operation: "delete", type: component.type, id: component.id });
      return { success: true };
    },
    notify: (document2, resource) => (componentOf(document2, resource), { success: true })
  },
  adornment: {
    create(document2, resource, values) {
      const component = componentOf(document2, resource);
      if (component.type !== "graph") throw new Refusal(`${component.title} is no graph`);
      const [wanted] = each(values, "an adornment");
      const type = wanted?.text("type") ?? "";
      if (type !== "Box Plot") throw new Refusal(`adornments of type ${type || "(none)"} are not supported`);
      component.specific.adornments = [type];
      document2.tell(`component[${component.id}]`, { operation: "update", type: component.type, id: component.id });
      return { success: true, values: { type } };
    }
  },
  componentList: {
    get: (document2) => ({
      success: true,
      values: document2.components.map(({ id: id2, type, name, title }) => ({ id: id2, type, ...name && { name }, title }))
    })
  },
  interactiveFrame: {
    get: (document2) => ({ success: true, values: { ...document2.frame } }),
    update(document2, _, values) {
      for (const wanted of each(values, "the frame")) {
        for (const name of ["name", "title", "version"]) document2.frame[name] = wanted.text(name) ?? document2.frame[name];
      }
      return { success: true };
    },
    notify: () => ({ success: true })
  },
  global: {
    create(document2, _, values) {
      for (const wanted of each(values, "a global value")) document2.globals.set(wanted.text("name") ?? "", wanted.number("value") ?? 0);
      return { success: true };
    },
    get(document2, resource) {
      const name = resource.selector ?? "";
      const value = document2.globals.get(name);
      if (value === void 0) throw new Refusal(`there is no global value ${name}`);
      return { success: true, values: { name, value } };
    },
    update(document2, resource, values) {
      for (const wanted of each(values, "a global value")) document2.globals.set(resource.selector ?? "", wanted.number("value") ?? 0);
      document2.tell(`global[${resource.selector}]`, { globalValue: document2.globals.get(resource.selector ?? "") });
      return { success: true };
    }
  },
  globalList: {
    get: (document2) => ({ success: true, values: [...document2.globals].map(([name, value]) => ({ name, value })) })
  },
  logMessage: { notify: () => ({ success: true }) }
};

// src/demo/document/dataContexts.ts
var short3 = ({ id: id2, name, title }) => ({ name, id: id2, title });
function shown2(context) {
  const { id: id2, name, title, description } = context;
  const collections2 = context.collections.map((collection2) => shownCollection(context, collection2));
  return { type: "DG.DataContext", document: 1, guid: id2, id: id2, name, title, description, collections: collections2 };
}
function create6(document2, _, values) {
  const [made] = each(values, "a data context");
  if (!made) throw new Refusal("a data context needs values");
  const name = made.text("name") || `Data_Set_${document2.contexts.length + 1}`;
  const same = document2.contexts.find((one) => one.name === name);
  if (same) return { success: true, values: short3(same) };
  if (document2.contexts.length >= MAX_CONTEXTS) throw new Refusal(`there are ${MAX_CONTEXTS} data contexts already`);
  const context = {
    id: document2.newId(),
    name,
    title: made.text("title") ?? name,
    description: made.text("description") ?? "",
    collections: [],
    items: [],
    selected: /* @__PURE__ */ new Set(),
    caseIds: /* @__PURE__ */ new Map(),
    version: 0
  };
  const wanted = made.list("collections");
  for (const one of wanted.length > 0 ? wanted : [{ name: "Cases" }]) makeCollection(document2, context, new Values(one, "a collection"));
  document2.contexts.push(context);
  document2.tell("documentChangeNotice", { operation: "dataContextCountChanged" });
  return { success: true, values: short3(context) };
}
function update6(document2, resource, values) {
  const context = contextOf2(document2, resource);
  const [wanted] = each(values, "a data context");
  const metadata = wanted?.get("metadata");
  const described = metadata ? new Values(metadata, "metadata") : wanted;
  const name = wanted?.text("name");
  const other = name === void 0 ? void 0 : byName(document2.contexts, name);
  if (other && other !== context) throw new Refusal(`there is a data context ${name} already`);
  if (name) {
    for (const { specific } of document2.components) if (specific.dataContext === context.name) specific.dataContext = name;
    context.name = name;
  }
  context.title = wanted?.text("title") ?? context.title;
  context.description = described?.text("description") ?? context.description;
  document2.changed(context, "updateDataContext");
  return { success: true };
}
function remove6(document2, resource) {
  const context = contextOf2(document2, resource);
  document2.contexts.splice(document2.contexts.indexOf(context), 1);
  document2.components = document2.components.filter(({ specific }) => specific.dataContext !== context.name);
  document2.changed(context, "deleteDataContext");
  document2.tell("documentChangeNotice", { operation: "dataContextCountChanged" });
  return { success: true };
}
var dataContexts = {
  dataContext: {
    create: create6,
    update: update6,
    delete: remove6,
    get: (document2, resource) => ({ success: true, values: shown2(contextOf2(document2, resource)) }),
    notify: (document2, resource) => (contextOf2(document2, resource), { success: true, values: {} })
  },
  dataContextList: {
    get: (document2) => ({ success: true, values: document2.contexts.map((one) => ({ ...short3(one), guid: one.id })) })
  }
};

// src/demo/document/functions.ts
var number = (value) => typeof value === "string" && value.trim() === "" ? Number.NaN : Number(value);
var text2 = (value) => String(value ?? "");
var finite = (value) => Number.isFinite(value) ? value : "";
var numbers = (values) => values.map(number).filter((value) => Number.isFinite(value));
function quantile(sorted, part) {
  const at = (sorted.length - 1) * part;
  const [low, high] = [sorted[Math.floor(at)] ?? Number.NaN, sorted[Math.ceil(at)] ?? Number.NaN];
  return low + (high - low) * (at - Math.floor(at));
}
var FUNCTIONS = {
  abs: (x) => finite(Math.abs(number(x))),
  ceil: (x) => finite(Math.ceil(number(x))),
  floor: (x) => finite(Math.floor(number(x))),
  sqrt: (x) => finite(Math.sqrt(number(x))),
  exp: (x) => finite(Math.exp(number(x))),
  ln: (x) => finite(Math.log(number(x))),
  log: (x) => finite(Math.log10(number(x))),
  sin: (x) => finite(Math.sin(number(x))),
  cos: (x) => finite(Math.cos(number(x))),
  pow: (x, y) => finite(number(x) ** number(y)),
  round: (x, digits = 0) => finite(Math.round(number(x) * 10 ** number(digits)) / 10 ** number(digits)),
  if: (test, then, otherwise = "") => test === true || test === "true" ? then : otherwise,
  includes: (all2, part) => text2(all2).includes(text2(part)),
  beginsWith: (all2, part) => text2(all2).startsWith(text2(part)),
  endsWith: (all2, part) => text2(all2).endsWith(text2(part)),
  concat: (...parts) => parts.map(text2).join(""),
  toUpper: (all2) => text2(all2).toUpperCase(),
  toLower: (all2) => text2(all2).toLowerCase(),
  stringLength: (all2) => text2(all2).length,
  isMissing: (value) => text2(value) === "",
  number: (value) => finite(number(value)),
  string: text2
};
var AGGREGATES = {
  count: (values) => values.filter((value) => text2(value) !== "").length,
  sum: (values) => numbers(values).reduce((sum, value) => sum + value, 0),
  mean: (values) => finite(numbers(values).reduce((sum, value) => sum + value, 0) / numbers(values).length),
  median: (values) => finite(quantile(numbers(values).sort((a, b) => a - b), 0.5)),
  min: (values) => finite(numbers(values).reduce((least, value) => Math.min(least, value), Number.POSITIVE_INFINITY)),
  max: (values) => finite(numbers(values).reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY))
};

// src/demo/document/formula.ts
var MAX_LENGTH = 4e3;
var MAX_DEPTH = 60;
var TOKEN = /\s*(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|`((?:[^`\\]|\\.)*)`|([\p{L}_][\p{L}\p{N}_]*)|(==|!=|<=|>=|≠|≤|≥|[-+*/%^=<>()&|!,×÷]))/uy;
function readFormula(text3, context) {
  if (text3.length > MAX_LENGTH) throw new Refusal(`the formula is longer than ${MAX_LENGTH} characters`);
  const parser = new Parser(tokens(text3), context);
  return parser.whole();
}
function valueOf(context, item2, attribute3, index = 0, depth = 0) {
  if (!attribute3.formula) return item2.values.get(attribute3.id) ?? "";
  if (depth > MAX_DEPTH) return "#the formula refers to itself";
  try {
    return compiled(context, attribute3.formula)({ context, item: item2, index, depth: depth + 1 });
  } catch (thrown) {
    return `#${thrown.message}`;
  }
}
var kept = /* @__PURE__ */ new WeakMap();
function compiled(context, text3) {
  let known = kept.get(context);
  if (known?.version !== context.version) kept.set(context, known = { version: context.version, formulas: /* @__PURE__ */ new Map() });
  const formula2 = known.formulas.get(text3) ?? readFormula(text3, context);
  known.formulas.set(text3, formula2);
  return formula2;
}
function tokens(text3) {
  const found = [];
  let at = 0;
  while (text3.slice(at).trim() !== "") {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text3);
    if (!match) throw new Refusal(`the formula cannot be read at "${text3.slice(at, at + 20)}"`);
    const [, number2, string, quoted, name, operator] = match;
    if (number2 !== void 0) found.push({ kind: "number", text: number2 });
    else if (string !== void 0) found.push({ kind: "string", text: unescaped(string.slice(1, -1)) });
    else if (quoted !== void 0) found.push({ kind: "quoted", text: unescaped(quoted) });
    else if (name !== void 0) found.push({ kind: "name", text: name });
    else found.push({ kind: "operator", text: operator ?? "" });
    at = TOKEN.lastIndex;
  }
  return found;
}
function unescaped(text3) {
  const named = { n: "\n", t: "	", r: "\r" };
  return text3.replace(/\\(?:u([0-9a-fA-F]{4})|(.))/gs, (_, code, one) => code ? String.fromCharCode(Number.parseInt(code, 16)) : named[one] ?? one);
}
var LEVELS = [
  { or: (a, b) => truth(a) || truth(b), "|": (a, b) => truth(a) || truth(b) },
  { and: (a, b) => truth(a) && truth(b), "&": (a, b) => truth(a) && truth(b) },
  {
    "=": equal,
    "==": equal,
    "!=": (a, b) => !equal(a, b),
    "≠": (a, b) => !equal(a, b),
    "<": (a, b) => order(a, b) < 0,
    "<=": (a, b) => order(a, b) <= 0,
    "≤": (a, b) => order(a, b) <= 0,
    ">": (a, b) => order(a, b) > 0,
    ">=": (a, b) => order(a, b) >= 0,
    "≥": (a, b) => order(a, b) >= 0
  },
  { "+": plus, "-": (a, b) => numeric(a, b, (x, y) => x - y) },
  {
    "*": (a, b) => numeric(a, b, (x, y) => x * y),
    "×": (a, b) => numeric(a, b, (x, y) => x * y),
    "/": (a, b) => numeric(a, b, (x, y) => x / y),
    "÷": (a, b) => numeric(a, b, (x, y) => x / y),
    "%": (a, b) => numeric(a, b, (x, y) => x % y)
  }
];
var Parser = class {
  constructor(tokens2, context) {
    this.tokens = tokens2;
    this.context = context;
  }
  tokens;
  context;
  #at = 0;
  #depth = 0;
  whole() {
    const formula2 = this.#level(0);
    const left = this.tokens[this.#at];
    if (left) throw new Refusal(`the formula goes on with "${left.text}" where it should end`);
    return formula2;
  }
  #level(level) {
    const operators = LEVELS[level];
    if (!operators) return this.#signed();
    let formula2 = this.#level(level + 1);
    for (; ; ) {
      const token = this.tokens[this.#at];
      const plain2 = token && (token.kind === "operator" || token.kind === "name");
      const operator = plain2 && Object.hasOwn(operators, token.text) ? operators[token.text] : void 0;
      if (!operator) return formula2;
      this.#at += 1;
      const [left, right] = [formula2, this.#level(level + 1)];
      formula2 = (scope) => operator(left(scope), right(scope));
    }
  }
  #signed() {
    if ((this.#depth += 1) > MAX_DEPTH) throw new Refusal("the formula is nested too deeply");
    try {
      if (this.#take("-")) return minus(this.#signed());
      if (this.#take("!") || this.#take("not")) return not(this.#signed());
      const base2 = this.#primary();
      if (!this.#take("^")) return base2;
      const power = this.#signed();
      return (scope) => numeric(base2(scope), power(scope), (x, y) => x ** y);
    } finally {
      this.#depth -= 1;
    }
  }
  #primary() {
    const token = this.tokens[this.#at];
    this.#at += 1;
    if (!token) throw new Refusal("the formula ends too early");
    if (token.kind === "number") return constant(Number(token.text));
    if (token.kind === "string") return constant(token.text);
    if (token.kind === "quoted") return this.#attribute(token.text);
    if (token.kind === "name") return this.#take("(") ? this.#call(token.text) : this.#named(token.text);
    if (token.text !== "(") throw new Refusal(`the formula has "${token.text}" where a value should be`);
    const inner = this.#level(0);
    if (!this.#take(")")) throw new Refusal('a ")" is missing in the formula');
    return inner;
  }
  #take(text3) {
    const token = this.tokens[this.#at];
    const found = token?.text === text3 && (token.kind === "operator" || token.kind === "name");
    if (found) this.#at += 1;
    return found;
  }
  #named(name) {
    if (attributesOf(this.context).some((one) => one.name === name)) return this.#attribute(name);
    if (name === "true" || name === "false") return constant(name === "true");
    if (name === "pi" || name === "π") return constant(Math.PI);
    if (name === "caseIndex") return ({ index }) => index + 1;
    return this.#attribute(name);
  }
  #attribute(name) {
    const found = attributesOf(this.context).find((one) => one.name === name);
    if (!found) throw new Refusal(`the formula names "${name}", which is no attribute`);
    return ({ context, item: item2, index, depth }) => valueOf(context, item2, found, index, depth);
  }
  #call(name) {
    const args = [];
    while (!this.#take(")")) {
      if (args.length > 0 && !this.#take(",")) throw new Refusal(`the arguments of ${name} do not end`);
      args.push(this.#level(0));
    }
    if (Object.hasOwn(AGGREGATES, name)) {
      const aggregate = AGGREGATES[name];
      const [of] = args;
      let known;
      return (scope) => {
        const each2 = () => scope.context.items.map((item2, index) => of ? of({ ...scope, item: item2, index }) : 1);
        return (known ??= { value: aggregate?.(each2()) }).value;
      };
    }
    const plain2 = Object.hasOwn(FUNCTIONS, name) ? FUNCTIONS[name] : void 0;
    if (!plain2) throw new Refusal(`this page does not know the function ${name}`);
    return (scope) => plain2(...args.map((arg) => arg(scope)));
  }
};
var constant = (value) => () => value;
var minus = (of) => (scope) => numeric(0, of(scope), (_, y) => -y);
var not = (of) => (scope) => !truth(of(scope));
function truth(value) {
  return value === true || value === "true" || typeof value === "number" && value !== 0;
}
function asNumber(value) {
  if (typeof value === "number") return value;
  return typeof value === "string" && value.trim() !== "" ? Number(value) : Number.NaN;
}
function equal(one, other) {
  const [x, y] = [asNumber(one), asNumber(other)];
  return Number.isNaN(x) || Number.isNaN(y) ? String(one ?? "") === String(other ?? "") : x === y;
}
function order(one, other) {
  if (one === "" || other === "" || one == null || other == null) return Number.NaN;
  const [x, y] = [asNumber(one), asNumber(other)];
  if (!Number.isNaN(x) && !Number.isNaN(y)) return x - y;
  return String(one) < String(other) ? -1 : Number(String(one) > String(other));
}
function numeric(one, other, of) {
  const value = of(asNumber(one), asNumber(other));
  return Number.isFinite(value) ? value : "";
}
function plus(one, other) {
  const [x, y] = [asNumber(one), asNumber(other)];
  return Number.isNaN(x) || Number.isNaN(y) ? `${one ?? ""}${other ?? ""}` : x + y;
}

// src/demo/document/cases.ts
var kept2 = /* @__PURE__ */ new WeakMap();
function casesOf(context, collection2, newId) {
  let known = kept2.get(context);
  if (known?.version !== context.version) {
    kept2.set(context, known = { version: context.version, cases: derive(context, newId) });
  }
  return known.cases.get(collection2.id) ?? [];
}
function derive(context, newId) {
  const cases = /* @__PURE__ */ new Map();
  let above = /* @__PURE__ */ new Map();
  context.collections.forEach((collection2, level) => {
    const innermost = level === context.collections.length - 1;
    const found = /* @__PURE__ */ new Map();
    const here = /* @__PURE__ */ new Map();
    context.items.forEach((item2, row) => {
      const parent = above.get(item2);
      const shared = () => JSON.stringify(collection2.attributes.map((attribute3) => valueOf(context, item2, attribute3, row)));
      const key = innermost ? `item ${item2.id}` : `${parent?.id ?? ""} ${shared()}`;
      let one = found.get(key);
      if (!one) {
        one = { id: idOf(context, `${collection2.id} ${key}`, newId), collection: collection2, index: found.size, parent, children: [], items: [] };
        parent?.children.push(one);
        found.set(key, one);
      }
      one.items.push(item2);
      here.set(item2, one);
    });
    cases.set(collection2.id, [...found.values()]);
    above = here;
  });
  return cases;
}
function idOf(context, key, newId) {
  const id2 = context.caseIds.get(key) ?? newId();
  context.caseIds.set(key, id2);
  return id2;
}
function namedValues(context, item2, attributes2) {
  const row = rowOf(context, item2);
  return Object.fromEntries(attributes2.map((attribute3) => [attribute3.name, valueOf(context, item2, attribute3, row)]));
}
function shownCase(context, one) {
  const [first] = one.items;
  return {
    id: one.id,
    ...one.parent && { parent: one.parent.id },
    collection: { id: one.collection.id, name: one.collection.name },
    values: first ? namedValues(context, first, one.collection.attributes) : {},
    children: one.children.map(({ id: id2 }) => id2)
  };
}
function write(attributes2, items2, values) {
  for (const [name, value] of Object.entries(values)) {
    const attribute3 = byName(attributes2, name);
    if (!attribute3 || attribute3.formula) continue;
    for (const item2 of items2) item2.values.set(attribute3.id, value ?? "");
  }
}

// src/demo/document/query.ts
var OPERATORS2 = {
  "==": (a, b) => a === b || String(a) === String(b),
  "!=": (a, b) => String(a) !== String(b),
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b
};
function readQuery(text3, context) {
  if (text3.trim() === "*") return () => true;
  const parts = /^([^=!<>]+)(==|!=|<=|>=|<|>)([^=!<>]+)$/.exec(text3);
  const compare = parts?.[2] && OPERATORS2[parts[2]];
  if (!compare) throw new Refusal(`the query "${text3}" cannot be read`);
  let named = false;
  const side = (raw) => {
    const word = (raw ?? "").trim();
    const attribute3 = attributesOf(context).find(({ name }) => name === word);
    if (attribute3) {
      named = true;
      return (item2) => plain(valueOf(context, item2, attribute3, rowOf(context, item2)));
    }
    return () => plain(word);
  };
  const [left, right] = [side(parts[1]), side(parts[3])];
  if (!named) throw new Refusal(`the query "${text3}" names no attribute`);
  return (item2) => compare(left(item2), right(item2));
}
function plain(value) {
  if (typeof value !== "string") return value;
  if (value === "true" || value === "false") return value === "true";
  return value.trim() !== "" && Number.isFinite(Number(value)) ? Number(value) : value;
}

// src/demo/document/items.ts
var all = (document2, context) => context.collections.flatMap((one) => within(document2, context, one));
var within = (document2, context, one) => casesOf(context, one, () => document2.newId());
var shownItem = (context, item2) => ({ id: item2.id, values: namedValues(context, item2, attributesOf(context)) });
function itemById(context, id2) {
  const found = context.items.find((item2) => item2.id === Number(id2));
  if (!found) throw new Refusal(`there is no item ${id2} in ${context.name}`);
  return found;
}
function itemsOf(document2, context, id2) {
  return all(document2, context).find((one) => one.id === id2)?.items ?? context.items.filter((item2) => item2.id === id2);
}
function caseById(document2, context, id2) {
  const found = all(document2, context).find((one) => one.id === Number(id2));
  if (!found) throw new Refusal(`there is no case ${id2} in ${context.name}`);
  return found;
}
function caseByIndex(document2, context, resource) {
  const found = within(document2, context, neededCollection(context, resource))[Number(resource.selector)];
  if (!found) throw new Refusal(`there is no case at ${resource.selector}`);
  return found;
}
function addItems(document2, context, values) {
  if (context.items.length + values.length > MAX_ITEMS) throw new Refusal(`a data context has at most ${MAX_ITEMS} items`);
  const known = new Set(all(document2, context).map(({ id: id2 }) => id2));
  const attributes2 = attributesOf(context);
  const made = values.map((one) => {
    const item2 = { id: document2.newId(), values: /* @__PURE__ */ new Map() };
    write(attributes2, [item2], one.has("values") ? new Values(one.get("values"), "an item").members : one.members);
    return item2;
  });
  context.items.push(...made);
  document2.changed(context, "createCases");
  const caseIDs = all(document2, context).map(({ id: id2 }) => id2).filter((id2) => !known.has(id2));
  return { success: true, caseIDs, itemIDs: made.map(({ id: id2 }) => id2) };
}
function removeItems(document2, context, items2) {
  const gone = new Set(items2);
  context.items = context.items.filter((item2) => !gone.has(item2));
  for (const { id: id2 } of items2) context.selected.delete(id2);
  document2.changed(context, "deleteCases");
  return items2.map(({ id: id2 }) => id2);
}
function changeMany(document2, context, values) {
  const changed = each(values, "cases").flatMap((one) => {
    const id2 = Number(one.text("id"));
    const items2 = itemsOf(document2, context, id2);
    if (items2.length === 0) return [];
    write(attributesOf(context), items2, new Values(one.get("values"), "a case").members);
    return [id2];
  });
  if (changed.length === 0) throw new Refusal(`none of the cases is in ${context.name}`);
  document2.changed(context, "updateCases");
  return changed;
}
function changeOne(document2, context, items2, values) {
  const [wanted] = each(values, "a case");
  const nested = wanted?.has("values") ? new Values(wanted.get("values"), "a case") : wanted;
  write(attributesOf(context), items2, nested?.members ?? {});
  document2.changed(context, "updateCases");
}
var changedItems = (changedCases) => ({ success: true, values: { changedCases, createdCases: [], deletedCases: [] } });
var item = {
  create: (document2, resource, values) => addItems(document2, contextOf2(document2, resource), each(values, "an item")),
  get(document2, resource) {
    const context = contextOf2(document2, resource);
    const found = context.items[Number(resource.selector)];
    if (!found) throw new Refusal(`there is no item at ${resource.selector}`);
    return { success: true, values: shownItem(context, found) };
  },
  update: (document2, resource, values) => changedItems(changeMany(document2, contextOf2(document2, resource), values)),
  delete(document2, resource, values) {
    const context = contextOf2(document2, resource);
    const found = ids(values).map((id2) => itemById(context, id2));
    return { success: true, values: removeItems(document2, context, found) };
  }
};
var itemByID = {
  get(document2, resource) {
    const context = contextOf2(document2, resource);
    return { success: true, values: shownItem(context, itemById(context, resource.selector)) };
  },
  update(document2, resource, values) {
    const context = contextOf2(document2, resource);
    const found = itemById(context, resource.selector);
    changeOne(document2, context, [found], values);
    return changedItems([found.id]);
  },
  delete(document2, resource) {
    const context = contextOf2(document2, resource);
    return { success: true, values: removeItems(document2, context, [itemById(context, resource.selector)]) };
  }
};
var itemSearch = {
  get(document2, resource) {
    const context = contextOf2(document2, resource);
    return { success: true, values: context.items.filter(readQuery(resource.selector ?? "*", context)).map((one) => shownItem(context, one)) };
  },
  delete(document2, resource) {
    const context = contextOf2(document2, resource);
    return { success: true, values: removeItems(document2, context, context.items.filter(readQuery(resource.selector ?? "", context))) };
  }
};
var oneCase = (find) => ({
  get(document2, resource) {
    const context = contextOf2(document2, resource);
    const found = find(document2, context, resource);
    return { success: true, values: { case: shownCase(context, found), caseIndex: found.index } };
  },
  update(document2, resource, values) {
    const context = contextOf2(document2, resource);
    changeOne(document2, context, find(document2, context, resource).items, values);
    return { success: true };
  },
  delete(document2, resource) {
    const context = contextOf2(document2, resource);
    const found = find(document2, context, resource);
    removeItems(document2, context, found.items);
    return { success: true, values: [found.id] };
  }
});
function search2(document2, resource, passes) {
  const context = contextOf2(document2, resource);
  const test = passes(context);
  const found = within(document2, context, neededCollection(context, resource)).filter(({ items: [first] }) => first && test(first));
  return { success: true, values: found.map((one) => shownCase(context, one)) };
}
function formulaTest(context, text3) {
  const formula2 = readFormula(text3, context);
  return (one) => formula2({ context, item: one, index: rowOf(context, one), depth: 0 }) === true;
}
var items = {
  item,
  itemByID,
  itemByCaseID: {
    get(document2, resource) {
      const context = contextOf2(document2, resource);
      const [first] = caseById(document2, context, resource.selector).items;
      return { success: true, values: shownItem(context, itemById(context, first?.id)) };
    }
  },
  itemSearch,
  itemCount: { get: (document2, resource) => ({ success: true, values: contextOf2(document2, resource).items.length }) },
  case: {
    create(document2, resource, values) {
      const { caseIDs, itemIDs } = addItems(document2, contextOf2(document2, resource), each(values, "a case"));
      return { success: true, values: (caseIDs ?? []).map((id2, index) => ({ id: id2, itemID: itemIDs?.[index] })) };
    },
    update: (document2, resource, values) => ({
      success: true,
      caseIDs: changeMany(document2, contextOf2(document2, resource), values)
    })
  },
  caseByID: oneCase((document2, context, resource) => caseById(document2, context, resource.selector)),
  caseByIndex: oneCase(caseByIndex),
  caseCount: {
    get(document2, resource) {
      const context = contextOf2(document2, resource);
      return { success: true, values: within(document2, context, neededCollection(context, resource)).length };
    }
  },
  caseSearch: {
    get: (document2, resource) => search2(document2, resource, (context) => readQuery(resource.selector ?? "", context))
  },
  caseFormulaSearch: {
    get: (document2, resource) => search2(document2, resource, (context) => formulaTest(context, resource.selector ?? ""))
  },
  allCases: {
    get(document2, resource) {
      const context = contextOf2(document2, resource);
      const collection2 = neededCollection(context, resource);
      const cases = within(document2, context, collection2).map((one) => ({ case: shownCase(context, one), caseIndex: one.index }));
      return { success: true, values: { collection: { id: collection2.id, name: collection2.name }, cases } };
    },
    delete(document2, resource) {
      const context = contextOf2(document2, resource);
      collectionOf2(context, resource);
      removeItems(document2, context, context.items);
      return { success: true };
    }
  }
};

// src/demo/document/selection.ts
function meant(document2, context, values) {
  if (typeof values === "object" && values !== null && "expression" in values && typeof values.expression === "string") {
    return context.items.filter(formulaTest(context, values.expression));
  }
  return ids(values).flatMap((id2) => itemsOf(document2, context, id2));
}
function select2(document2, resource, values, extend) {
  const context = contextOf2(document2, resource);
  const items2 = meant(document2, context, values);
  if (!extend) context.selected.clear();
  for (const { id: id2 } of items2) context.selected.add(id2);
  document2.changed(context, "selectCases");
  return { success: true };
}
var selection = {
  selectionList: {
    get(document2, resource) {
      const context = contextOf2(document2, resource);
      const within2 = collectionOf2(context, resource);
      const values = (within2 ? [within2] : context.collections).flatMap((collection2) => casesOf(context, collection2, () => document2.newId()).filter(({ items: items2 }) => items2.every(({ id: id2 }) => context.selected.has(id2))).map(({ id: id2 }) => ({ caseID: id2, collectionID: collection2.id, collectionName: collection2.name })));
      return { success: true, values };
    },
    create: (document2, resource, values) => select2(document2, resource, values, false),
    update: (document2, resource, values) => select2(document2, resource, values, true)
  }
};

// src/demo/document/dataDocument.ts
var RESOURCES = { ...dataContexts, ...collections, ...items, ...selection, ...components };
var DataDocument = class {
  contexts = [];
  components = [];
  globals = /* @__PURE__ */ new Map();
  frame = { id: 0, name: "Signalbox", title: "Signalbox", version: "1.0", dimensions: { width: 0, height: 0 } };
  #listeners = /* @__PURE__ */ new Set();
  /** The last id that was given. */
  lastId = 0;
  newId() {
    return this.lastId += 1;
  }
  /** Answers a request. What cannot be done is answered too; nothing is thrown. */
  ask = async (request) => {
    try {
      if (typeof request?.resource !== "string") throw new Refusal("a request needs a resource");
      const resource = readResource(request.resource);
      const actions = Object.hasOwn(RESOURCES, resource.kind) ? RESOURCES[resource.kind] : void 0;
      if (!actions) throw new Refusal(`this page has no resource ${resource.kind}`);
      const action = Object.hasOwn(actions, request.action) ? actions[request.action] : void 0;
      if (!action) throw new Refusal(`${request.action} is not supported for ${resource.kind}`);
      return action(this, resource, request.values);
    } catch (thrown) {
      if (!(thrown instanceof Refusal)) console.error(thrown);
      return { success: false, values: { error: thrown.message } };
    }
  };
  /** Listens to the notices of one resource, and returns the function that ends it. */
  listenTo = (resource, listener) => this.listen((notice) => {
    if (notice.resource === resource || notice.resource.startsWith(`${resource}[`)) listener(notice);
  });
  /** Listens to all changes, and returns the function that ends it. */
  listen(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
  /** Tells everybody of a change of a data context. */
  changed(context, operation) {
    context.version += 1;
    this.tell(`dataContextChangeNotice[${context.name}]`, [{ operation, result: { success: true } }]);
  }
  /** Sends a notice to all who listen. */
  tell(resource, values) {
    for (const listener of this.#listeners) listener({ resource, values });
  }
  /** What shows an attribute goes on showing it under its new name. */
  renamed(context, before, now) {
    for (const { specific } of this.components) {
      if (specific.dataContext !== context.name) continue;
      for (const [member, value] of Object.entries(specific)) {
        if (member.endsWith("AttributeName") && value === before) specific[member] = now;
      }
    }
  }
};

// src/demo/document/snapshot.ts
var MAX_LENGTH2 = 2e6;
var KEY = "signalbox.demo.document";
function keep(document2, storage) {
  let waiting = false;
  const write2 = () => {
    waiting = false;
    const contexts = document2.contexts.map((context) => ({
      ...context,
      items: context.items.map(({ id: id2, values }) => ({ id: id2, values: [...values] })),
      selected: [...context.selected],
      caseIds: [...context.caseIds]
    }));
    const snapshot = { lastId: document2.lastId, contexts, components: document2.components, globals: [...document2.globals] };
    const text3 = JSON.stringify(snapshot);
    try {
      if (text3.length <= MAX_LENGTH2) storage.setItem(KEY, text3);
      else storage.removeItem(KEY);
    } catch {
      storage.removeItem(KEY);
    }
  };
  document2.listen(() => {
    if (!waiting) queueMicrotask(write2);
    waiting = true;
  });
}
function restore(document2, storage) {
  try {
    const text3 = storage.getItem(KEY);
    if (!text3) return;
    const { lastId, contexts, components: components2, globals } = JSON.parse(text3);
    for (const context of contexts) {
      const items2 = context.items.map(({ id: id2, values }) => ({ id: id2, values: new Map(values) }));
      document2.contexts.push({ ...context, items: items2, selected: new Set(context.selected), caseIds: new Map(context.caseIds) });
    }
    document2.components = components2;
    for (const [name, value] of globals) document2.globals.set(name, value);
    document2.lastId = lastId;
  } catch {
    storage.removeItem(KEY);
  }
}

// src/demo/views/element.ts
function fill(one, attributes2, children) {
  for (const [name, value] of Object.entries(attributes2)) {
    if (typeof value === "function") one.addEventListener(name, value);
    else if (value === true) one.setAttribute(name, "");
    else if (value !== void 0 && value !== false) one.setAttribute(name, String(value));
  }
  one.append(...children.filter((child) => child !== void 0));
  return one;
}
function html(tag, attributes2 = {}, ...children) {
  return fill(document.createElement(tag), attributes2, children);
}
function svg(tag, attributes2 = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes2, children);
}
function byId(id2) {
  const found = document.getElementById(id2);
  if (!found) throw new Error(`the page has no element ${id2}`);
  return found;
}

// src/demo/views/scale.ts
var MAX_CATEGORIES = 40;
function numberOf(value) {
  if (typeof value === "number") return Number.isFinite(value) ? value : void 0;
  if (typeof value !== "string" || value.trim() === "") return void 0;
  const number2 = Number(value);
  return Number.isFinite(number2) ? number2 : void 0;
}
function isNumeric(values) {
  const there = values.filter((value) => value !== "" && value !== null && value !== void 0);
  return there.length > 0 && there.filter((value) => numberOf(value) !== void 0).length * 2 > there.length;
}
function step(span, parts) {
  const rough = span / parts || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  return ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
}
function linear(values, from, to, zero = false) {
  const least = values.reduce((one, other) => Math.min(one, other), zero ? 0 : Number.POSITIVE_INFINITY);
  const most = values.reduce((one, other) => Math.max(one, other), zero ? 1 : Number.NEGATIVE_INFINITY);
  const [low, high] = Number.isFinite(least) ? [least, most === least ? least + 1 : most] : [0, 1];
  const by = step(high - low, 5);
  const [first, last] = [Math.floor(low / by) * by, Math.ceil(high / by) * by];
  const place = (value) => {
    const number2 = numberOf(value);
    return number2 === void 0 ? void 0 : from + (number2 - first) / (last - first) * (to - from);
  };
  const ticks = [];
  for (let at = first; at <= last + by / 2 && ticks.length < 20; at += by) {
    const value = Number(at.toPrecision(12));
    ticks.push({ at: place(value) ?? from, text: String(value) });
  }
  return { ticks, place };
}
function categories(values, from, to) {
  const names = [...new Set(values.map(String).filter((value) => value !== ""))].slice(0, MAX_CATEGORIES);
  const width = (to - from) / Math.max(names.length, 1);
  const place = (value) => {
    const at = names.indexOf(String(value));
    return at < 0 ? void 0 : from + (at + 0.5) * width;
  };
  return { ticks: names.map((text3) => ({ at: place(text3) ?? from, text: text3 })), place };
}

// src/demo/views/tableView.ts
var MAX_ROWS = 500;
function shownValue(value) {
  if (value === null || value === void 0) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
function tableView(context, key, select3) {
  const attributes2 = attributesOf(context).filter(({ hidden }) => !hidden);
  const shown3 = context.items.slice(0, MAX_ROWS);
  const rest = context.items.length - shown3.length;
  const caption = `${context.title}: ${count2(context.items.length, "case")}, ${context.selected.size} selected${rest > 0 ? `; the first ${MAX_ROWS} are shown` : ""}`;
  const toggle = ({ id: id2 }) => {
    const chosen = new Set(context.selected);
    if (!chosen.delete(id2)) chosen.add(id2);
    select3([...chosen]);
  };
  const head = html(
    "tr",
    {},
    html("th", { scope: "col" }, "Selected"),
    ...attributes2.map(({ title, name, unit }) => html("th", { scope: "col" }, unit ? `${title || name} (${unit})` : title || name))
  );
  const rows2 = shown3.map((item2, row) => {
    const chosen = context.selected.has(item2.id);
    const box = html("input", {
      type: "checkbox",
      checked: chosen,
      "aria-label": `Select case ${row + 1}`,
      "data-focus": `${key}:${item2.id}`,
      change: () => toggle(item2)
    });
    const cells = attributes2.map((attribute3) => {
      const value = valueOf(context, item2, attribute3, row);
      return html("td", { class: typeof value === "number" ? "number" : void 0 }, shownValue(value));
    });
    return html("tr", { class: chosen ? "chosen" : void 0, "data-item": item2.id }, html("td", {}, box), ...cells);
  });
  return html("table", {}, html("caption", {}, caption), html("thead", {}, head), html("tbody", {}, ...rows2));
}
function count2(number2, what) {
  return `${number2} ${what}${number2 === 1 ? "" : "s"}`;
}

// src/demo/views/graphView.ts
var WIDTH = 400;
var HEIGHT = 280;
var AREA = { left: 56, right: WIDTH - 12, top: 10, bottom: HEIGHT - 44 };
var BINS = 10;
function graphView(context, component, select3) {
  const { specific } = component;
  const map2 = component.type === "map";
  const named = (...members) => {
    const name = members.map((member) => specific[member]).find((value2) => typeof value2 === "string");
    return attributesOf(context).find((one) => one.name === name);
  };
  const x = map2 ? named("longitudeAttribute", "longitudeAttributeName") ?? guess(context, /^(lon|lng|long)/i) : named("xAttributeName", "xAttribute");
  const y = map2 ? named("latitudeAttribute", "latitudeAttributeName") ?? guess(context, /^lat/i) : named("yAttributeName", "yAttribute");
  const value = (attribute3, row) => {
    const item2 = context.items[row];
    return attribute3 && item2 ? valueOf(context, item2, attribute3, row) : "";
  };
  const points = context.items.map((item2, row) => ({ item: item2.id, x: value(x, row), y: value(y, row) }));
  const kind2 = kindOf2(component, x, y, points);
  const drawing = draw(kind2, points, x, y, context.selected, select3);
  const names = [x?.name, y?.name].filter(Boolean).join(" and ");
  const said = names ? drawing.said : `${count2(points.length, "case")}; no attribute is on an axis yet.`;
  return svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${component.title}. ${said}`, "data-kind": kind2 },
    svg("title", {}, component.title),
    svg("desc", {}, said),
    ...axes(drawing, x?.name ?? "", drawing.yName ?? y?.name ?? ""),
    ...drawing.marks
  );
}
function guess(context, pattern) {
  return attributesOf(context).find(({ name }) => pattern.test(name));
}
function kindOf2({ specific, type }, x, y, points) {
  if (type === "map") return "scatterPlot";
  if (specific.showConnectingLines === true) return "linePlot";
  if (Array.isArray(specific.adornments)) return "boxPlot";
  if (x && y && specific.pointsAreFusedIntoBars !== true) return "scatterPlot";
  return isNumeric(points.map((point) => x ? point.x : point.y)) ? "histogram" : "bars";
}
function draw(kind2, points, x, y, selected2, select3) {
  if (kind2 === "boxPlot") return boxPlot(points, x, y);
  const values = points.map((point) => x ? point.x : point.y);
  if (kind2 === "histogram") return histogram(values, (x ?? y)?.name ?? "");
  if (kind2 === "bars") return bars(values, (x ?? y)?.name ?? "");
  return pointPlot(kind2, points, x, y, selected2, select3);
}
function scaleOf(values, from, to) {
  if (!isNumeric(values)) return categories(values, from, to);
  return linear(values.map(numberOf).filter((value) => value !== void 0), from, to);
}
function pointPlot(kind2, points, xOf, yOf, selected2, select3) {
  const x = scaleOf(points.map((point) => point.x), AREA.left, AREA.right);
  const y = scaleOf(points.map((point) => point.y), AREA.bottom, AREA.top);
  const placed = points.flatMap((point) => {
    const [left, top] = [x.place(point.x), y.place(point.y)];
    return left === void 0 || top === void 0 ? [] : [{ ...point, left, top }];
  });
  const dots = placed.map(({ item: item2, left, top }) => svg("circle", {
    class: selected2.has(item2) ? "point chosen" : "point",
    cx: left.toFixed(1),
    cy: top.toFixed(1),
    r: 5,
    "data-item": item2,
    click: () => select3([item2])
  }));
  const inOrder = [...placed].sort((one, other) => one.left - other.left);
  const line = inOrder.map(({ left, top }) => `${left.toFixed(1)},${top.toFixed(1)}`).join(" ");
  const marks = kind2 === "linePlot" ? [svg("polyline", { class: "trace", points: line }), ...dots] : dots;
  const chosen = placed.filter(({ item: item2 }) => selected2.has(item2)).length;
  const said = `${yOf?.name ?? ""} against ${xOf?.name ?? ""}: ${count2(placed.length, "case")}${chosen > 0 ? `, ${chosen} selected` : ""}. ${range(points.map((point) => point.x), xOf?.name)} ${range(points.map((point) => point.y), yOf?.name)}`;
  return { marks, x, y, said: said.trim() };
}
function range(values, name) {
  const numbers2 = values.map(numberOf).filter((value) => value !== void 0).sort((one, other) => one - other);
  if (!name || numbers2.length === 0) return "";
  return `${name} from ${numbers2[0]} to ${numbers2.at(-1)}, median ${quantile(numbers2, 0.5)}.`;
}
function histogram(values, name) {
  const numbers2 = values.map(numberOf).filter((value) => value !== void 0);
  const x = linear(numbers2, AREA.left, AREA.right);
  const bins = new Array(BINS).fill(0);
  const width = (AREA.right - AREA.left) / BINS;
  for (const number2 of numbers2) {
    const bin = Math.min(BINS - 1, Math.floor(((x.place(number2) ?? 0) - AREA.left) / width));
    bins[bin] = (bins[bin] ?? 0) + 1;
  }
  const y = linear(bins, AREA.bottom, AREA.top, true);
  const marks = bins.map((number2, bin) => bar(AREA.left + bin * width + 1, y.place(number2) ?? AREA.bottom, width - 2));
  return { marks, x, y, yName: "cases", said: `${name}: ${count2(numbers2.length, "case")} in ${BINS} bins. ${range(values, name)}` };
}
function bars(values, name) {
  const x = categories(values, AREA.left, AREA.right);
  const counted = x.ticks.map(({ at, text: text3 }) => ({ at, text: text3, number: values.filter((value) => String(value) === text3).length }));
  const y = linear(counted.map(({ number: number2 }) => number2), AREA.bottom, AREA.top, true);
  const width = Math.min(40, (AREA.right - AREA.left) / Math.max(counted.length, 1) * 0.7);
  const marks = counted.map(({ at, number: number2 }) => bar(at - width / 2, y.place(number2) ?? AREA.bottom, width));
  return { marks, x, y, yName: "cases", said: `${name}: ${counted.map(({ text: text3, number: number2 }) => `${text3} ${number2}`).join(", ")}.` };
}
function bar(left, top, width) {
  return svg("rect", { class: "bar", x: left.toFixed(1), y: top.toFixed(1), width: width.toFixed(1), height: (AREA.bottom - top).toFixed(1) });
}
function boxPlot(points, xOf, yOf) {
  const measured = yOf ? (point) => point.y : (point) => point.x;
  const grouped = yOf && xOf ? (point) => String(point.x) : () => (yOf ?? xOf)?.name ?? "";
  const x = categories(points.map(grouped), AREA.left, AREA.right);
  const y = linear(points.map((point) => numberOf(measured(point))).filter((value) => value !== void 0), AREA.bottom, AREA.top);
  const said = [];
  const marks = x.ticks.flatMap(({ at, text: text3 }) => {
    const numbers2 = points.filter((point) => grouped(point) === text3).map((point) => numberOf(measured(point))).filter((value) => value !== void 0).sort((one, other) => one - other);
    if (numbers2.length === 0) return [];
    const five = [0, 0.25, 0.5, 0.75, 1].map((part) => quantile(numbers2, part));
    const [least, low, middle, high, most] = five.map((value) => y.place(value) ?? AREA.bottom);
    said.push(`${text3}: least ${five[0]}, median ${five[2]}, most ${five[4]}`);
    const half = 18;
    return [
      svg("path", { class: "axis", d: `M${at} ${least}V${low}M${at} ${high}V${most}` }),
      svg("rect", { class: "box", x: at - half, y: high, width: half * 2, height: Math.max(low - high, 1) }),
      svg("path", { class: "axis", d: `M${at - half} ${middle}H${at + half}` })
    ];
  });
  return { marks, x, y, said: `Box plot. ${said.join("; ")}.` };
}
function axes({ x, y }, xName, yName) {
  const { left, right, top, bottom } = AREA;
  const short5 = (text3) => text3.length > 12 ? `${text3.slice(0, 11)}…` : text3;
  return [
    svg("path", { class: "axis", d: `M${left} ${top}V${bottom}H${right}` }),
    ...x.ticks.map((tick) => svg("text", { class: "tick", x: tick.at.toFixed(1), y: bottom + 14, "text-anchor": "middle" }, short5(tick.text))),
    ...y.ticks.map((tick) => svg("text", { class: "tick", x: left - 5, y: (tick.at + 4).toFixed(1), "text-anchor": "end" }, short5(tick.text))),
    svg("text", { class: "axis-name", x: (left + right) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, xName),
    svg("text", { class: "axis-name", x: -(top + bottom) / 2, y: 13, "text-anchor": "middle", transform: "rotate(-90)" }, yName)
  ];
}

// src/demo/views/canvasView.ts
var CanvasView = class {
  constructor(document2, sets, canvas) {
    this.document = document2;
    this.sets = sets;
    this.canvas = canvas;
    document2.listen(() => this.#soon());
    this.#draw();
  }
  document;
  sets;
  canvas;
  #waiting = false;
  #drawn = /* @__PURE__ */ new Map();
  /** Many changes at once are one drawing. Tabs in the background have no animation frames. */
  #soon() {
    if (this.#waiting) return;
    this.#waiting = true;
    setTimeout(() => {
      this.#waiting = false;
      this.#draw();
    }, 20);
  }
  #draw() {
    const focused = document.activeElement?.getAttribute("data-focus");
    this.sets.replaceChildren(this.#dataSets());
    const { components: components2 } = this.document;
    for (const [id2, { tile }] of this.#drawn) {
      if (components2.some((one) => one.id === id2)) continue;
      tile.remove();
      this.#drawn.delete(id2);
    }
    for (const component of components2) this.#place(component);
    this.canvas.style.height = `${Math.max(192, ...components2.map(({ position: position2, dimensions: dimensions2 }) => position2.top + dimensions2.height + 16))}px`;
    if (focused) document.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
  }
  #context(component) {
    return this.document.contexts.find(({ name }) => name === component.specific.dataContext);
  }
  #place(component) {
    const moved = this.document.globals.get(shownValue(component.specific.globalValueName));
    const signature = `${this.#context(component)?.version} ${moved} ${JSON.stringify(component)}`;
    const before = this.#drawn.get(component.id);
    if (before?.signature === signature) return;
    const tile = this.#tile(component);
    if (before) before.tile.replaceWith(tile);
    else this.canvas.append(tile);
    this.#drawn.set(component.id, { signature, tile });
  }
  #tile(component) {
    const { id: id2, title, type, position: position2, dimensions: dimensions2 } = component;
    const close = html("button", {
      type: "button",
      "aria-label": `Remove ${title}`,
      "data-focus": `remove ${id2}`,
      click: () => void this.document.ask({ action: "delete", resource: `component[${id2}]` })
    }, "✕");
    const tile = html(
      "section",
      { class: "tile", "aria-labelledby": `tile-${id2}`, "data-component": id2, "data-type": type },
      html("header", {}, html("h3", { id: `tile-${id2}` }, title), close),
      html("div", { class: "inside", tabindex: "0", role: "group", "aria-labelledby": `tile-${id2}`, "data-focus": `inside ${id2}` }, this.#inside(component))
    );
    tile.style.left = `${position2.left}px`;
    tile.style.top = `${position2.top}px`;
    tile.style.width = `${dimensions2.width}px`;
    tile.style.height = `${dimensions2.height}px`;
    return tile;
  }
  #inside(component) {
    const { specific, type, id: id2 } = component;
    const context = this.#context(component);
    const select3 = (values) => void this.document.ask({ action: "create", resource: `dataContext[${context?.id}].selectionList`, values });
    if (type === "slider") return this.#slider(component);
    if (type === "calculator") return calculator2();
    if (type === "text") return html("p", {}, shownValue(specific.text));
    if (type === "webView") return link(shownValue(specific.URL ?? specific.url));
    if (!context) return html("p", {}, "There are no data to show.");
    return type === "graph" || type === "map" ? graphView(context, component, select3) : tableView(context, `row ${id2}`, select3);
  }
  #slider(component) {
    const { specific, id: id2, title } = component;
    const number2 = (...members) => members.map((member) => asNumber(specific[member])).find((value) => !Number.isNaN(value));
    const global = shownValue(specific.globalValueName);
    const now = this.document.globals.get(global) ?? number2("value", "lowerBound") ?? 0;
    const output = html("output", {}, ` ${now}`);
    const input = html("input", {
      type: "range",
      min: number2("lowerBound", "min") ?? 0,
      max: number2("upperBound", "max") ?? 10,
      step: number2("step", "multipleOf") ?? "any",
      value: now,
      "data-focus": `slider ${id2}`,
      change: (event) => {
        const value = Number(event.target.value);
        void this.document.ask({ action: "update", resource: `global[${global}]`, values: { value } });
      }
    });
    return html("label", {}, title, " ", input, output);
  }
  #dataSets() {
    const { contexts } = this.document;
    if (contexts.length === 0) return html("p", { id: "no-data" }, "There are no data sets yet.");
    const button = (context, type, what) => html("button", {
      type: "button",
      "aria-label": `Show ${context.title} as a ${what}`,
      "data-focus": `show ${context.id} ${type}`,
      click: () => void this.document.ask({ action: "create", resource: "component", values: { type, dataContext: context.name } })
    }, `as a ${what}`);
    return html("ul", {}, ...contexts.map((context) => {
      const names = context.collections.map(({ name, attributes: attributes2 }) => `${name} (${attributes2.map((one) => one.name).join(", ") || "no attributes"})`);
      const told = `: ${count2(context.items.length, "case")} in ${names.join(", ")}`;
      return html(
        "li",
        { "data-context": context.name },
        html("strong", {}, context.title),
        told,
        button(context, "caseTable", "table"),
        button(context, "graph", "graph")
      );
    }));
  }
};
function link(address) {
  const safe = /^https?:\/\//i.test(address);
  return html("p", {}, safe ? html("a", { href: address, rel: "noopener noreferrer", target: "_blank" }, address) : address);
}
function calculator2() {
  const output = html("output", { role: "status" });
  const empty = {
    id: 0,
    name: "",
    title: "",
    description: "",
    collections: [],
    items: [],
    selected: /* @__PURE__ */ new Set(),
    caseIds: /* @__PURE__ */ new Map(),
    version: 0
  };
  const compute = (event) => {
    const text3 = event.target.value;
    try {
      output.textContent = `= ${shownValue(readFormula(text3, empty)({ context: empty, item: { id: 0, values: /* @__PURE__ */ new Map() }, index: 0, depth: 0 }))}`;
    } catch (thrown) {
      output.textContent = thrown.message;
    }
  };
  return html("label", {}, "Calculation ", html("input", { change: compute }), " ", output);
}

// node_modules/qrcode-generator/dist/qrcode.mjs
var qrcode = function(typeNumber, errorCorrectionLevel) {
  const PAD0 = 236;
  const PAD1 = 17;
  let _typeNumber = typeNumber;
  const _errorCorrectionLevel = QRErrorCorrectionLevel[errorCorrectionLevel];
  let _modules = null;
  let _moduleCount = 0;
  let _dataCache = null;
  const _dataList = [];
  const _this = {};
  const makeImpl = function(test, maskPattern) {
    _moduleCount = _typeNumber * 4 + 17;
    _modules = (function(moduleCount) {
      const modules = new Array(moduleCount);
      for (let row = 0; row < moduleCount; row += 1) {
        modules[row] = new Array(moduleCount);
        for (let col = 0; col < moduleCount; col += 1) {
          modules[row][col] = null;
        }
      }
      return modules;
    })(_moduleCount);
    setupPositionProbePattern(0, 0);
    setupPositionProbePattern(_moduleCount - 7, 0);
    setupPositionProbePattern(0, _moduleCount - 7);
    setupPositionAdjustPattern();
    setupTimingPattern();
    setupTypeInfo(test, maskPattern);
    if (_typeNumber >= 7) {
      setupTypeNumber(test);
    }
    if (_dataCache == null) {
      _dataCache = createData(_typeNumber, _errorCorrectionLevel, _dataList);
    }
    mapData(_dataCache, maskPattern);
  };
  const setupPositionProbePattern = function(row, col) {
    for (let r = -1; r <= 7; r += 1) {
      if (row + r <= -1 || _moduleCount <= row + r) continue;
      for (let c = -1; c <= 7; c += 1) {
        if (col + c <= -1 || _moduleCount <= col + c) continue;
        if (0 <= r && r <= 6 && (c == 0 || c == 6) || 0 <= c && c <= 6 && (r == 0 || r == 6) || 2 <= r && r <= 4 && 2 <= c && c <= 4) {
          _modules[row + r][col + c] = true;
        } else {
          _modules[row + r][col + c] = false;
        }
      }
    }
  };
  const getBestMaskPattern = function() {
    let minLostPoint = 0;
    let pattern = 0;
    for (let i = 0; i < 8; i += 1) {
      makeImpl(true, i);
      const lostPoint = QRUtil.getLostPoint(_this);
      if (i == 0 || minLostPoint > lostPoint) {
        minLostPoint = lostPoint;
        pattern = i;
      }
    }
    return pattern;
  };
  const setupTimingPattern = function() {
    for (let r = 8; r < _moduleCount - 8; r += 1) {
      if (_modules[r][6] != null) {
        continue;
      }
      _modules[r][6] = r % 2 == 0;
    }
    for (let c = 8; c < _moduleCount - 8; c += 1) {
      if (_modules[6][c] != null) {
        continue;
      }
      _modules[6][c] = c % 2 == 0;
    }
  };
  const setupPositionAdjustPattern = function() {
    const pos = QRUtil.getPatternPosition(_typeNumber);
    for (let i = 0; i < pos.length; i += 1) {
      for (let j = 0; j < pos.length; j += 1) {
        const row = pos[i];
        const col = pos[j];
        if (_modules[row][col] != null) {
          continue;
        }
        for (let r = -2; r <= 2; r += 1) {
          for (let c = -2; c <= 2; c += 1) {
            if (r == -2 || r == 2 || c == -2 || c == 2 || r == 0 && c == 0) {
              _modules[row + r][col + c] = true;
            } else {
              _modules[row + r][col + c] = false;
            }
          }
        }
      }
    }
  };
  const setupTypeNumber = function(test) {
    const bits = QRUtil.getBCHTypeNumber(_typeNumber);
    for (let i = 0; i < 18; i += 1) {
      const mod = !test && (bits >> i & 1) == 1;
      _modules[Math.floor(i / 3)][i % 3 + _moduleCount - 8 - 3] = mod;
    }
    for (let i = 0; i < 18; i += 1) {
      const mod = !test && (bits >> i & 1) == 1;
      _modules[i % 3 + _moduleCount - 8 - 3][Math.floor(i / 3)] = mod;
    }
  };
  const setupTypeInfo = function(test, maskPattern) {
    const data2 = _errorCorrectionLevel << 3 | maskPattern;
    const bits = QRUtil.getBCHTypeInfo(data2);
    for (let i = 0; i < 15; i += 1) {
      const mod = !test && (bits >> i & 1) == 1;
      if (i < 6) {
        _modules[i][8] = mod;
      } else if (i < 8) {
        _modules[i + 1][8] = mod;
      } else {
        _modules[_moduleCount - 15 + i][8] = mod;
      }
    }
    for (let i = 0; i < 15; i += 1) {
      const mod = !test && (bits >> i & 1) == 1;
      if (i < 8) {
        _modules[8][_moduleCount - i - 1] = mod;
      } else if (i < 9) {
        _modules[8][15 - i - 1 + 1] = mod;
      } else {
        _modules[8][15 - i - 1] = mod;
      }
    }
    _modules[_moduleCount - 8][8] = !test;
  };
  const mapData = function(data2, maskPattern) {
    let inc = -1;
    let row = _moduleCount - 1;
    let bitIndex = 7;
    let byteIndex = 0;
    const maskFunc = QRUtil.getMaskFunction(maskPattern);
    for (let col = _moduleCount - 1; col > 0; col -= 2) {
      if (col == 6) col -= 1;
      while (true) {
        for (let c = 0; c < 2; c += 1) {
          if (_modules[row][col - c] == null) {
            let dark = false;
            if (byteIndex < data2.length) {
              dark = (data2[byteIndex] >>> bitIndex & 1) == 1;
            }
            const mask = maskFunc(row, col - c);
            if (mask) {
              dark = !dark;
            }
            _modules[row][col - c] = dark;
            bitIndex -= 1;
            if (bitIndex == -1) {
              byteIndex += 1;
              bitIndex = 7;
            }
          }
        }
        row += inc;
        if (row < 0 || _moduleCount <= row) {
          row -= inc;
          inc = -inc;
          break;
        }
      }
    }
  };
  const createBytes = function(buffer, rsBlocks) {
    let offset = 0;
    let maxDcCount = 0;
    let maxEcCount = 0;
    const dcdata = new Array(rsBlocks.length);
    const ecdata = new Array(rsBlocks.length);
    for (let r = 0; r < rsBlocks.length; r += 1) {
      const dcCount = rsBlocks[r].dataCount;
      const ecCount = rsBlocks[r].totalCount - dcCount;
      maxDcCount = Math.max(maxDcCount, dcCount);
      maxEcCount = Math.max(maxEcCount, ecCount);
      dcdata[r] = new Array(dcCount);
      for (let i = 0; i < dcdata[r].length; i += 1) {
        dcdata[r][i] = 255 & buffer.getBuffer()[i + offset];
      }
      offset += dcCount;
      const rsPoly = QRUtil.getErrorCorrectPolynomial(ecCount);
      const rawPoly = qrPolynomial(dcdata[r], rsPoly.getLength() - 1);
      const modPoly = rawPoly.mod(rsPoly);
      ecdata[r] = new Array(rsPoly.getLength() - 1);
      for (let i = 0; i < ecdata[r].length; i += 1) {
        const modIndex = i + modPoly.getLength() - ecdata[r].length;
        ecdata[r][i] = modIndex >= 0 ? modPoly.getAt(modIndex) : 0;
      }
    }
    let totalCodeCount = 0;
    for (let i = 0; i < rsBlocks.length; i += 1) {
      totalCodeCount += rsBlocks[i].totalCount;
    }
    const data2 = new Array(totalCodeCount);
    let index = 0;
    for (let i = 0; i < maxDcCount; i += 1) {
      for (let r = 0; r < rsBlocks.length; r += 1) {
        if (i < dcdata[r].length) {
          data2[index] = dcdata[r][i];
          index += 1;
        }
      }
    }
    for (let i = 0; i < maxEcCount; i += 1) {
      for (let r = 0; r < rsBlocks.length; r += 1) {
        if (i < ecdata[r].length) {
          data2[index] = ecdata[r][i];
          index += 1;
        }
      }
    }
    return data2;
  };
  const createData = function(typeNumber2, errorCorrectionLevel2, dataList) {
    const rsBlocks = QRRSBlock.getRSBlocks(typeNumber2, errorCorrectionLevel2);
    const buffer = qrBitBuffer();
    for (let i = 0; i < dataList.length; i += 1) {
      const data2 = dataList[i];
      buffer.put(data2.getMode(), 4);
      buffer.put(data2.getLength(), QRUtil.getLengthInBits(data2.getMode(), typeNumber2));
      data2.write(buffer);
    }
    let totalDataCount = 0;
    for (let i = 0; i < rsBlocks.length; i += 1) {
      totalDataCount += rsBlocks[i].dataCount;
    }
    if (buffer.getLengthInBits() > totalDataCount * 8) {
      throw "code length overflow. (" + buffer.getLengthInBits() + ">" + totalDataCount * 8 + ")";
    }
    if (buffer.getLengthInBits() + 4 <= totalDataCount * 8) {
      buffer.put(0, 4);
    }
    while (buffer.getLengthInBits() % 8 != 0) {
      buffer.putBit(false);
    }
    while (true) {
      if (buffer.getLengthInBits() >= totalDataCount * 8) {
        break;
      }
      buffer.put(PAD0, 8);
      if (buffer.getLengthInBits() >= totalDataCount * 8) {
        break;
      }
      buffer.put(PAD1, 8);
    }
    return createBytes(buffer, rsBlocks);
  };
  _this.addData = function(data2, mode) {
    mode = mode || "Byte";
    let newData = null;
    switch (mode) {
      case "Numeric":
        newData = qrNumber(data2);
        break;
      case "Alphanumeric":
        newData = qrAlphaNum(data2);
        break;
      case "Byte":
        newData = qr8BitByte(data2);
        break;
      case "Kanji":
        newData = qrKanji(data2);
        break;
      default:
        throw "mode:" + mode;
    }
    _dataList.push(newData);
    _dataCache = null;
  };
  _this.isDark = function(row, col) {
    if (row < 0 || _moduleCount <= row || col < 0 || _moduleCount <= col) {
      throw row + "," + col;
    }
    return _modules[row][col];
  };
  _this.getModuleCount = function() {
    return _moduleCount;
  };
  _this.make = function() {
    if (_typeNumber < 1) {
      let typeNumber2 = 1;
      for (; typeNumber2 < 40; typeNumber2++) {
        const rsBlocks = QRRSBlock.getRSBlocks(typeNumber2, _errorCorrectionLevel);
        const buffer = qrBitBuffer();
        for (let i = 0; i < _dataList.length; i++) {
          const data2 = _dataList[i];
          buffer.put(data2.getMode(), 4);
          buffer.put(data2.getLength(), QRUtil.getLengthInBits(data2.getMode(), typeNumber2));
          data2.write(buffer);
        }
        let totalDataCount = 0;
        for (let i = 0; i < rsBlocks.length; i++) {
          totalDataCount += rsBlocks[i].dataCount;
        }
        if (buffer.getLengthInBits() <= totalDataCount * 8) {
          break;
        }
      }
      _typeNumber = typeNumber2;
    }
    makeImpl(false, getBestMaskPattern());
  };
  _this.createTableTag = function(cellSize, margin) {
    cellSize = cellSize || 2;
    margin = typeof margin == "undefined" ? cellSize * 4 : margin;
    let qrHtml = "";
    qrHtml += '<table style="';
    qrHtml += " border-width: 0px; border-style: none;";
    qrHtml += " border-collapse: collapse;";
    qrHtml += " padding: 0px; margin: " + margin + "px;";
    qrHtml += '">';
    qrHtml += "<tbody>";
    for (let r = 0; r < _this.getModuleCount(); r += 1) {
      qrHtml += "<tr>";
      for (let c = 0; c < _this.getModuleCount(); c += 1) {
        qrHtml += '<td style="';
        qrHtml += " border-width: 0px; border-style: none;";
        qrHtml += " border-collapse: collapse;";
        qrHtml += " padding: 0px; margin: 0px;";
        qrHtml += " width: " + cellSize + "px;";
        qrHtml += " height: " + cellSize + "px;";
        qrHtml += " background-color: ";
        qrHtml += _this.isDark(r, c) ? "#000000" : "#ffffff";
        qrHtml += ";";
        qrHtml += '"/>';
      }
      qrHtml += "</tr>";
    }
    qrHtml += "</tbody>";
    qrHtml += "</table>";
    return qrHtml;
  };
  _this.createSvgTag = function(cellSize, margin, alt, title) {
    let opts = {};
    if (typeof arguments[0] == "object") {
      opts = arguments[0];
      cellSize = opts.cellSize;
      margin = opts.margin;
      alt = opts.alt;
      title = opts.title;
    }
    cellSize = cellSize || 2;
    margin = typeof margin == "undefined" ? cellSize * 4 : margin;
    alt = typeof alt === "string" ? { text: alt } : alt || {};
    alt.text = alt.text || null;
    alt.id = alt.text ? alt.id || "qrcode-description" : null;
    title = typeof title === "string" ? { text: title } : title || {};
    title.text = title.text || null;
    title.id = title.text ? title.id || "qrcode-title" : null;
    const size = _this.getModuleCount() * cellSize + margin * 2;
    let c, mc, r, mr, qrSvg = "", rect;
    rect = "l" + cellSize + ",0 0," + cellSize + " -" + cellSize + ",0 0,-" + cellSize + "z ";
    qrSvg += '<svg version="1.1" xmlns="http://www.w3.org/2000/svg"';
    qrSvg += !opts.scalable ? ' width="' + size + 'px" height="' + size + 'px"' : "";
    qrSvg += ' viewBox="0 0 ' + size + " " + size + '" ';
    qrSvg += ' preserveAspectRatio="xMinYMin meet"';
    qrSvg += title.text || alt.text ? ' role="img" aria-labelledby="' + escapeXml([title.id, alt.id].join(" ").trim()) + '"' : "";
    qrSvg += ">";
    qrSvg += title.text ? '<title id="' + escapeXml(title.id) + '">' + escapeXml(title.text) + "</title>" : "";
    qrSvg += alt.text ? '<description id="' + escapeXml(alt.id) + '">' + escapeXml(alt.text) + "</description>" : "";
    qrSvg += '<rect width="100%" height="100%" fill="white" cx="0" cy="0"/>';
    qrSvg += '<path d="';
    for (r = 0; r < _this.getModuleCount(); r += 1) {
      mr = r * cellSize + margin;
      for (c = 0; c < _this.getModuleCount(); c += 1) {
        if (_this.isDark(r, c)) {
          mc = c * cellSize + margin;
          qrSvg += "M" + mc + "," + mr + rect;
        }
      }
    }
    qrSvg += '" stroke="transparent" fill="black"/>';
    qrSvg += "</svg>";
    return qrSvg;
  };
  _this.createDataURL = function(cellSize, margin) {
    cellSize = cellSize || 2;
    margin = typeof margin == "undefined" ? cellSize * 4 : margin;
    const size = _this.getModuleCount() * cellSize + margin * 2;
    const min = margin;
    const max = size - margin;
    return createDataURL(size, size, function(x, y) {
      if (min <= x && x < max && min <= y && y < max) {
        const c = Math.floor((x - min) / cellSize);
        const r = Math.floor((y - min) / cellSize);
        return _this.isDark(r, c) ? 0 : 1;
      } else {
        return 1;
      }
    });
  };
  _this.createImgTag = function(cellSize, margin, alt) {
    cellSize = cellSize || 2;
    margin = typeof margin == "undefined" ? cellSize * 4 : margin;
    const size = _this.getModuleCount() * cellSize + margin * 2;
    let img = "";
    img += "<img";
    img += ' src="';
    img += _this.createDataURL(cellSize, margin);
    img += '"';
    img += ' width="';
    img += size;
    img += '"';
    img += ' height="';
    img += size;
    img += '"';
    if (alt) {
      img += ' alt="';
      img += escapeXml(alt);
      img += '"';
    }
    img += "/>";
    return img;
  };
  const escapeXml = function(s) {
    let escaped = "";
    for (let i = 0; i < s.length; i += 1) {
      const c = s.charAt(i);
      switch (c) {
        case "<":
          escaped += "&lt;";
          break;
        case ">":
          escaped += "&gt;";
          break;
        case "&":
          escaped += "&amp;";
          break;
        case '"':
          escaped += "&quot;";
          break;
        default:
          escaped += c;
          break;
      }
    }
    return escaped;
  };
  const _createHalfASCII = function(margin) {
    const cellSize = 1;
    margin = typeof margin == "undefined" ? cellSize * 2 : margin;
    const size = _this.getModuleCount() * cellSize + margin * 2;
    const min = margin;
    const max = size - margin;
    let y, x, r1, r2, p;
    const blocks = {
      "██": "█",
      "█ ": "▀",
      " █": "▄",
      "  ": " "
    };
    const blocksLastLineNoMargin = {
      "██": "▀",
      "█ ": "▀",
      " █": " ",
      "  ": " "
    };
    let ascii = "";
    for (y = 0; y < size; y += 2) {
      r1 = Math.floor((y - min) / cellSize);
      r2 = Math.floor((y + 1 - min) / cellSize);
      for (x = 0; x < size; x += 1) {
        p = "█";
        if (min <= x && x < max && min <= y && y < max && _this.isDark(r1, Math.floor((x - min) / cellSize))) {
          p = " ";
        }
        if (min <= x && x < max && min <= y + 1 && y + 1 < max && _this.isDark(r2, Math.floor((x - min) / cellSize))) {
          p += " ";
        } else {
          p += "█";
        }
        ascii += margin < 1 && y + 1 >= max ? blocksLastLineNoMargin[p] : blocks[p];
      }
      ascii += "\n";
    }
    if (size % 2 && margin > 0) {
      return ascii.substring(0, ascii.length - size - 1) + Array(size + 1).join("▀");
    }
    return ascii.substring(0, ascii.length - 1);
  };
  _this.createASCII = function(cellSize, margin) {
    cellSize = cellSize || 1;
    if (cellSize < 2) {
      return _createHalfASCII(margin);
    }
    cellSize -= 1;
    margin = typeof margin == "undefined" ? cellSize * 2 : margin;
    const size = _this.getModuleCount() * cellSize + margin * 2;
    const min = margin;
    const max = size - margin;
    let y, x, r, p;
    const white = Array(cellSize + 1).join("██");
    const black = Array(cellSize + 1).join("  ");
    let ascii = "";
    let line = "";
    for (y = 0; y < size; y += 1) {
      r = Math.floor((y - min) / cellSize);
      line = "";
      for (x = 0; x < size; x += 1) {
        p = 1;
        if (min <= x && x < max && min <= y && y < max && _this.isDark(r, Math.floor((x - min) / cellSize))) {
          p = 0;
        }
        line += p ? white : black;
      }
      for (r = 0; r < cellSize; r += 1) {
        ascii += line + "\n";
      }
    }
    return ascii.substring(0, ascii.length - 1);
  };
  _this.renderTo2dContext = function(context, cellSize) {
    cellSize = cellSize || 2;
    const length = _this.getModuleCount();
    for (let row = 0; row < length; row++) {
      for (let col = 0; col < length; col++) {
        context.fillStyle = _this.isDark(row, col) ? "black" : "white";
        context.fillRect(col * cellSize, row * cellSize, cellSize, cellSize);
      }
    }
  };
  return _this;
};
qrcode.stringToBytes = function(s) {
  const bytes = [];
  for (let i = 0; i < s.length; i += 1) {
    const c = s.charCodeAt(i);
    bytes.push(c & 255);
  }
  return bytes;
};
qrcode.createStringToBytes = function(unicodeData, numChars) {
  const unicodeMap = (function() {
    const bin = base64DecodeInputStream(unicodeData);
    const read7 = function() {
      const b = bin.read();
      if (b == -1) throw "eof";
      return b;
    };
    let count3 = 0;
    const unicodeMap2 = {};
    while (true) {
      const b0 = bin.read();
      if (b0 == -1) break;
      const b1 = read7();
      const b2 = read7();
      const b3 = read7();
      const k = String.fromCharCode(b0 << 8 | b1);
      const v = b2 << 8 | b3;
      unicodeMap2[k] = v;
      count3 += 1;
    }
    if (count3 != numChars) {
      throw count3 + " != " + numChars;
    }
    return unicodeMap2;
  })();
  const unknownChar = "?".charCodeAt(0);
  return function(s) {
    const bytes = [];
    for (let i = 0; i < s.length; i += 1) {
      const c = s.charCodeAt(i);
      if (c < 128) {
        bytes.push(c);
      } else {
        const b = unicodeMap[s.charAt(i)];
        if (typeof b == "number") {
          if ((b & 255) == b) {
            bytes.push(b);
          } else {
            bytes.push(b >>> 8);
            bytes.push(b & 255);
          }
        } else {
          bytes.push(unknownChar);
        }
      }
    }
    return bytes;
  };
};
var QRMode = {
  MODE_NUMBER: 1 << 0,
  MODE_ALPHA_NUM: 1 << 1,
  MODE_8BIT_BYTE: 1 << 2,
  MODE_KANJI: 1 << 3
};
var QRErrorCorrectionLevel = {
  L: 1,
  M: 0,
  Q: 3,
  H: 2
};
var QRMaskPattern = {
  PATTERN000: 0,
  PATTERN001: 1,
  PATTERN010: 2,
  PATTERN011: 3,
  PATTERN100: 4,
  PATTERN101: 5,
  PATTERN110: 6,
  PATTERN111: 7
};
var QRUtil = (function() {
  const PATTERN_POSITION_TABLE = [
    [],
    [6, 18],
    [6, 22],
    [6, 26],
    [6, 30],
    [6, 34],
    [6, 22, 38],
    [6, 24, 42],
    [6, 26, 46],
    [6, 28, 50],
    [6, 30, 54],
    [6, 32, 58],
    [6, 34, 62],
    [6, 26, 46, 66],
    [6, 26, 48, 70],
    [6, 26, 50, 74],
    [6, 30, 54, 78],
    [6, 30, 56, 82],
    [6, 30, 58, 86],
    [6, 34, 62, 90],
    [6, 28, 50, 72, 94],
    [6, 26, 50, 74, 98],
    [6, 30, 54, 78, 102],
    [6, 28, 54, 80, 106],
    [6, 32, 58, 84, 110],
    [6, 30, 58, 86, 114],
    [6, 34, 62, 90, 118],
    [6, 26, 50, 74, 98, 122],
    [6, 30, 54, 78, 102, 126],
    [6, 26, 52, 78, 104, 130],
    [6, 30, 56, 82, 108, 134],
    [6, 34, 60, 86, 112, 138],
    [6, 30, 58, 86, 114, 142],
    [6, 34, 62, 90, 118, 146],
    [6, 30, 54, 78, 102, 126, 150],
    [6, 24, 50, 76, 102, 128, 154],
    [6, 28, 54, 80, 106, 132, 158],
    [6, 32, 58, 84, 110, 136, 162],
    [6, 26, 54, 82, 110, 138, 166],
    [6, 30, 58, 86, 114, 142, 170]
  ];
  const G15 = 1 << 10 | 1 << 8 | 1 << 5 | 1 << 4 | 1 << 2 | 1 << 1 | 1 << 0;
  const G18 = 1 << 12 | 1 << 11 | 1 << 10 | 1 << 9 | 1 << 8 | 1 << 5 | 1 << 2 | 1 << 0;
  const G15_MASK = 1 << 14 | 1 << 12 | 1 << 10 | 1 << 4 | 1 << 1;
  const _this = {};
  const getBCHDigit = function(data2) {
    let digit = 0;
    while (data2 != 0) {
      digit += 1;
      data2 >>>= 1;
    }
    return digit;
  };
  _this.getBCHTypeInfo = function(data2) {
    let d = data2 << 10;
    while (getBCHDigit(d) - getBCHDigit(G15) >= 0) {
      d ^= G15 << getBCHDigit(d) - getBCHDigit(G15);
    }
    return (data2 << 10 | d) ^ G15_MASK;
  };
  _this.getBCHTypeNumber = function(data2) {
    let d = data2 << 12;
    while (getBCHDigit(d) - getBCHDigit(G18) >= 0) {
      d ^= G18 << getBCHDigit(d) - getBCHDigit(G18);
    }
    return data2 << 12 | d;
  };
  _this.getPatternPosition = function(typeNumber) {
    return PATTERN_POSITION_TABLE[typeNumber - 1];
  };
  _this.getMaskFunction = function(maskPattern) {
    switch (maskPattern) {
      case QRMaskPattern.PATTERN000:
        return function(i, j) {
          return (i + j) % 2 == 0;
        };
      case QRMaskPattern.PATTERN001:
        return function(i, j) {
          return i % 2 == 0;
        };
      case QRMaskPattern.PATTERN010:
        return function(i, j) {
          return j % 3 == 0;
        };
      case QRMaskPattern.PATTERN011:
        return function(i, j) {
          return (i + j) % 3 == 0;
        };
      case QRMaskPattern.PATTERN100:
        return function(i, j) {
          return (Math.floor(i / 2) + Math.floor(j / 3)) % 2 == 0;
        };
      case QRMaskPattern.PATTERN101:
        return function(i, j) {
          return i * j % 2 + i * j % 3 == 0;
        };
      case QRMaskPattern.PATTERN110:
        return function(i, j) {
          return (i * j % 2 + i * j % 3) % 2 == 0;
        };
      case QRMaskPattern.PATTERN111:
        return function(i, j) {
          return (i * j % 3 + (i + j) % 2) % 2 == 0;
        };
      default:
        throw "bad maskPattern:" + maskPattern;
    }
  };
  _this.getErrorCorrectPolynomial = function(errorCorrectLength) {
    let a = qrPolynomial([1], 0);
    for (let i = 0; i < errorCorrectLength; i += 1) {
      a = a.multiply(qrPolynomial([1, QRMath.gexp(i)], 0));
    }
    return a;
  };
  _this.getLengthInBits = function(mode, type) {
    if (1 <= type && type < 10) {
      switch (mode) {
        case QRMode.MODE_NUMBER:
          return 10;
        case QRMode.MODE_ALPHA_NUM:
          return 9;
        case QRMode.MODE_8BIT_BYTE:
          return 8;
        case QRMode.MODE_KANJI:
          return 8;
        default:
          throw "mode:" + mode;
      }
    } else if (type < 27) {
      switch (mode) {
        case QRMode.MODE_NUMBER:
          return 12;
        case QRMode.MODE_ALPHA_NUM:
          return 11;
        case QRMode.MODE_8BIT_BYTE:
          return 16;
        case QRMode.MODE_KANJI:
          return 10;
        default:
          throw "mode:" + mode;
      }
    } else if (type < 41) {
      switch (mode) {
        case QRMode.MODE_NUMBER:
          return 14;
        case QRMode.MODE_ALPHA_NUM:
          return 13;
        case QRMode.MODE_8BIT_BYTE:
          return 16;
        case QRMode.MODE_KANJI:
          return 12;
        default:
          throw "mode:" + mode;
      }
    } else {
      throw "type:" + type;
    }
  };
  _this.getLostPoint = function(qrcode2) {
    const moduleCount = qrcode2.getModuleCount();
    let lostPoint = 0;
    for (let row = 0; row < moduleCount; row += 1) {
      for (let col = 0; col < moduleCount; col += 1) {
        let sameCount = 0;
        const dark = qrcode2.isDark(row, col);
        for (let r = -1; r <= 1; r += 1) {
          if (row + r < 0 || moduleCount <= row + r) {
            continue;
          }
          for (let c = -1; c <= 1; c += 1) {
            if (col + c < 0 || moduleCount <= col + c) {
              continue;
            }
            if (r == 0 && c == 0) {
              continue;
            }
            if (dark == qrcode2.isDark(row + r, col + c)) {
              sameCount += 1;
            }
          }
        }
        if (sameCount > 5) {
          lostPoint += 3 + sameCount - 5;
        }
      }
    }
    ;
    for (let row = 0; row < moduleCount - 1; row += 1) {
      for (let col = 0; col < moduleCount - 1; col += 1) {
        let count3 = 0;
        if (qrcode2.isDark(row, col)) count3 += 1;
        if (qrcode2.isDark(row + 1, col)) count3 += 1;
        if (qrcode2.isDark(row, col + 1)) count3 += 1;
        if (qrcode2.isDark(row + 1, col + 1)) count3 += 1;
        if (count3 == 0 || count3 == 4) {
          lostPoint += 3;
        }
      }
    }
    for (let row = 0; row < moduleCount; row += 1) {
      for (let col = 0; col < moduleCount - 6; col += 1) {
        if (qrcode2.isDark(row, col) && !qrcode2.isDark(row, col + 1) && qrcode2.isDark(row, col + 2) && qrcode2.isDark(row, col + 3) && qrcode2.isDark(row, col + 4) && !qrcode2.isDark(row, col + 5) && qrcode2.isDark(row, col + 6)) {
          lostPoint += 40;
        }
      }
    }
    for (let col = 0; col < moduleCount; col += 1) {
      for (let row = 0; row < moduleCount - 6; row += 1) {
        if (qrcode2.isDark(row, col) && !qrcode2.isDark(row + 1, col) && qrcode2.isDark(row + 2, col) && qrcode2.isDark(row + 3, col) && qrcode2.isDark(row + 4, col) && !qrcode2.isDark(row + 5, col) && qrcode2.isDark(row + 6, col)) {
          lostPoint += 40;
        }
      }
    }
    let darkCount = 0;
    for (let col = 0; col < moduleCount; col += 1) {
      for (let row = 0; row < moduleCount; row += 1) {
        if (qrcode2.isDark(row, col)) {
          darkCount += 1;
        }
      }
    }
    const ratio = Math.abs(100 * darkCount / moduleCount / moduleCount - 50) / 5;
    lostPoint += ratio * 10;
    return lostPoint;
  };
  return _this;
})();
var QRMath = (function() {
  const EXP_TABLE = new Array(256);
  const LOG_TABLE = new Array(256);
  for (let i = 0; i < 8; i += 1) {
    EXP_TABLE[i] = 1 << i;
  }
  for (let i = 8; i < 256; i += 1) {
    EXP_TABLE[i] = EXP_TABLE[i - 4] ^ EXP_TABLE[i - 5] ^ EXP_TABLE[i - 6] ^ EXP_TABLE[i - 8];
  }
  for (let i = 0; i < 255; i += 1) {
    LOG_TABLE[EXP_TABLE[i]] = i;
  }
  const _this = {};
  _this.glog = function(n) {
    if (n < 1) {
      throw "glog(" + n + ")";
    }
    return LOG_TABLE[n];
  };
  _this.gexp = function(n) {
    while (n < 0) {
      n += 255;
    }
    while (n >= 256) {
      n -= 255;
    }
    return EXP_TABLE[n];
  };
  return _this;
})();
var qrPolynomial = function(num, shift) {
  if (typeof num.length == "undefined") {
    throw num.length + "/" + shift;
  }
  const _num = (function() {
    let offset = 0;
    while (offset < num.length && num[offset] == 0) {
      offset += 1;
    }
    const _num2 = new Array(num.length - offset + shift);
    for (let i = 0; i < num.length - offset; i += 1) {
      _num2[i] = num[i + offset];
    }
    return _num2;
  })();
  const _this = {};
  _this.getAt = function(index) {
    return _num[index];
  };
  _this.getLength = function() {
    return _num.length;
  };
  _this.multiply = function(e) {
    const num2 = new Array(_this.getLength() + e.getLength() - 1);
    for (let i = 0; i < _this.getLength(); i += 1) {
      for (let j = 0; j < e.getLength(); j += 1) {
        num2[i + j] ^= QRMath.gexp(QRMath.glog(_this.getAt(i)) + QRMath.glog(e.getAt(j)));
      }
    }
    return qrPolynomial(num2, 0);
  };
  _this.mod = function(e) {
    if (_this.getLength() - e.getLength() < 0) {
      return _this;
    }
    const ratio = QRMath.glog(_this.getAt(0)) - QRMath.glog(e.getAt(0));
    const num2 = new Array(_this.getLength());
    for (let i = 0; i < _this.getLength(); i += 1) {
      num2[i] = _this.getAt(i);
    }
    for (let i = 0; i < e.getLength(); i += 1) {
      num2[i] ^= QRMath.gexp(QRMath.glog(e.getAt(i)) + ratio);
    }
    return qrPolynomial(num2, 0).mod(e);
  };
  return _this;
};
var QRRSBlock = (function() {
  const RS_BLOCK_TABLE = [
    // L
    // M
    // Q
    // H
    // 1
    [1, 26, 19],
    [1, 26, 16],
    [1, 26, 13],
    [1, 26, 9],
    // 2
    [1, 44, 34],
    [1, 44, 28],
    [1, 44, 22],
    [1, 44, 16],
    // 3
    [1, 70, 55],
    [1, 70, 44],
    [2, 35, 17],
    [2, 35, 13],
    // 4
    [1, 100, 80],
    [2, 50, 32],
    [2, 50, 24],
    [4, 25, 9],
    // 5
    [1, 134, 108],
    [2, 67, 43],
    [2, 33, 15, 2, 34, 16],
    [2, 33, 11, 2, 34, 12],
    // 6
    [2, 86, 68],
    [4, 43, 27],
    [4, 43, 19],
    [4, 43, 15],
    // 7
    [2, 98, 78],
    [4, 49, 31],
    [2, 32, 14, 4, 33, 15],
    [4, 39, 13, 1, 40, 14],
    // 8
    [2, 121, 97],
    [2, 60, 38, 2, 61, 39],
    [4, 40, 18, 2, 41, 19],
    [4, 40, 14, 2, 41, 15],
    // 9
    [2, 146, 116],
    [3, 58, 36, 2, 59, 37],
    [4, 36, 16, 4, 37, 17],
    [4, 36, 12, 4, 37, 13],
    // 10
    [2, 86, 68, 2, 87, 69],
    [4, 69, 43, 1, 70, 44],
    [6, 43, 19, 2, 44, 20],
    [6, 43, 15, 2, 44, 16],
    // 11
    [4, 101, 81],
    [1, 80, 50, 4, 81, 51],
    [4, 50, 22, 4, 51, 23],
    [3, 36, 12, 8, 37, 13],
    // 12
    [2, 116, 92, 2, 117, 93],
    [6, 58, 36, 2, 59, 37],
    [4, 46, 20, 6, 47, 21],
    [7, 42, 14, 4, 43, 15],
    // 13
    [4, 133, 107],
    [8, 59, 37, 1, 60, 38],
    [8, 44, 20, 4, 45, 21],
    [12, 33, 11, 4, 34, 12],
    // 14
    [3, 145, 115, 1, 146, 116],
    [4, 64, 40, 5, 65, 41],
    [11, 36, 16, 5, 37, 17],
    [11, 36, 12, 5, 37, 13],
    // 15
    [5, 109, 87, 1, 110, 88],
    [5, 65, 41, 5, 66, 42],
    [5, 54, 24, 7, 55, 25],
    [11, 36, 12, 7, 37, 13],
    // 16
    [5, 122, 98, 1, 123, 99],
    [7, 73, 45, 3, 74, 46],
    [15, 43, 19, 2, 44, 20],
    [3, 45, 15, 13, 46, 16],
    // 17
    [1, 135, 107, 5, 136, 108],
    [10, 74, 46, 1, 75, 47],
    [1, 50, 22, 15, 51, 23],
    [2, 42, 14, 17, 43, 15],
    // 18
    [5, 150, 120, 1, 151, 121],
    [9, 69, 43, 4, 70, 44],
    [17, 50, 22, 1, 51, 23],
    [2, 42, 14, 19, 43, 15],
    // 19
    [3, 141, 113, 4, 142, 114],
    [3, 70, 44, 11, 71, 45],
    [17, 47, 21, 4, 48, 22],
    [9, 39, 13, 16, 40, 14],
    // 20
    [3, 135, 107, 5, 136, 108],
    [3, 67, 41, 13, 68, 42],
    [15, 54, 24, 5, 55, 25],
    [15, 43, 15, 10, 44, 16],
    // 21
    [4, 144, 116, 4, 145, 117],
    [17, 68, 42],
    [17, 50, 22, 6, 51, 23],
    [19, 46, 16, 6, 47, 17],
    // 22
    [2, 139, 111, 7, 140, 112],
    [17, 74, 46],
    [7, 54, 24, 16, 55, 25],
    [34, 37, 13],
    // 23
    [4, 151, 121, 5, 152, 122],
    [4, 75, 47, 14, 76, 48],
    [11, 54, 24, 14, 55, 25],
    [16, 45, 15, 14, 46, 16],
    // 24
    [6, 147, 117, 4, 148, 118],
    [6, 73, 45, 14, 74, 46],
    [11, 54, 24, 16, 55, 25],
    [30, 46, 16, 2, 47, 17],
    // 25
    [8, 132, 106, 4, 133, 107],
    [8, 75, 47, 13, 76, 48],
    [7, 54, 24, 22, 55, 25],
    [22, 45, 15, 13, 46, 16],
    // 26
    [10, 142, 114, 2, 143, 115],
    [19, 74, 46, 4, 75, 47],
    [28, 50, 22, 6, 51, 23],
    [33, 46, 16, 4, 47, 17],
    // 27
    [8, 152, 122, 4, 153, 123],
    [22, 73, 45, 3, 74, 46],
    [8, 53, 23, 26, 54, 24],
    [12, 45, 15, 28, 46, 16],
    // 28
    [3, 147, 117, 10, 148, 118],
    [3, 73, 45, 23, 74, 46],
    [4, 54, 24, 31, 55, 25],
    [11, 45, 15, 31, 46, 16],
    // 29
    [7, 146, 116, 7, 147, 117],
    [21, 73, 45, 7, 74, 46],
    [1, 53, 23, 37, 54, 24],
    [19, 45, 15, 26, 46, 16],
    // 30
    [5, 145, 115, 10, 146, 116],
    [19, 75, 47, 10, 76, 48],
    [15, 54, 24, 25, 55, 25],
    [23, 45, 15, 25, 46, 16],
    // 31
    [13, 145, 115, 3, 146, 116],
    [2, 74, 46, 29, 75, 47],
    [42, 54, 24, 1, 55, 25],
    [23, 45, 15, 28, 46, 16],
    // 32
    [17, 145, 115],
    [10, 74, 46, 23, 75, 47],
    [10, 54, 24, 35, 55, 25],
    [19, 45, 15, 35, 46, 16],
    // 33
    [17, 145, 115, 1, 146, 116],
    [14, 74, 46, 21, 75, 47],
    [29, 54, 24, 19, 55, 25],
    [11, 45, 15, 46, 46, 16],
    // 34
    [13, 145, 115, 6, 146, 116],
    [14, 74, 46, 23, 75, 47],
    [44, 54, 24, 7, 55, 25],
    [59, 46, 16, 1, 47, 17],
    // 35
    [12, 151, 121, 7, 152, 122],
    [12, 75, 47, 26, 76, 48],
    [39, 54, 24, 14, 55, 25],
    [22, 45, 15, 41, 46, 16],
    // 36
    [6, 151, 121, 14, 152, 122],
    [6, 75, 47, 34, 76, 48],
    [46, 54, 24, 10, 55, 25],
    [2, 45, 15, 64, 46, 16],
    // 37
    [17, 152, 122, 4, 153, 123],
    [29, 74, 46, 14, 75, 47],
    [49, 54, 24, 10, 55, 25],
    [24, 45, 15, 46, 46, 16],
    // 38
    [4, 152, 122, 18, 153, 123],
    [13, 74, 46, 32, 75, 47],
    [48, 54, 24, 14, 55, 25],
    [42, 45, 15, 32, 46, 16],
    // 39
    [20, 147, 117, 4, 148, 118],
    [40, 75, 47, 7, 76, 48],
    [43, 54, 24, 22, 55, 25],
    [10, 45, 15, 67, 46, 16],
    // 40
    [19, 148, 118, 6, 149, 119],
    [18, 75, 47, 31, 76, 48],
    [34, 54, 24, 34, 55, 25],
    [20, 45, 15, 61, 46, 16]
  ];
  const qrRSBlock = function(totalCount, dataCount) {
    const _this2 = {};
    _this2.totalCount = totalCount;
    _this2.dataCount = dataCount;
    return _this2;
  };
  const _this = {};
  const getRsBlockTable = function(typeNumber, errorCorrectionLevel) {
    switch (errorCorrectionLevel) {
      case QRErrorCorrectionLevel.L:
        return RS_BLOCK_TABLE[(typeNumber - 1) * 4 + 0];
      case QRErrorCorrectionLevel.M:
        return RS_BLOCK_TABLE[(typeNumber - 1) * 4 + 1];
      case QRErrorCorrectionLevel.Q:
        return RS_BLOCK_TABLE[(typeNumber - 1) * 4 + 2];
      case QRErrorCorrectionLevel.H:
        return RS_BLOCK_TABLE[(typeNumber - 1) * 4 + 3];
      default:
        return void 0;
    }
  };
  _this.getRSBlocks = function(typeNumber, errorCorrectionLevel) {
    const rsBlock = getRsBlockTable(typeNumber, errorCorrectionLevel);
    if (typeof rsBlock == "undefined") {
      throw "bad rs block @ typeNumber:" + typeNumber + "/errorCorrectionLevel:" + errorCorrectionLevel;
    }
    const length = rsBlock.length / 3;
    const list6 = [];
    for (let i = 0; i < length; i += 1) {
      const count3 = rsBlock[i * 3 + 0];
      const totalCount = rsBlock[i * 3 + 1];
      const dataCount = rsBlock[i * 3 + 2];
      for (let j = 0; j < count3; j += 1) {
        list6.push(qrRSBlock(totalCount, dataCount));
      }
    }
    return list6;
  };
  return _this;
})();
var qrBitBuffer = function() {
  const _buffer = [];
  let _length = 0;
  const _this = {};
  _this.getBuffer = function() {
    return _buffer;
  };
  _this.getAt = function(index) {
    const bufIndex = Math.floor(index / 8);
    return (_buffer[bufIndex] >>> 7 - index % 8 & 1) == 1;
  };
  _this.put = function(num, length) {
    for (let i = 0; i < length; i += 1) {
      _this.putBit((num >>> length - i - 1 & 1) == 1);
    }
  };
  _this.getLengthInBits = function() {
    return _length;
  };
  _this.putBit = function(bit) {
    const bufIndex = Math.floor(_length / 8);
    if (_buffer.length <= bufIndex) {
      _buffer.push(0);
    }
    if (bit) {
      _buffer[bufIndex] |= 128 >>> _length % 8;
    }
    _length += 1;
  };
  return _this;
};
var qrNumber = function(data2) {
  const _mode = QRMode.MODE_NUMBER;
  const _data = data2;
  const _this = {};
  _this.getMode = function() {
    return _mode;
  };
  _this.getLength = function(buffer) {
    return _data.length;
  };
  _this.write = function(buffer) {
    const data3 = _data;
    let i = 0;
    while (i + 2 < data3.length) {
      buffer.put(strToNum(data3.substring(i, i + 3)), 10);
      i += 3;
    }
    if (i < data3.length) {
      if (data3.length - i == 1) {
        buffer.put(strToNum(data3.substring(i, i + 1)), 4);
      } else if (data3.length - i == 2) {
        buffer.put(strToNum(data3.substring(i, i + 2)), 7);
      }
    }
  };
  const strToNum = function(s) {
    let num = 0;
    for (let i = 0; i < s.length; i += 1) {
      num = num * 10 + chatToNum(s.charAt(i));
    }
    return num;
  };
  const chatToNum = function(c) {
    if ("0" <= c && c <= "9") {
      return c.charCodeAt(0) - "0".charCodeAt(0);
    }
    throw "illegal char :" + c;
  };
  return _this;
};
var qrAlphaNum = function(data2) {
  const _mode = QRMode.MODE_ALPHA_NUM;
  const _data = data2;
  const _this = {};
  _this.getMode = function() {
    return _mode;
  };
  _this.getLength = function(buffer) {
    return _data.length;
  };
  _this.write = function(buffer) {
    const s = _data;
    let i = 0;
    while (i + 1 < s.length) {
      buffer.put(
        getCode(s.charAt(i)) * 45 + getCode(s.charAt(i + 1)),
        11
      );
      i += 2;
    }
    if (i < s.length) {
      buffer.put(getCode(s.charAt(i)), 6);
    }
  };
  const getCode = function(c) {
    if ("0" <= c && c <= "9") {
      return c.charCodeAt(0) - "0".charCodeAt(0);
    } else if ("A" <= c && c <= "Z") {
      return c.charCodeAt(0) - "A".charCodeAt(0) + 10;
    } else {
      switch (c) {
        case " ":
          return 36;
        case "$":
          return 37;
        case "%":
          return 38;
        case "*":
          return 39;
        case "+":
          return 40;
        case "-":
          return 41;
        case ".":
          return 42;
        case "/":
          return 43;
        case ":":
          return 44;
        default:
          throw "illegal char :" + c;
      }
    }
  };
  return _this;
};
var qr8BitByte = function(data2) {
  const _mode = QRMode.MODE_8BIT_BYTE;
  const _data = data2;
  const _bytes = qrcode.stringToBytes(data2);
  const _this = {};
  _this.getMode = function() {
    return _mode;
  };
  _this.getLength = function(buffer) {
    return _bytes.length;
  };
  _this.write = function(buffer) {
    for (let i = 0; i < _bytes.length; i += 1) {
      buffer.put(_bytes[i], 8);
    }
  };
  return _this;
};
var qrKanji = function(data2) {
  const _mode = QRMode.MODE_KANJI;
  const _data = data2;
  const stringToBytes2 = qrcode.stringToBytes;
  !(function(c, code) {
    const test = stringToBytes2(c);
    if (test.length != 2 || (test[0] << 8 | test[1]) != code) {
      throw "sjis not supported.";
    }
  })("友", 38726);
  const _bytes = stringToBytes2(data2);
  const _this = {};
  _this.getMode = function() {
    return _mode;
  };
  _this.getLength = function(buffer) {
    return ~~(_bytes.length / 2);
  };
  _this.write = function(buffer) {
    const data3 = _bytes;
    let i = 0;
    while (i + 1 < data3.length) {
      let c = (255 & data3[i]) << 8 | 255 & data3[i + 1];
      if (33088 <= c && c <= 40956) {
        c -= 33088;
      } else if (57408 <= c && c <= 60351) {
        c -= 49472;
      } else {
        throw "illegal char at " + (i + 1) + "/" + c;
      }
      c = (c >>> 8 & 255) * 192 + (c & 255);
      buffer.put(c, 13);
      i += 2;
    }
    if (i < data3.length) {
      throw "illegal char at " + (i + 1);
    }
  };
  return _this;
};
var byteArrayOutputStream = function() {
  const _bytes = [];
  const _this = {};
  _this.writeByte = function(b) {
    _bytes.push(b & 255);
  };
  _this.writeShort = function(i) {
    _this.writeByte(i);
    _this.writeByte(i >>> 8);
  };
  _this.writeBytes = function(b, off, len) {
    off = off || 0;
    len = len || b.length;
    for (let i = 0; i < len; i += 1) {
      _this.writeByte(b[i + off]);
    }
  };
  _this.writeString = function(s) {
    for (let i = 0; i < s.length; i += 1) {
      _this.writeByte(s.charCodeAt(i));
    }
  };
  _this.toByteArray = function() {
    return _bytes;
  };
  _this.toString = function() {
    let s = "";
    s += "[";
    for (let i = 0; i < _bytes.length; i += 1) {
      if (i > 0) {
        s += ",";
      }
      s += _bytes[i];
    }
    s += "]";
    return s;
  };
  return _this;
};
var base64EncodeOutputStream = function() {
  let _buffer = 0;
  let _buflen = 0;
  let _length = 0;
  let _base64 = "";
  const _this = {};
  const writeEncoded = function(b) {
    _base64 += String.fromCharCode(encode(b & 63));
  };
  const encode = function(n) {
    if (n < 0) {
      throw "n:" + n;
    } else if (n < 26) {
      return 65 + n;
    } else if (n < 52) {
      return 97 + (n - 26);
    } else if (n < 62) {
      return 48 + (n - 52);
    } else if (n == 62) {
      return 43;
    } else if (n == 63) {
      return 47;
    } else {
      throw "n:" + n;
    }
  };
  _this.writeByte = function(n) {
    _buffer = _buffer << 8 | n & 255;
    _buflen += 8;
    _length += 1;
    while (_buflen >= 6) {
      writeEncoded(_buffer >>> _buflen - 6);
      _buflen -= 6;
    }
  };
  _this.flush = function() {
    if (_buflen > 0) {
      writeEncoded(_buffer << 6 - _buflen);
      _buffer = 0;
      _buflen = 0;
    }
    if (_length % 3 != 0) {
      const padlen = 3 - _length % 3;
      for (let i = 0; i < padlen; i += 1) {
        _base64 += "=";
      }
    }
  };
  _this.toString = function() {
    return _base64;
  };
  return _this;
};
var base64DecodeInputStream = function(str) {
  const _str = str;
  let _pos = 0;
  let _buffer = 0;
  let _buflen = 0;
  const _this = {};
  _this.read = function() {
    while (_buflen < 8) {
      if (_pos >= _str.length) {
        if (_buflen == 0) {
          return -1;
        }
        throw "unexpected end of file./" + _buflen;
      }
      const c = _str.charAt(_pos);
      _pos += 1;
      if (c == "=") {
        _buflen = 0;
        return -1;
      } else if (c.match(/^\s$/)) {
        continue;
      }
      _buffer = _buffer << 6 | decode(c.charCodeAt(0));
      _buflen += 6;
    }
    const n = _buffer >>> _buflen - 8 & 255;
    _buflen -= 8;
    return n;
  };
  const decode = function(c) {
    if (65 <= c && c <= 90) {
      return c - 65;
    } else if (97 <= c && c <= 122) {
      return c - 97 + 26;
    } else if (48 <= c && c <= 57) {
      return c - 48 + 52;
    } else if (c == 43) {
      return 62;
    } else if (c == 47) {
      return 63;
    } else {
      throw "c:" + c;
    }
  };
  return _this;
};
var gifImage = function(width, height) {
  const _width = width;
  const _height = height;
  const _data = new Array(width * height);
  const _this = {};
  _this.setPixel = function(x, y, pixel) {
    _data[y * _width + x] = pixel;
  };
  _this.write = function(out) {
    out.writeString("GIF87a");
    out.writeShort(_width);
    out.writeShort(_height);
    out.writeByte(128);
    out.writeByte(0);
    out.writeByte(0);
    out.writeByte(0);
    out.writeByte(0);
    out.writeByte(0);
    out.writeByte(255);
    out.writeByte(255);
    out.writeByte(255);
    out.writeString(",");
    out.writeShort(0);
    out.writeShort(0);
    out.writeShort(_width);
    out.writeShort(_height);
    out.writeByte(0);
    const lzwMinCodeSize = 2;
    const raster = getLZWRaster(lzwMinCodeSize);
    out.writeByte(lzwMinCodeSize);
    let offset = 0;
    while (raster.length - offset > 255) {
      out.writeByte(255);
      out.writeBytes(raster, offset, 255);
      offset += 255;
    }
    out.writeByte(raster.length - offset);
    out.writeBytes(raster, offset, raster.length - offset);
    out.writeByte(0);
    out.writeString(";");
  };
  const bitOutputStream = function(out) {
    const _out = out;
    let _bitLength = 0;
    let _bitBuffer = 0;
    const _this2 = {};
    _this2.write = function(data2, length) {
      if (data2 >>> length != 0) {
        throw "length over";
      }
      while (_bitLength + length >= 8) {
        _out.writeByte(255 & (data2 << _bitLength | _bitBuffer));
        length -= 8 - _bitLength;
        data2 >>>= 8 - _bitLength;
        _bitBuffer = 0;
        _bitLength = 0;
      }
      _bitBuffer = data2 << _bitLength | _bitBuffer;
      _bitLength = _bitLength + length;
    };
    _this2.flush = function() {
      if (_bitLength > 0) {
        _out.writeByte(_bitBuffer);
      }
    };
    return _this2;
  };
  const getLZWRaster = function(lzwMinCodeSize) {
    const clearCode = 1 << lzwMinCodeSize;
    const endCode = (1 << lzwMinCodeSize) + 1;
    let bitLength = lzwMinCodeSize + 1;
    const table2 = lzwTable();
    for (let i = 0; i < clearCode; i += 1) {
      table2.add(String.fromCharCode(i));
    }
    table2.add(String.fromCharCode(clearCode));
    table2.add(String.fromCharCode(endCode));
    const byteOut = byteArrayOutputStream();
    const bitOut = bitOutputStream(byteOut);
    bitOut.write(clearCode, bitLength);
    let dataIndex = 0;
    let s = String.fromCharCode(_data[dataIndex]);
    dataIndex += 1;
    while (dataIndex < _data.length) {
      const c = String.fromCharCode(_data[dataIndex]);
      dataIndex += 1;
      if (table2.contains(s + c)) {
        s = s + c;
      } else {
        bitOut.write(table2.indexOf(s), bitLength);
        if (table2.size() < 4095) {
          if (table2.size() == 1 << bitLength) {
            bitLength += 1;
          }
          table2.add(s + c);
        }
        s = c;
      }
    }
    bitOut.write(table2.indexOf(s), bitLength);
    bitOut.write(endCode, bitLength);
    bitOut.flush();
    return byteOut.toByteArray();
  };
  const lzwTable = function() {
    const _map = {};
    let _size = 0;
    const _this2 = {};
    _this2.add = function(key) {
      if (_this2.contains(key)) {
        throw "dup key:" + key;
      }
      _map[key] = _size;
      _size += 1;
    };
    _this2.size = function() {
      return _size;
    };
    _this2.indexOf = function(key) {
      return _map[key];
    };
    _this2.contains = function(key) {
      return typeof _map[key] != "undefined";
    };
    return _this2;
  };
  return _this;
};
var createDataURL = function(width, height, getPixel) {
  const gif = gifImage(width, height);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      gif.setPixel(x, y, getPixel(x, y));
    }
  }
  const b = byteArrayOutputStream();
  gif.write(b);
  const base64 = base64EncodeOutputStream();
  const bytes = b.toByteArray();
  for (let i = 0; i < bytes.length; i += 1) {
    base64.writeByte(bytes[i]);
  }
  base64.flush();
  return "data:image/gif;base64," + base64;
};
var qrcode_default = qrcode;
var stringToBytes = qrcode.stringToBytes;

// src/demo/views/qrView.ts
var QUIET = 4;
function qrView(text3, label) {
  const code = qrcode_default(0, "M");
  code.addData(text3);
  code.make();
  const size = code.getModuleCount();
  let path = "";
  for (let row = 0; row < size; row += 1) {
    for (let column = 0; column < size; column += 1) if (code.isDark(row, column)) path += `M${column + QUIET} ${row + QUIET}h1v1h-1z`;
  }
  const whole = size + 2 * QUIET;
  return svg(
    "svg",
    { viewBox: `0 0 ${whole} ${whole}`, role: "img", "aria-label": label, "shape-rendering": "crispEdges" },
    svg("rect", { width: whole, height: whole, fill: "#fff" }),
    svg("path", { d: path, fill: "#000" })
  );
}

// src/demo/views/words.ts
function words({ state, standby, transport, reason, error, retryIn }) {
  const seconds = Math.ceil((retryIn ?? 0) / 1e3);
  switch (state) {
    case "connected":
      return standby ? "Connected, and standing by: another page serves this session." : `Connected${transport === "poll" ? " by polling" : ""}. Calls are answered here.`;
    case "connecting":
      return "Connecting…";
    case "reconnecting":
      return `Connection lost (${reason}). Trying again in ${seconds} s.`;
    case "error":
      return error === "session_expired" || error === "session_not_found" ? "The session is over or does not exist. Start a new one, or join another." : `Not connected: ${reason}`;
    default:
      return standby ? `Standing by: ${reason}.` : "Not connected.";
  }
}

// src/demo/views/connectionView.ts
var ConnectionView = class {
  #state = byId("state");
  #code = byId("code");
  #error = byId("code-error");
  #leave = byId("leave");
  #session = byId("session");
  constructor(actions) {
    byId("join").addEventListener("submit", (event) => {
      event.preventDefault();
      const code = this.#code.value.trim();
      const wrong2 = !/^[A-Za-z0-9]{8}(\.\S+)?$/.test(code);
      this.#error.textContent = wrong2 ? "A session code has eight letters and digits." : "";
      this.#code.setAttribute("aria-invalid", String(wrong2));
      if (wrong2) this.#code.focus();
      else actions.join(code);
    });
    byId("create").addEventListener("click", () => actions.create());
    this.#leave.addEventListener("click", () => actions.leave());
  }
  showState(change4) {
    const text3 = words(change4);
    if (this.#state.textContent !== text3) this.#state.textContent = text3;
    this.#state.dataset.state = change4.state;
    this.#state.dataset.standby = String(change4.standby);
    this.#state.dataset.error = change4.error ?? "";
    const serves = change4.state !== "error" && !(change4.state === "disconnected" && !change4.standby);
    this.#leave.disabled = !serves;
    if (!serves) this.#session.hidden = true;
  }
  showSession({ code, joinUrl }, base2) {
    this.#session.hidden = false;
    const shown3 = byId("shown-code");
    shown3.textContent = code;
    shown3.setAttribute("aria-label", [...code].join(" "));
    byId("mcp-address").textContent = `${base2}/api/mcp`;
    const link2 = byId("join-address");
    link2.href = joinUrl;
    link2.textContent = joinUrl.replace(/(#[A-Z0-9]{8})\..*$/, "$1");
    byId("qr").replaceChildren(qrView(joinUrl, "QR code of the address that opens this session on another device"));
  }
};

// src/demo/views/logView.ts
var MAX_CALLS = 200;
var MAX_TEXT = 300;
var short4 = (value) => {
  const text3 = JSON.stringify(value) ?? "";
  return text3.length > MAX_TEXT ? `${text3.slice(0, MAX_TEXT)}…` : text3;
};
var LogView = class {
  constructor(list6, none) {
    this.list = list6;
    this.none = none;
  }
  list;
  none;
  #lines = /* @__PURE__ */ new Map();
  /** How many calls arrived. */
  seen = 0;
  note({ requestId, tool, args, phase, result, error, duration }) {
    this.none.hidden = true;
    let line = this.#lines.get(requestId);
    if (!line) {
      this.seen += 1;
      line = html("li", { "data-request": requestId, "data-tool": tool });
      this.#lines.set(requestId, line);
      this.list.prepend(line);
    }
    const time = duration === void 0 ? "" : ` in ${Math.round(duration)} ms`;
    const failed = error !== void 0;
    const words2 = { started: "runs", answered: failed ? "failed" : "done", repeated: "answered again", cancelled: "cancelled" };
    line.dataset.phase = phase;
    line.dataset.error = error?.type ?? "";
    line.replaceChildren(
      html("strong", {}, tool),
      " ",
      html("code", {}, short4(args)),
      " — ",
      html("span", { class: failed ? "failed" : phase === "started" ? void 0 : "done" }, words2[phase] + time),
      " ",
      phase === "started" ? "" : html("code", {}, failed ? error.message : short4(result))
    );
    this.#bound();
  }
  #bound() {
    for (const [id2, line] of this.#lines) {
      if (this.#lines.size <= MAX_CALLS) return;
      line.remove();
      this.#lines.delete(id2);
    }
  }
};

// src/demo/page.ts
var base = new URL("../..", import.meta.url).href.replace(/\/$/, "");
var data = new DataDocument();
restore(data, sessionStorage);
keep(data, sessionStorage);
new CanvasView(data, byId("data-sets"), byId("canvas"));
var log = new LogView(byId("log"), byId("calls-none"));
var handlers = toolHandlers(data.ask, data.listenTo);
var worker;
var view = new ConnectionView({
  join: (code) => serve({ code }),
  create: () => serve({ fresh: true }),
  leave() {
    worker?.stop();
    worker = void 0;
    history.replaceState(null, "", location.pathname);
    byId("code").focus();
  }
});
function serve(options) {
  worker?.stop();
  worker = connect({ url: base, handlers, ...options });
  worker.on("state", (change4) => view.showState(change4));
  worker.on("call", (event) => log.note(event));
  worker.on("problem", ({ message }) => console.warn(message));
  worker.on("session", (session) => {
    history.replaceState(null, "", `#${session.code}`);
    view.showSession(session, base);
  });
}
var joined = location.hash.slice(1);
if (/^[A-Za-z0-9]{8}(\.\S+)?$/.test(joined)) serve({ code: joined });
window.addEventListener("hashchange", () => {
  const code = location.hash.slice(1);
  if (/^[A-Za-z0-9]{8}(\.\S+)?$/.test(code) && code.slice(0, 8).toUpperCase() !== worker?.session?.code) serve({ code });
});
