import { type Arguments, present, wrong } from "./arguments.ts";
import type { Codap, Tools } from "./codap.ts";
import { createComponent, newPosition } from "./components.ts";

/** The size of a new web view, in pixels: CODAP needs one, and the tool has no argument for it. */
const WEB_VIEW = { width: 480, height: 360 };

/** A slider moves a global value, which CODAP wants first. */
async function slider(args: Arguments, codap: Codap) {
  const name = args.text("name");
  const [lowerBound, upperBound] = [args.number("min"), args.number("max")];
  if (upperBound <= lowerBound) throw wrong("max", `must be greater than min (${lowerBound}), and is ${upperBound}`);
  const value = args.optionalNumber("value") ?? lowerBound;
  if (value < lowerBound || value > upperBound) throw wrong("value", `must lie between min and max, and is ${value}`);
  const multipleOf = args.optionalNumber("step", { over: 0 });
  const component = { type: "slider", title: args.text("title"), globalValueName: name, lowerBound, upperBound, multipleOf, position: newPosition(args) };
  await codap.create("global", { name, value });
  return createComponent(component, codap);
}

/** CODAP has one calculator, and creating it hides it when it is shown: a visible one is left as it is. */
async function calculator(args: Arguments, codap: Codap) {
  const wanted = { type: "calculator", title: args.optionalText("title"), position: newPosition(args) };
  const components = (await codap.list("componentList")) as { type?: unknown; hidden?: unknown }[];
  const shown = components.find(({ type, hidden }) => type === "calculator" && hidden !== true);
  return shown === undefined ? createComponent(wanted, codap) : { component: shown };
}

/** Only addresses of the web: a `javascript:` address would run in CODAP's page. */
function webAddress(args: Arguments): string {
  const given = args.text("URL");
  const address = URL.canParse(given) ? new URL(given) : undefined;
  if (address === undefined || !["http:", "https:"].includes(address.protocol)) {
    throw wrong("URL", `must be a whole http or https address, and is ${JSON.stringify(given)}`);
  }
  return address.href;
}

/** What the tool tells of the plugin's frame; the rest is settings, and what the plugin saved. */
const TOLD = ["id", "name", "title", "version", "dimensions", "codapVersion", "lang", "locale"];

/** Names the plugin as CODAP shows it in the bar above its frame. */
async function initialize(args: Arguments, codap: Codap) {
  const given = { name: args.text("name"), title: args.text("title"), version: args.text("version") };
  await codap.update("interactiveFrame", given);
  const { values } = await codap.get("interactiveFrame");
  const told = Object.fromEntries(TOLD.map((name) => [name, values?.[name]]));
  return { interactiveFrame: { ...given, ...present(told) } };
}

/** Tools for the components that show no data set, and for the frame that the plugin itself runs in. */
export const widgetTools: Tools = {
  initializePlugin: initialize,
  createSlider: slider,
  createCalculator: calculator,
  createText: (args, codap) => {
    return createComponent({ type: "text", title: args.optionalText("title"), text: args.text("text"), position: newPosition(args) }, codap);
  },
  createWebView: (args, codap) => {
    return createComponent({ type: "webView", title: args.optionalText("title"), URL: webAddress(args), dimensions: WEB_VIEW, position: newPosition(args) }, codap);
  },
};
