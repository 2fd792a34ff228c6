import qrcode from "qrcode-generator";
import { svg } from "./element.ts";

/** The light border that readers need, in modules. */
const QUIET = 4;

/** A text as a QR code. */
export function qrView(text: string, label: string): SVGElement {
  const code = qrcode(0, "M");
  code.addData(text);
  code.make();
  const size = code.getModuleCount();
  let path = "";
  for (let row = 0; row < size; row += 1) {
    for (let column = 0; column < size; column += 1) if (code.isDark(row, column)) path += `M${column + QUIET} ${row + QUIET}h1v1h-1z`;
  }
  const whole = size + 2 * QUIET;
  return svg("svg", { viewBox: `0 0 ${whole} ${whole}`, role: "img", "aria-label": label, "shape-rendering": "crispEdges" },
    svg("rect", { width: whole, height: whole, fill: "#fff" }), svg("path", { d: path, fill: "#000" }));
}
