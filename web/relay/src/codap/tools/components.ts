import { type Arguments, present, wrong } from "./arguments.ts";
import { type Codap, refusal, type Tools } from "./codap.ts";
import { contextOf, type Structure, structureOf } from "./contexts.ts";
import { selected } from "./resource.ts";

/** Where CODAP puts a component, in pixels from the left and top of the document. */
function position(args: Arguments): { left?: number; top?: number } | undefined {
  const given = args.optionalObject("position");
  return given && present({ left: given.optionalNumber("x"), top: given.optionalNumber("y") });
}

/** A new component needs both; an existing one keeps what is not given. */
export function newPosition(args: Arguments): { left: number; top: number } | undefined {
  const given = position(args);
  return given && { left: given.left ?? 0, top: given.top ?? 0 };
}

function dimensions(args: Arguments | undefined): { width?: number; height?: number } | undefined {
  if (args === undefined) return undefined;
  const given = present({ width: args.optionalNumber("width", { over: 0 }), height: args.optionalNumber("height", { over: 0 }) });
  return Object.keys(given).length > 0 ? given : undefined;
}

/** What every new component may have. The later set of tools gives the size beside the other arguments. */
function frame(args: Arguments) {
  const size = dimensions(args.optionalObject("dimensions") ?? args);
  return { title: args.optionalText("title"), position: newPosition(args), dimensions: size };
}

/** Makes a component. CODAP answers with its id, title and type. */
export async function createComponent(values: { type: string } & Record<string, unknown>, codap: Codap, notes: string[] = []) {
  const wanted = present(values);
  const { values: made } = await codap.create("component", wanted);
  const component = made ?? present({ type: values.type, title: values.title });
  return { component, ...(notes.length > 0 && { notes }) };
}

function table(args: Arguments, argument: string, codap: Codap) {
  return createComponent({ type: "caseTable", dataContext: contextOf(args, argument).name, ...frame(args) }, codap);
}

/** The attribute that an argument names, if it does: a graph overlooks those that it does not know. */
function attribute(args: Arguments, argument: string, { name, attributes }: Structure): string | undefined {
  const wanted = args.optionalText(argument);
  if (wanted !== undefined && attributes !== undefined && !attributes.includes(wanted)) {
    throw wrong(argument, `is no attribute of ${name}: ${JSON.stringify(wanted)}; there are ${attributes.join(", ") || "none"}`);
  }
  return wanted;
}

/** What a graph becomes after it was made: CODAP chooses the kind of plot by the attributes. */
const PLOTS = {
  scatterPlot: undefined,
  linePlot: { showConnectingLines: true },
  histogram: { pointsAreFusedIntoBars: true },
  boxPlot: "Box Plot",
} as const;
const GRAPH_TYPES = Object.keys(PLOTS) as (keyof typeof PLOTS)[];

/** A graph of one kind. The graph is there when CODAP refuses the second request; the refusal is then a note, in CODAP's words. */
async function graph(args: Arguments, codap: Codap) {
  const type = args.oneOf("graphType", GRAPH_TYPES) ?? "scatterPlot";
  if (type !== "scatterPlot" && args.optionalText("xAttribute") === undefined && args.optionalText("yAttribute") === undefined) {
    throw wrong("xAttribute", `or yAttribute is needed for a ${type}`);
  }
  const look = frame(args);
  const context = await structureOf(contextOf(args, "dataContextName"), codap);
  const axes = { xAttributeName: attribute(args, "xAttribute", context), yAttributeName: attribute(args, "yAttribute", context) };
  const made = await createComponent({ type: "graph", dataContext: context.name, ...axes, ...look }, codap);
  const plot = PLOTS[type];
  const { id } = made.component as { id?: unknown };
  if (plot === undefined || (typeof id !== "number" && typeof id !== "string")) return made;
  const component = selected("component", id, "component");
  const request = plot === "Box Plot"
    ? { action: "create", resource: `${component}.adornment`, values: { type: plot } } as const
    : { action: "update", resource: component, values: plot } as const;
  const answer = await codap.try(request);
  return answer.success ? made : { ...made, notes: [`The graph was made, but not as a ${type}: ${refusal(answer, request)}`] };
}

async function plainGraph(args: Arguments, codap: Codap) {
  const look = frame(args);
  const context = await structureOf(contextOf(args, "dataContext"), codap);
  const axes = {
    xAttributeName: attribute(args, "xAttributeName", context),
    yAttributeName: attribute(args, "yAttributeName", context),
    legendAttributeName: attribute(args, "legendAttributeName", context),
  };
  return createComponent({ type: "graph", dataContext: context.name, ...axes, ...look }, codap);
}

/** By what CODAP recognises the attributes of a point on the map. */
const COORDINATES = { latitudeAttribute: /^lat(itude?)?$/i, longitudeAttribute: /^(lon|lng|long|longitude?)$/i };

/** A map. CODAP finds latitude and longitude by the names of the attributes and cannot be told them. */
async function map(args: Arguments, codap: Codap) {
  const look = frame(args);
  const context = await structureOf(contextOf(args, "dataContextName"), codap);
  const notes = Object.entries(COORDINATES).flatMap(([argument, pattern]) => {
    const name = attribute(args, argument, context);
    if (name === undefined || pattern.test(name)) return [];
    return [`CODAP takes coordinates from attributes with names such as Latitude and Longitude; ${name} (${argument}) may have to be renamed.`];
  });
  return createComponent({ type: "map", dataContext: context.name, ...look }, codap, notes);
}

async function list(codap: Codap) {
  const components = await codap.list("componentList");
  return { components, count: components.length };
}

async function read(id: string | number, argument: string, codap: Codap) {
  const { values } = await codap.get(selected("component", id, argument));
  return { component: values };
}

async function update(args: Arguments, argument: string, codap: Codap) {
  const id = args.id(argument);
  const changes = present({ title: args.optionalText("title"), position: position(args), dimensions: dimensions(args.optionalObject("dimensions")) });
  if (Object.keys(changes).length === 0) throw wrong("arguments", "must hold something to change: title, position or dimensions");
  await codap.update(selected("component", id, argument), changes);
  return { updated: true, component: { id, ...changes } };
}

async function remove(id: string | number, argument: string, codap: Codap) {
  await codap.delete(selected("component", id, argument));
  return { deleted: true, component: { id } };
}

/** Tools for tables, graphs and maps, and for all that stands in the document. */
export const componentTools: Tools = {
  create_table: (args, codap) => table(args, "dataContextName", codap),
  create_graph: graph,
  create_map: map,
  get_components: (_, codap) => list(codap),
  update_component: (args, codap) => update(args, "componentId", codap),
  delete_component: async (args, codap) => {
    args.confirmed();
    return remove(args.id("componentId"), "componentId", codap);
  },

  createTable: (args, codap) => table(args, "dataContext", codap),
  createGraph: plainGraph,
  getAllComponents: (_, codap) => list(codap),
  getComponent: (args, codap) => read(args.id("component"), "component", codap),
  updateComponent: (args, codap) => update(args, "component", codap),
  deleteComponent: (args, codap) => remove(args.id("component"), "component", codap),
};
