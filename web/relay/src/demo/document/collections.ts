import type { DataDocument } from "./dataDocument.ts";
import {
  attributesOf, byName, MAX_ATTRIBUTES, MAX_COLLECTIONS, Refusal, type Answer, type Attribute, type Collection, type DataContext,
} from "./model.ts";
import { attributeOf, collectionOf, contextOf, neededCollection, type Resource } from "./resource.ts";
import { each, Values } from "./values.ts";

/** An attribute, as CODAP shows it. */
function shownAttribute({ id, name, title, type, description, formula, unit, precision, editable, hidden }: Attribute) {
  return {
    name, type, title, description, editable, hidden, renameable: true, deleteable: true, ...(formula && { formula }), guid: id, id,
    ...(precision !== undefined && { precision }), ...(unit && { unit }),
  };
}

/** A collection, as CODAP shows it. */
export function shownCollection(context: DataContext, collection: Collection): Record<string, unknown> {
  const { id, name, title, description, labels } = collection;
  const parent = context.collections[context.collections.indexOf(collection) - 1];
  return {
    attrs: collection.attributes.map(shownAttribute), guid: id, id, name, title, ...(description && { description }), ...(labels && { labels }),
    ...(parent && { parent: parent.id }), type: "DG.Collection",
  };
}

/** Makes a collection in a data context, at the place that its parent gives it. */
export function makeCollection(document: DataDocument, context: DataContext, values: Values): Collection {
  const name = values.text("name");
  if (!name) throw new Refusal("a collection needs a name");
  const same = context.collections.find((one) => one.name === name);
  if (same) return same;
  const [first] = context.collections;
  if (context.collections.length === 1 && first?.attributes.length === 0 && context.items.length === 0) context.collections = [];
  if (context.collections.length >= MAX_COLLECTIONS) throw new Refusal(`there are ${MAX_COLLECTIONS} collections already`);
  const collection: Collection = {
    id: document.newId(), name, title: values.text("title") ?? name, description: values.text("description") ?? "", attributes: [],
    labels: values.has("labels") ? new Values(values.get("labels"), "labels").members : undefined,
  };
  for (const attribute of [...values.list("attributes"), ...values.list("attrs")]) {
    makeAttribute(document, context, collection, new Values(attribute, "an attribute"));
  }
  const parent = values.text("parent");
  const above = parent === undefined ? undefined : byName(context.collections, parent);
  const place = above ? context.collections.indexOf(above) + 1 : parent === undefined ? context.collections.length : 0;
  context.collections.splice(place, 0, collection);
  return collection;
}

function makeAttribute(document: DataDocument, context: DataContext, collection: Collection, values: Values): Attribute {
  const name = values.text("name");
  if (!name) throw new Refusal("an attribute needs a name");
  const same = attributesOf(context).find((one) => one.name === name);
  if (same) return same;
  if (attributesOf(context).length >= MAX_ATTRIBUTES) throw new Refusal(`there are ${MAX_ATTRIBUTES} attributes already`);
  const attribute: Attribute = {
    id: document.newId(), name, title: name, type: undefined, description: "", formula: "", unit: "", precision: undefined, editable: true,
    hidden: false,
  };
  change(attribute, values);
  collection.attributes.push(attribute);
  return attribute;
}

function change(attribute: Attribute, values: Values): void {
  attribute.title = values.text("title") ?? (attribute.title === attribute.name ? values.text("name") : undefined) ?? attribute.title;
  attribute.name = values.text("name") || attribute.name;
  attribute.type = values.text("type") ?? attribute.type;
  attribute.description = values.text("description") ?? attribute.description;
  attribute.formula = values.text("formula") ?? attribute.formula;
  attribute.unit = values.text("unit") ?? attribute.unit;
  attribute.precision = values.number("precision") ?? attribute.precision;
  if (values.has("editable")) attribute.editable = values.get("editable") === true;
  if (values.has("hidden")) attribute.hidden = values.get("hidden") === true;
}

const short = ({ id, name, title }: Collection | Attribute) => ({ name, guid: id, title, id });

const collection = {
  create(document: DataDocument, resource: Resource, values: unknown): Answer {
    const context = contextOf(document, resource);
    const made = each(values, "a collection").map((one) => makeCollection(document, context, one));
    document.changed(context, "createCollection");
    return { success: true, values: made.map(({ id, name }) => ({ id, name })) };
  },
  get(document: DataDocument, resource: Resource): Answer {
    const context = contextOf(document, resource);
    return { success: true, values: shownCollection(context, neededCollection(context, resource)) };
  },
  update(document: DataDocument, resource: Resource, values: unknown): Answer {
    const context = contextOf(document, resource);
    const found = neededCollection(context, resource);
    const [wanted] = each(values, "a collection");
    const name = wanted?.text("name");
    if (name && context.collections.some((one) => one.name === name && one !== found)) throw new Refusal(`there is a collection ${name} already`);
    found.title = wanted?.text("title") ?? (found.title === found.name && name ? name : found.title);
    found.name = name || found.name;
    if (wanted?.has("labels")) found.labels = new Values(wanted.get("labels"), "labels").members;
    document.changed(context, "updateCollection");
    return { success: true };
  },
  delete(document: DataDocument, resource: Resource): Answer {
    const context = contextOf(document, resource);
    const found = neededCollection(context, resource);
    context.collections = context.collections.filter((one) => one !== found);
    for (const { id } of found.attributes) for (const item of context.items) item.values.delete(id);
    // Without a collection there are no cases.
    if (context.collections.length === 0) {
      context.items = [];
      context.selected.clear();
      makeCollection(document, context, new Values({ name: "Cases" }, "a collection"));
    }
    document.changed(context, "deleteCollection");
    return { success: true, values: { collections: [found.id] } };
  },
};

const attribute = {
  create(document: DataDocument, resource: Resource, values: unknown): Answer {
    const context = contextOf(document, resource);
    const into = collectionOf(context, resource) ?? context.collections.at(-1);
    if (!into) throw new Refusal(`there is no collection in ${context.name}`);
    const made = each(values, "an attribute").map((one) => makeAttribute(document, context, into, one));
    document.changed(context, "createAttributes");
    return { success: true, values: { attrs: made.map(shownAttribute) } };
  },
  get(document: DataDocument, resource: Resource): Answer {
    return { success: true, values: shownAttribute(attributeOf(contextOf(document, resource), resource).attribute) };
  },
  update(document: DataDocument, resource: Resource, values: unknown): Answer {
    const context = contextOf(document, resource);
    const found = attributeOf(context, resource).attribute;
    const [wanted] = each(values, "an attribute");
    const name = wanted?.text("name");
    if (name && attributesOf(context).some((one) => one.name === name && one !== found)) throw new Refusal(`there is an attribute ${name} already`);
    if (wanted) {
      document.renamed(context, found.name, name || found.name);
      change(found, wanted);
    }
    document.changed(context, "updateAttributes");
    return { success: true, values: { attrs: [shownAttribute(found)] } };
  },
  delete(document: DataDocument, resource: Resource): Answer {
    const context = contextOf(document, resource);
    const { attribute: found, collection: from } = attributeOf(context, resource);
    from.attributes = from.attributes.filter((one) => one !== found);
    for (const item of context.items) item.values.delete(found.id);
    document.changed(context, "deleteAttributes");
    return { success: true };
  },
};

const attributeLocation = {
  update(document: DataDocument, resource: Resource, values: unknown): Answer {
    const context = contextOf(document, resource);
    const { attribute: found, collection: from } = attributeOf(context, resource);
    const [wanted] = each(values, "a place");
    const name = wanted?.text("collection");
    const parent = context.collections[context.collections.indexOf(from) - 1];
    const into = name === undefined ? from : name === "parent" ? parent : byName(context.collections, name);
    if (!into) throw new Refusal(`there is no collection ${name} in ${context.name}`);
    from.attributes = from.attributes.filter((one) => one !== found);
    const place = Math.round(wanted?.number("position") ?? into.attributes.length);
    into.attributes.splice(Math.min(Math.max(place, 0), into.attributes.length), 0, found);
    document.changed(context, "moveAttribute");
    return { success: true };
  },
};

export const collections = {
  collection,
  collectionList: {
    get: (document: DataDocument, resource: Resource): Answer => ({
      success: true, values: contextOf(document, resource).collections.map(short),
    }),
  },
  attribute,
  attributeList: {
    get(document: DataDocument, resource: Resource): Answer {
      const context = contextOf(document, resource);
      const within = collectionOf(context, resource);
      return { success: true, values: (within?.attributes ?? attributesOf(context)).map(short) };
    },
  },
  attributeLocation,
};
