/** The most of each kind that the document holds: a page has only so much memory. */
export const MAX_CONTEXTS = 100;
export const MAX_COLLECTIONS = 20;
export const MAX_ATTRIBUTES = 500;
export const MAX_ITEMS = 50_000;
export const MAX_COMPONENTS = 100;

/** A column of the data. */
export interface Attribute {
  readonly id: number;
  name: string;
  title: string;
  type: string | undefined;
  description: string;
  formula: string;
  unit: string;
  precision: number | undefined;
  editable: boolean;
  hidden: boolean;
}

/** A level of the hierarchy. Collections of a data context stand from the outermost to the innermost. */
export interface Collection {
  readonly id: number;
  name: string;
  title: string;
  description: string;
  labels: Record<string, unknown> | undefined;
  attributes: Attribute[];
}

/** A row of the data, with its values by the id of the attribute. */
export interface Item {
  readonly id: number;
  readonly values: Map<number, unknown>;
}

/** A data set. */
export interface DataContext {
  readonly id: number;
  name: string;
  title: string;
  description: string;
  collections: Collection[];
  items: Item[];
  /** The ids of the selected items. */
  selected: Set<number>;
  /** The ids that cases were given, by what makes them up. */
  readonly caseIds: Map<string, number>;
  /** Counts the changes; what is derived from the data is kept as long as it stays the same. */
  version: number;
}

/** A table, a graph, or something else that stands on the canvas. */
export interface Component {
  readonly id: number;
  readonly type: string;
  name: string;
  title: string;
  position: { left: number; top: number };
  dimensions: { width: number; height: number };
  /** What only this type has, such as `dataContext` and `xAttributeName`. */
  specific: Record<string, unknown>;
}

/** What CODAP answers. */
export interface Answer {
  success: boolean;
  values?: unknown;
  itemIDs?: number[];
  caseIDs?: number[];
}

/** A request that cannot be done; the document answers with its message. */
export class Refusal extends Error {}

/** All attributes of a data context, from the outermost collection to the innermost. */
export function attributesOf(context: DataContext): Attribute[] {
  return context.collections.flatMap(({ attributes }) => attributes);
}

/** What is meant by a name, a title, or an id in the form of a number, in this order. */
export function byName<One extends { id: number; name: string; title: string }>(all: readonly One[], name: string | number): One | undefined {
  const text = String(name);
  const numbered = () => (/^\d+$/.test(text) ? all.find(({ id }) => id === Number(text)) : undefined);
  return all.find((one) => one.name === text) ?? all.find((one) => one.title === text) ?? numbered();
}

const rows = new WeakMap<DataContext, { version: number; rows: Map<Item, number> }>();

/** The place of an item among all. */
export function rowOf(context: DataContext, item: Item): number {
  let known = rows.get(context);
  if (known?.version !== context.version) {
    rows.set(context, (known = { version: context.version, rows: new Map(context.items.map((one, row) => [one, row])) }));
  }
  return known.rows.get(item) ?? 0;
}
