import type { DataDocument } from "./dataDocument.ts";
import { byName, MAX_COMPONENTS, Refusal, type Answer, type Component } from "./model.ts";
import { componentOf, type Resource } from "./resource.ts";
import { each, Values } from "./values.ts";

/** The types that this page can show, with their usual size. */
const TYPES: Record<string, { width: number; height: number }> = {
  caseTable: { width: 480, height: 260 },
  caseCard: { width: 480, height: 260 },
  graph: { width: 400, height: 320 },
  map: { width: 400, height: 320 },
  slider: { width: 320, height: 100 },
  calculator: { width: 220, height: 120 },
  text: { width: 320, height: 140 },
  webView: { width: 320, height: 120 },
};
const COMMON = new Set(["type", "name", "title", "position", "dimensions", "id", "__proto__"]);
/** The canvas ends here: nothing is put where nobody finds it. */
const FARTHEST = 4_000;
const LARGEST = 2_000;

function change(component: Component, values: Values): void {
  component.name = values.text("name") ?? component.name;
  component.title = values.text("title") ?? component.title;
  const bound = (value: number | undefined, before: number, least: number, most: number) =>
    Math.min(Math.max(Math.round(value ?? before), least), most);
  const position = values.get("position");
  if (typeof position === "object" && position !== null) {
    const at = new Values(position, "a position");
    const { left, top } = component.position;
    component.position = {
      left: bound(at.number("left") ?? at.number("x"), left, 0, FARTHEST), top: bound(at.number("top") ?? at.number("y"), top, 0, FARTHEST),
    };
  }
  const size = values.has("dimensions") ? new Values(values.get("dimensions"), "dimensions") : values;
  const { width, height } = component.dimensions;
  component.dimensions = { width: bound(size.number("width"), width, 120, LARGEST), height: bound(size.number("height"), height, 60, LARGEST) };
  for (const [name, value] of Object.entries(values.members)) if (!COMMON.has(name)) component.specific[name] = value;
}

function create(document: DataDocument, _: Resource, values: unknown): Answer {
  const [wanted] = each(values, "a component");
  const type = wanted?.text("type") ?? "";
  const usual = Object.hasOwn(TYPES, type) ? TYPES[type] : undefined;
  if (!wanted || !usual) throw new Refusal(`components of type ${type || "(none)"} are not supported`);
  const about = wanted.text("dataContext");
  const context = about === undefined ? undefined : byName(document.contexts, about);
  if (about !== undefined && !context) throw new Refusal(`there is no data context ${about}`);
  const same = type === "caseTable" && document.components.find((one) => one.type === type && one.specific.dataContext === context?.name);
  if (!same && document.components.length >= MAX_COMPONENTS) throw new Refusal(`there are ${MAX_COMPONENTS} components already`);
  const component: Component = same || {
    id: document.newId(), type, name: "", title: context?.title ?? type, position: free(document), dimensions: usual, specific: {},
  };
  change(component, wanted);
  // Whatever it was called by, it is known by its name.
  if (context) component.specific.dataContext = context.name;
  if (!same) document.components.push(component);
  document.tell(`component[${component.id}]`, { operation: "create", type, id: component.id });
  return { success: true, values: { id: component.id, title: component.title, type, ...(component.name && { name: component.name }) } };
}

/** A place to the right of the last component, or below all of them. */
function free(document: DataDocument): { left: number; top: number } {
  const last = document.components.at(-1);
  if (!last) return { left: 0, top: 0 };
  const left = last.position.left + last.dimensions.width + 16;
  const bottom = Math.max(...document.components.map(({ position, dimensions }) => position.top + dimensions.height));
  return left < 900 ? { left, top: last.position.top } : { left: 0, top: bottom + 16 };
}

const shown = ({ id, type, name, title, position, dimensions, specific }: Component) => ({
  ...specific, id, type, ...(name && { name }), title, position, dimensions,
});

export const components = {
  component: {
    create,
    get: (document: DataDocument, resource: Resource): Answer => ({ success: true, values: shown(componentOf(document, resource)) }),
    update(document: DataDocument, resource: Resource, values: unknown): Answer {
      const component = componentOf(document, resource);
      for (const wanted of each(values, "a component")) change(component, wanted);
      document.tell(`component[${component.id}]`, { operation: "update", type: component.type, id: component.id });
      return { success: true };
    },
    delete(document: DataDocument, resource: Resource): Answer {
      const component = componentOf(document, resource);
      document.components = document.components.filter((one) => one !== component);
      document.tell(`component[${component.id}]`, { operation: "delete", type: component.type, id: component.id });
      return { success: true };
    },
    notify: (document: DataDocument, resource: Resource): Answer => (componentOf(document, resource), { success: true }),
  },
  adornment: {
    create(document: DataDocument, resource: Resource, values: unknown): Answer {
      const component = componentOf(document, resource);
      if (component.type !== "graph") throw new Refusal(`${component.title} is no graph`);
      const [wanted] = each(values, "an adornment");
      const type = wanted?.text("type") ?? "";
      if (type !== "Box Plot") throw new Refusal(`adornments of type ${type || "(none)"} are not supported`);
      component.specific.adornments = [type];
      document.tell(`component[${component.id}]`, { operation: "update", type: component.type, id: component.id });
      return { success: true, values: { type } };
    },
  },
  componentList: {
    get: (document: DataDocument): Answer => ({
      success: true, values: document.components.map(({ id, type, name, title }) => ({ id, type, ...(name && { name }), title })),
    }),
  },
  interactiveFrame: {
    get: (document: DataDocument): Answer => ({ success: true, values: { ...document.frame } }),
    update(document: DataDocument, _: Resource, values: unknown): Answer {
      for (const wanted of each(values, "the frame")) {
        for (const name of ["name", "title", "version"] as const) document.frame[name] = wanted.text(name) ?? document.frame[name];
      }
      return { success: true };
    },
    notify: (): Answer => ({ success: true }),
  },
  global: {
    create(document: DataDocument, _: Resource, values: unknown): Answer {
      for (const wanted of each(values, "a global value")) document.globals.set(wanted.text("name") ?? "", wanted.number("value") ?? 0);
      return { success: true };
    },
    get(document: DataDocument, resource: Resource): Answer {
      const name = resource.selector ?? "";
      const value = document.globals.get(name);
      if (value === undefined) throw new Refusal(`there is no global value ${name}`);
      return { success: true, values: { name, value } };
    },
    update(document: DataDocument, resource: Resource, values: unknown): Answer {
      for (const wanted of each(values, "a global value")) document.globals.set(resource.selector ?? "", wanted.number("value") ?? 0);
      document.tell(`global[${resource.selector}]`, { globalValue: document.globals.get(resource.selector ?? "") });
      return { success: true };
    },
  },
  globalList: {
    get: (document: DataDocument): Answer => ({ success: true, values: [...document.globals].map(([name, value]) => ({ name, value })) }),
  },
  logMessage: { notify: (): Answer => ({ success: true }) },
};
