import { asNumber, readFormula } from "../document/formula.ts";
import type { DataDocument } from "../document/dataDocument.ts";
import type { Component, DataContext } from "../document/model.ts";
import { html } from "./element.ts";
import { graphView } from "./graphView.ts";
import { count, shownValue, tableView } from "./tableView.ts";

/** Shows the data sets and the components of a document, and shows them anew when they change. */
export class CanvasView {
  #waiting = false;
  readonly #drawn = new Map<number, { signature: string; tile: HTMLElement }>();

  constructor(readonly document: DataDocument, readonly sets: HTMLElement, readonly canvas: HTMLElement) {
    document.listen(() => this.#soon());
    this.#draw();
  }

  /** Many changes at once are one drawing. Tabs in the background have no animation frames. */
  #soon(): void {
    if (this.#waiting) return;
    this.#waiting = true;
    setTimeout(() => {
      this.#waiting = false;
      this.#draw();
    }, 20);
  }

  #draw(): void {
    const focused = document.activeElement?.getAttribute("data-focus");
    this.sets.replaceChildren(this.#dataSets());
    const { components } = this.document;
    for (const [id, { tile }] of this.#drawn) {
      if (components.some((one) => one.id === id)) continue;
      tile.remove();
      this.#drawn.delete(id);
    }
    for (const component of components) this.#place(component);
    this.canvas.style.height = `${Math.max(192, ...components.map(({ position, dimensions }) => position.top + dimensions.height + 16))}px`;
    // Whoever was on a button that was drawn anew is on it again.
    if (focused) document.querySelector<HTMLElement>(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
  }

  #context(component: Component): DataContext | undefined {
    return this.document.contexts.find(({ name }) => name === component.specific.dataContext);
  }

  #place(component: Component): void {
    const moved = this.document.globals.get(shownValue(component.specific.globalValueName));
    const signature = `${this.#context(component)?.version} ${moved} ${JSON.stringify(component)}`;
    const before = this.#drawn.get(component.id);
    if (before?.signature === signature) return;
    const tile = this.#tile(component);
    if (before) before.tile.replaceWith(tile);
    else this.canvas.append(tile);
    this.#drawn.set(component.id, { signature, tile });
  }

  #tile(component: Component): HTMLElement {
    const { id, title, type, position, dimensions } = component;
    const close = html("button", {
      type: "button", "aria-label": `Remove ${title}`, "data-focus": `remove ${id}`,
      click: () => void this.document.ask({ action: "delete", resource: `component[${id}]` }),
    }, "✕");
    const tile = html("section", { class: "tile", "aria-labelledby": `tile-${id}`, "data-component": id, "data-type": type },
      html("header", {}, html("h3", { id: `tile-${id}` }, title), close),
      html("div", { class: "inside", tabindex: "0", role: "group", "aria-labelledby": `tile-${id}`, "data-focus": `inside ${id}` }, this.#inside(component)));
    tile.style.left = `${position.left}px`;
    tile.style.top = `${position.top}px`;
    tile.style.width = `${dimensions.width}px`;
    tile.style.height = `${dimensions.height}px`;
    return tile;
  }

  #inside(component: Component): Node {
    const { specific, type, id } = component;
    const context = this.#context(component);
    const select = (values: number[]) =>
      void this.document.ask({ action: "create", resource: `dataContext[${context?.id}].selectionList`, values });
    if (type === "slider") return this.#slider(component);
    if (type === "calculator") return calculator();
    if (type === "text") return html("p", {}, shownValue(specific.text));
    if (type === "webView") return link(shownValue(specific.URL ?? specific.url));
    if (!context) return html("p", {}, "There are no data to show.");
    return type === "graph" || type === "map" ? graphView(context, component, select) : tableView(context, `row ${id}`, select);
  }

  #slider(component: Component): HTMLElement {
    const { specific, id, title } = component;
    const number = (...members: string[]) => members.map((member) => asNumber(specific[member])).find((value) => !Number.isNaN(value));
    const global = shownValue(specific.globalValueName);
    const now = this.document.globals.get(global) ?? number("value", "lowerBound") ?? 0;
    const output = html("output", {}, ` ${now}`);
    const input = html("input", {
      type: "range", min: number("lowerBound", "min") ?? 0, max: number("upperBound", "max") ?? 10, step: number("step", "multipleOf") ?? "any",
      value: now, "data-focus": `slider ${id}`,
      change: (event) => {
        const value = Number((event.target as HTMLInputElement).value);
        void this.document.ask({ action: "update", resource: `global[${global}]`, values: { value } });
      },
    });
    return html("label", {}, title, " ", input, output);
  }

  #dataSets(): HTMLElement {
    const { contexts } = this.document;
    if (contexts.length === 0) return html("p", { id: "no-data" }, "There are no data sets yet.");
    const button = (context: DataContext, type: string, what: string) => html("button", {
      type: "button", "aria-label": `Show ${context.title} as a ${what}`, "data-focus": `show ${context.id} ${type}`,
      click: () => void this.document.ask({ action: "create", resource: "component", values: { type, dataContext: context.name } }),
    }, `as a ${what}`);
    return html("ul", {}, ...contexts.map((context) => {
      const names = context.collections.map(({ name, attributes }) => `${name} (${attributes.map((one) => one.name).join(", ") || "no attributes"})`);
      const told = `: ${count(context.items.length, "case")} in ${names.join(", ")}`;
      return html("li", { "data-context": context.name }, html("strong", {}, context.title), told,
        button(context, "caseTable", "table"), button(context, "graph", "graph"));
    }));
  }
}

/** Pages of others are not shown here; they can be opened. */
function link(address: string): HTMLElement {
  const safe = /^https?:\/\//i.test(address);
  return html("p", {}, safe ? html("a", { href: address, rel: "noopener noreferrer", target: "_blank" }, address) : address);
}

function calculator(): HTMLElement {
  const output = html("output", { role: "status" });
  const empty: DataContext = {
    id: 0, name: "", title: "", description: "", collections: [], items: [], selected: new Set(), caseIds: new Map(), version: 0,
  };
  const compute = (event: Event) => {
    const text = (event.target as HTMLInputElement).value;
    try {
      output.textContent = `= ${shownValue(readFormula(text, empty)({ context: empty, item: { id: 0, values: new Map() }, index: 0, depth: 0 }))}`;
    } catch (thrown) {
      output.textContent = (thrown as Error).message;
    }
  };
  return html("label", {}, "Calculation ", html("input", { change: compute }), " ", output);
}
