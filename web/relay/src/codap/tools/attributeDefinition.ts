import { type Arguments, present } from "./arguments.ts";

/** The types of attributes that the tools know. */
export const TYPES = ["numeric", "categorical", "date", "boundary", "qualitative"] as const;
export type AttributeType = (typeof TYPES)[number];

/** An attribute as CODAP is told of it. */
export interface AttributeDefinition {
  name: string;
  type?: AttributeType;
  description?: string;
  unit?: string;
  formula?: string;
}

/** Everything about an attribute but its name. */
export function attributeProperties(args: Arguments): Omit<AttributeDefinition, "name"> {
  return present({
    type: args.oneOf("type", TYPES),
    description: args.optionalText("description"),
    unit: args.optionalText("unit"),
    formula: args.optionalText("formula"),
  });
}

/** The attribute that an object describes. */
export function attributeDefinition(args: Arguments): AttributeDefinition {
  return { name: args.text("name"), ...attributeProperties(args) };
}

/** The attributes in a list of the arguments, where there is one. */
export function attributes(args: Arguments, name: string): AttributeDefinition[] | undefined {
  return args.optionalObjects(name)?.map(attributeDefinition);
}

/** What CODAP answers about one attribute: CODAP 3 in a list of one, CODAP 2 as it is or not at all. */
export function answered(values: unknown, definition: object): unknown {
  if (typeof values !== "object" || values === null) return definition;
  const { attrs } = values as { attrs?: unknown };
  return Array.isArray(attrs) ? (attrs[0] ?? definition) : values;
}
