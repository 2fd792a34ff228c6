import { valueOf } from "../document/formula.ts";
import { quantile } from "../document/functions.ts";
import { attributesOf, type Attribute, type Component, type DataContext } from "../document/model.ts";
import { svg } from "./element.ts";
import { categories, isNumeric, linear, numberOf, type Scale } from "./scale.ts";
import { count } from "./tableView.ts";

/** The drawing's own units; the browser fits them into the tile. */
const WIDTH = 400;
const HEIGHT = 280;
const AREA = { left: 56, right: WIDTH - 12, top: 10, bottom: HEIGHT - 44 };
const BINS = 10;

type Point = { item: number; x: unknown; y: unknown };
type Drawing = { marks: SVGElement[]; x: Scale; y: Scale; said: string; yName?: string };

/** The graph of one or two attributes, with words that say the same. */
export function graphView(context: DataContext, component: Component, select: (items: number[]) => void): SVGElement {
  const { specific } = component;
  const map = component.type === "map";
  const named = (...members: string[]) => {
    const name = members.map((member) => specific[member]).find((value) => typeof value === "string");
    return attributesOf(context).find((one) => one.name === name);
  };
  const x = map ? named("longitudeAttribute", "longitudeAttributeName") ?? guess(context, /^(lon|lng|long)/i) : named("xAttributeName", "xAttribute");
  const y = map ? named("latitudeAttribute", "latitudeAttributeName") ?? guess(context, /^lat/i) : named("yAttributeName", "yAttribute");
  const value = (attribute: Attribute | undefined, row: number) => {
    const item = context.items[row];
    return attribute && item ? valueOf(context, item, attribute, row) : "";
  };
  const points = context.items.map((item, row) => ({ item: item.id, x: value(x, row), y: value(y, row) }));
  const kind = kindOf(component, x, y, points);
  const drawing = draw(kind, points, x, y, context.selected, select);
  const names = [x?.name, y?.name].filter(Boolean).join(" and ");
  const said = names ? drawing.said : `${count(points.length, "case")}; no attribute is on an axis yet.`;
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${component.title}. ${said}`, "data-kind": kind },
    svg("title", {}, component.title), svg("desc", {}, said), ...axes(drawing, x?.name ?? "", drawing.yName ?? y?.name ?? ""), ...drawing.marks);
}

function guess(context: DataContext, pattern: RegExp): Attribute | undefined {
  return attributesOf(context).find(({ name }) => pattern.test(name));
}

/** What to draw: as asked for, or as the attributes suggest. */
function kindOf({ specific, type }: Component, x: Attribute | undefined, y: Attribute | undefined, points: Point[]): string {
  if (type === "map") return "scatterPlot";
  if (specific.showConnectingLines === true) return "linePlot";
  if (Array.isArray(specific.adornments)) return "boxPlot";
  if (x && y && specific.pointsAreFusedIntoBars !== true) return "scatterPlot";
  return isNumeric(points.map((point) => (x ? point.x : point.y))) ? "histogram" : "bars";
}

function draw(
  kind: string, points: Point[], x: Attribute | undefined, y: Attribute | undefined, selected: Set<number>, select: (items: number[]) => void,
): Drawing {
  if (kind === "boxPlot") return boxPlot(points, x, y);
  const values = points.map((point) => (x ? point.x : point.y));
  if (kind === "histogram") return histogram(values, (x ?? y)?.name ?? "");
  if (kind === "bars") return bars(values, (x ?? y)?.name ?? "");
  return pointPlot(kind, points, x, y, selected, select);
}

function scaleOf(values: unknown[], from: number, to: number): Scale {
  if (!isNumeric(values)) return categories(values, from, to);
  return linear(values.map(numberOf).filter((value) => value !== undefined), from, to);
}

function pointPlot(
  kind: string, points: Point[], xOf: Attribute | undefined, yOf: Attribute | undefined, selected: Set<number>, select: (items: number[]) => void,
): Drawing {
  const x = scaleOf(points.map((point) => point.x), AREA.left, AREA.right);
  const y = scaleOf(points.map((point) => point.y), AREA.bottom, AREA.top);
  const placed = points.flatMap((point) => {
    const [left, top] = [x.place(point.x), y.place(point.y)];
    return left === undefined || top === undefined ? [] : [{ ...point, left, top }];
  });
  const dots = placed.map(({ item, left, top }) => svg("circle", {
    class: selected.has(item) ? "point chosen" : "point", cx: left.toFixed(1), cy: top.toFixed(1), r: 5, "data-item": item, click: () => select([item]),
  }));
  const inOrder = [...placed].sort((one, other) => one.left - other.left);
  const line = inOrder.map(({ left, top }) => `${left.toFixed(1)},${top.toFixed(1)}`).join(" ");
  const marks = kind === "linePlot" ? [svg("polyline", { class: "trace", points: line }), ...dots] : dots;
  const chosen = placed.filter(({ item }) => selected.has(item)).length;
  const said = `${yOf?.name ?? ""} against ${xOf?.name ?? ""}: ${count(placed.length, "case")}${chosen > 0 ? `, ${chosen} selected` : ""}. ${range(points.map((point) => point.x), xOf?.name)} ${range(points.map((point) => point.y), yOf?.name)}`;
  return { marks, x, y, said: said.trim() };
}

function range(values: unknown[], name: string | undefined): string {
  const numbers = values.map(numberOf).filter((value) => value !== undefined).sort((one, other) => one - other);
  if (!name || numbers.length === 0) return "";
  return `${name} from ${numbers[0]} to ${numbers.at(-1)}, median ${quantile(numbers, 0.5)}.`;
}

function histogram(values: unknown[], name: string): Drawing {
  const numbers = values.map(numberOf).filter((value) => value !== undefined);
  const x = linear(numbers, AREA.left, AREA.right);
  const bins = new Array<number>(BINS).fill(0);
  const width = (AREA.right - AREA.left) / BINS;
  for (const number of numbers) {
    const bin = Math.min(BINS - 1, Math.floor(((x.place(number) ?? 0) - AREA.left) / width));
    bins[bin] = (bins[bin] ?? 0) + 1;
  }
  const y = linear(bins, AREA.bottom, AREA.top, true);
  const marks = bins.map((number, bin) => bar(AREA.left + bin * width + 1, y.place(number) ?? AREA.bottom, width - 2));
  return { marks, x, y, yName: "cases", said: `${name}: ${count(numbers.length, "case")} in ${BINS} bins. ${range(values, name)}` };
}

function bars(values: unknown[], name: string): Drawing {
  const x = categories(values, AREA.left, AREA.right);
  const counted = x.ticks.map(({ at, text }) => ({ at, text, number: values.filter((value) => String(value) === text).length }));
  const y = linear(counted.map(({ number }) => number), AREA.bottom, AREA.top, true);
  const width = Math.min(40, ((AREA.right - AREA.left) / Math.max(counted.length, 1)) * 0.7);
  const marks = counted.map(({ at, number }) => bar(at - width / 2, y.place(number) ?? AREA.bottom, width));
  return { marks, x, y, yName: "cases", said: `${name}: ${counted.map(({ text, number }) => `${text} ${number}`).join(", ")}.` };
}

function bar(left: number, top: number, width: number): SVGElement {
  return svg("rect", { class: "bar", x: left.toFixed(1), y: top.toFixed(1), width: width.toFixed(1), height: (AREA.bottom - top).toFixed(1) });
}

/** One box for each category of x, or one for all. */
function boxPlot(points: Point[], xOf: Attribute | undefined, yOf: Attribute | undefined): Drawing {
  const measured = yOf ? (point: Point) => point.y : (point: Point) => point.x;
  const grouped = yOf && xOf ? (point: Point) => String(point.x) : () => (yOf ?? xOf)?.name ?? "";
  const x = categories(points.map(grouped), AREA.left, AREA.right);
  const y = linear(points.map((point) => numberOf(measured(point))).filter((value) => value !== undefined), AREA.bottom, AREA.top);
  const said: string[] = [];
  const marks = x.ticks.flatMap(({ at, text }) => {
    const numbers = points.filter((point) => grouped(point) === text).map((point) => numberOf(measured(point)))
      .filter((value) => value !== undefined).sort((one, other) => one - other);
    if (numbers.length === 0) return [];
    const five = [0, 0.25, 0.5, 0.75, 1].map((part) => quantile(numbers, part));
    const [least, low, middle, high, most] = five.map((value) => y.place(value) ?? AREA.bottom) as [number, number, number, number, number];
    said.push(`${text}: least ${five[0]}, median ${five[2]}, most ${five[4]}`);
    const half = 18;
    return [
      svg("path", { class: "axis", d: `M${at} ${least}V${low}M${at} ${high}V${most}` }),
      svg("rect", { class: "box", x: at - half, y: high, width: half * 2, height: Math.max(low - high, 1) }),
      svg("path", { class: "axis", d: `M${at - half} ${middle}H${at + half}` }),
    ];
  });
  return { marks, x, y, said: `Box plot. ${said.join("; ")}.` };
}

function axes({ x, y }: Drawing, xName: string, yName: string): SVGElement[] {
  const { left, right, top, bottom } = AREA;
  const short = (text: string) => (text.length > 12 ? `${text.slice(0, 11)}…` : text);
  return [
    svg("path", { class: "axis", d: `M${left} ${top}V${bottom}H${right}` }),
    ...x.ticks.map((tick) => svg("text", { class: "tick", x: tick.at.toFixed(1), y: bottom + 14, "text-anchor": "middle" }, short(tick.text))),
    ...y.ticks.map((tick) => svg("text", { class: "tick", x: left - 5, y: (tick.at + 4).toFixed(1), "text-anchor": "end" }, short(tick.text))),
    svg("text", { class: "axis-name", x: (left + right) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, xName),
    svg("text", { class: "axis-name", x: -(top + bottom) / 2, y: 13, "text-anchor": "middle", transform: "rotate(-90)" }, yName),
  ];
}
