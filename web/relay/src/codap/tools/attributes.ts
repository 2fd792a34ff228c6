import { type Arguments, wrong } from "./arguments.ts";
import { answered, attributeDefinition, attributeProperties, type AttributeDefinition } from "./attributeDefinition.ts";
import type { Codap, Tools } from "./codap.ts";
import { collectionOf, DOCUMENT, LATER, type Naming } from "./collections.ts";
import type { CollectionResource } from "./resource.ts";

async function create(collection: CollectionResource, attribute: AttributeDefinition, codap: Codap) {
  const { values } = await codap.create(collection.of("attribute"), [attribute]);
  return { attribute: answered(values, attribute) };
}

async function list(collection: CollectionResource, codap: Codap) {
  const attributes = await codap.list(collection.of("attributeList"));
  return { attributes, count: attributes.length };
}

async function read(args: Arguments, naming: Naming, argument: string, codap: Codap) {
  const { values } = await codap.get(collectionOf(args, naming).attribute(args.text(argument), argument));
  return { attribute: values };
}

async function update(resource: string, name: string, changes: object, codap: Codap) {
  if (Object.keys(changes).length === 0) throw wrong("arguments", "must hold something to change");
  const { values } = await codap.update(resource, changes);
  return { updated: true, attribute: answered(values, { name, ...changes }) };
}

async function remove(args: Arguments, naming: Naming, argument: string, codap: Codap) {
  const name = args.text(argument);
  await codap.delete(collectionOf(args, naming).attribute(name, argument));
  return { deleted: true, attribute: { name } };
}

async function reorder(args: Arguments, codap: Codap) {
  const collection = collectionOf(args, DOCUMENT);
  const name = args.text("attributeName");
  const position = args.number("newPosition", { whole: true, min: 0 });
  await codap.update(collection.attributeLocation(name, "attributeName"), { collection: collection.name, position });
  return { updated: true, attribute: { name, collection: collection.name, position } };
}

/** Tools for the columns of a collection. */
export const attributeTools: Tools = {
  create_attribute: (args, codap) => {
    const name = args.text("attributeName");
    args.text("type");
    return create(collectionOf(args, DOCUMENT), { name, ...attributeProperties(args) }, codap);
  },
  get_attributes: (args, codap) => list(collectionOf(args, DOCUMENT), codap),
  get_attribute: (args, codap) => read(args, DOCUMENT, "attributeName", codap),
  update_attribute: (args, codap) => {
    const name = args.text("attributeName");
    const newName = args.optionalText("newName") === undefined ? {} : { name: args.text("newName") };
    return update(collectionOf(args, DOCUMENT).attribute(name, "attributeName"), name, { ...newName, ...attributeProperties(args) }, codap);
  },
  delete_attribute: async (args, codap) => {
    args.confirmed();
    return remove(args, DOCUMENT, "attributeName", codap);
  },
  reorder_attributes: reorder,

  createAttribute: (args, codap) => create(collectionOf(args, LATER), attributeDefinition(args.object("attribute")), codap),
  getAttributeList: (args, codap) => list(collectionOf(args, LATER), codap),
  getAttribute: (args, codap) => read(args, LATER, "attribute", codap),
  updateAttribute: (args, codap) => {
    const attribute = args.object("attribute");
    const name = attribute.text("name");
    return update(collectionOf(args, LATER).attribute(name, attribute.at("name")), name, attributeProperties(attribute), codap);
  },
  deleteAttribute: (args, codap) => remove(args, LATER, "attribute", codap),
};
