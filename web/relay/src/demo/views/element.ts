type Attributes = Record<string, string | number | boolean | ((event: Event) => void) | undefined>;
type Child = Node | string | undefined;

function fill<One extends Element>(one: One, attributes: Attributes, children: Child[]): One {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") one.addEventListener(name, value);
    else if (value === true) one.setAttribute(name, "");
    else if (value !== undefined && value !== false) one.setAttribute(name, String(value));
  }
  one.append(...children.filter((child) => child !== undefined));
  return one;
}

/** An element of HTML. A function among the attributes is a listener. Text is never taken for markup. */
export function html<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[Tag] {
  return fill(document.createElement(tag), attributes, children);
}

/** An element of SVG. */
export function svg<Tag extends keyof SVGElementTagNameMap>(tag: Tag, attributes: Attributes = {}, ...children: Child[]): SVGElementTagNameMap[Tag] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/** The element of the page that has the id. */
export function byId<One extends HTMLElement>(id: string): One {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element ${id}`);
  return found as One;
}
