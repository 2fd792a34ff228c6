import { valueOf } from "../document/formula.ts";
import { attributesOf, type DataContext, type Item } from "../document/model.ts";
import { html } from "./element.ts";

/** The most rows that are shown. */
const MAX_ROWS = 500;

/** A value, as people read it. */
export function shownValue(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A table of all items, with a checkbox in each row that selects it. */
export function tableView(context: DataContext, key: string, select: (items: number[]) => void): HTMLElement {
  const attributes = attributesOf(context).filter(({ hidden }) => !hidden);
  const shown = context.items.slice(0, MAX_ROWS);
  const rest = context.items.length - shown.length;
  const caption = `${context.title}: ${count(context.items.length, "case")}, ${context.selected.size} selected${rest > 0 ? `; the first ${MAX_ROWS} are shown` : ""}`;
  const toggle = ({ id }: Item) => {
    const chosen = new Set(context.selected);
    if (!chosen.delete(id)) chosen.add(id);
    select([...chosen]);
  };
  const head = html("tr", {}, html("th", { scope: "col" }, "Selected"),
    ...attributes.map(({ title, name, unit }) => html("th", { scope: "col" }, unit ? `${title || name} (${unit})` : title || name)));
  const rows = shown.map((item, row) => {
    const chosen = context.selected.has(item.id);
    const box = html("input", {
      type: "checkbox", checked: chosen, "aria-label": `Select case ${row + 1}`, "data-focus": `${key}:${item.id}`, change: () => toggle(item),
    });
    const cells = attributes.map((attribute) => {
      const value = valueOf(context, item, attribute, row);
      return html("td", { class: typeof value === "number" ? "number" : undefined }, shownValue(value));
    });
    return html("tr", { class: chosen ? "chosen" : undefined, "data-item": item.id }, html("td", {}, box), ...cells);
  });
  return html("table", {}, html("caption", {}, caption), html("thead", {}, head), html("tbody", {}, ...rows));
}

/** A number of things, in words. */
export function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}
