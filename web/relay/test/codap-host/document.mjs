// A CODAP document with one data set, as CODAP's documentation shows its answers. It stands for CODAP in tests of the tools:
// it says what CODAP says, and changes nothing. Used by node and by the host page.

export const MAMMALS = { id: 2, name: "Mammals", title: "Mammals of the world" };
export const COLLECTION = { id: 3, name: "Cases", title: "Cases" };
const ATTRIBUTES = [
  { id: 8, name: "Mammal", title: "Mammal", type: "categorical" },
  { id: 9, name: "Mass", title: "Mass", type: "numeric", unit: "kg" },
  { id: 10, name: "Latitude", title: "Latitude", type: "numeric" },
  { id: 11, name: "Longitude", title: "Longitude", type: "numeric" },
];
const LIST = ATTRIBUTES.map(({ id, name, title }) => ({ id, name, title }));
export const ITEMS = [
  { id: 101, values: { Mammal: "Lion", Mass: 250, Note: "not of this collection" } },
  { id: 102, values: { Mammal: "Donkey", Mass: 187, Note: "" } },
  { id: 103, values: { Mammal: "Killer Whale", Mass: 4000, Note: "" } },
];
export const CASES = ITEMS.map(({ values: { Mammal, Mass } }, index) => ({
  id: 13 + index, parent: null, collection: { id: 3, name: "Cases" }, values: { Mammal, Mass }, children: [],
}));
export const SELECTION = [
  { caseID: 13, collectionID: 3, collectionName: "Cases" },
  { caseID: 53, collectionID: 52, collectionName: "Diets" },
];
export const COMPONENTS = [
  { id: 21, hidden: false, type: "game", title: "Relay" },
  { id: 22, hidden: false, type: "caseTable", name: "Mammals", title: "Mammals" },
  { id: 23, hidden: true, type: "calculator", title: "Calculator" },
];
export const FRAME = { id: 21, name: "Relay", title: "Relay", version: "1.0", dimensions: { width: 380, height: 400 }, codapVersion: "3.0.0", lang: "en", savedState: { secret: 1 } };

const ok = (values) => ({ success: true, ...(values !== undefined && { values }) });
const no = (error) => ({ success: false, values: { error } });

/** Of the parts of a selector, what stands in the brackets. */
function parts(resource) {
  return Object.fromEntries([...resource.matchAll(/(\w+)(?:\[([^\]]*)\])?/g)].map(([, key, name]) => [key, name ?? true]));
}

const GET = {
  interactiveFrame: () => ok(FRAME),
  dataContextList: () => ok([MAMMALS]),
  dataContext: () => ok({ ...MAMMALS, collections: [{ ...COLLECTION, attrs: ATTRIBUTES }] }),
  collectionList: () => ok([{ id: 52, name: "Diets", title: "Diets" }, COLLECTION]),
  collection: () => ok({ ...COLLECTION, attrs: ATTRIBUTES }),
  attributeList: () => ok(LIST),
  attribute: ({ attribute }) => {
    const found = ATTRIBUTES.find(({ name }) => name === attribute);
    return found ? ok(found) : no("Attribute not found");
  },
  itemSearch: () => ok(ITEMS),
  itemByID: ({ itemByID }) => {
    const found = ITEMS.find(({ id }) => String(id) === itemByID);
    return found ? ok(found) : no("Item not found");
  },
  itemCount: () => ok(ITEMS.length),
  caseCount: () => ok(CASES.length),
  caseByIndex: ({ caseByIndex }) => CASES[caseByIndex] ? ok({ case: CASES[caseByIndex], caseIndex: Number(caseByIndex) }) : no("Case not found"),
  caseFormulaSearch: () => ok(CASES),
  selectionList: () => ok(SELECTION),
  componentList: () => ok(COMPONENTS),
  component: ({ component }) => {
    const found = COMPONENTS.find(({ id, name }) => String(id) === component || name === component);
    return found ? ok({ ...found, position: { left: 10, top: 20 }, dimensions: { width: 300, height: 200 } }) : no("Component not found");
  },
  global: ({ global }) => ok({ name: global, value: 1 }),
};

const CREATE = {
  dataContext: (_, { name, title }) => ok({ id: 4, name, title: title ?? name }),
  collection: (_, collections) => ok(collections.map(({ name }, index) => ({ id: 35 + index, name }))),
  attribute: (_, attributes) => ok({ attrs: attributes.map((one, index) => ({ id: 60 + index, ...one })) }),
  item: (_, items) => ({ success: true, caseIDs: items.map((_, index) => 57 + index), itemIDs: items.map((_, index) => 201 + index) }),
  selectionList: () => ok(),
  component: (_, { type, title }) => ok({ id: 31, type, title }),
  adornment: (_, { type }) => no(`The ${type} adornment does not currently support create requests.`),
  global: (_, { name, value }) => ok({ id: 10, name, value }),
};

const UPDATE = {
  interactiveFrame: () => ok(),
  dataContext: () => ok(),
  collection: () => ok(),
  attribute: ({ attribute }, values) => ok({ attrs: [{ id: 9, name: attribute, ...values }] }),
  attributeLocation: () => ok(),
  item: (_, changes) => {
    const changedCases = changes.map(({ id }) => id).filter((id) => ITEMS.some((item) => item.id === id));
    return changedCases.length > 0 ? ok({ changedCases, createdCases: [], deletedCases: [] }) : { success: false };
  },
  selectionList: () => ok(),
  component: () => ok(),
};

const DELETE = {
  dataContext: () => ok(),
  collection: () => ok({ collections: [3] }),
  attribute: () => ok(),
  itemByID: ({ itemByID }) => ITEMS.some(({ id }) => String(id) === itemByID) ? ok([Number(itemByID)]) : no("Item not found"),
  component: () => ok(),
};

const TABLES = { get: GET, create: CREATE, update: UPDATE, delete: DELETE, notify: {} };

/** What CODAP says to one request. */
export function answer({ action, resource, values }) {
  const named = parts(resource);
  const type = Object.keys(named).at(-1);
  if (typeof named.dataContext === "string" && ![String(MAMMALS.id), MAMMALS.name, MAMMALS.title].includes(named.dataContext)) return no("DataContext not found");
  if (typeof named.collection === "string" && !["3", "Cases", "Diets"].includes(named.collection)) return no("Collection not found");
  const say = TABLES[action]?.[type];
  return say ? say(named, values) : no(`Unsupported action: ${action}/${type}`);
}
