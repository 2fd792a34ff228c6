import type { CallEvent } from "signalbox-relay";
import { html } from "./element.ts";

/** The most calls that are listed, and the most that is shown of each. */
const MAX_CALLS = 200;
const MAX_TEXT = 300;

const short = (value: unknown) => {
  const text = JSON.stringify(value) ?? "";
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
};

/** Lists the calls that arrived, the last one first. */
export class LogView {
  readonly #lines = new Map<string, HTMLElement>();
  /** How many calls arrived. */
  seen = 0;

  constructor(readonly list: HTMLElement, readonly none: HTMLElement) {}

  note({ requestId, tool, args, phase, result, error, duration }: CallEvent): void {
    this.none.hidden = true;
    let line = this.#lines.get(requestId);
    if (!line) {
      this.seen += 1;
      line = html("li", { "data-request": requestId, "data-tool": tool });
      this.#lines.set(requestId, line);
      this.list.prepend(line);
    }
    const time = duration === undefined ? "" : ` in ${Math.round(duration)} ms`;
    const failed = error !== undefined;
    const words = { started: "runs", answered: failed ? "failed" : "done", repeated: "answered again", cancelled: "cancelled" };
    line.dataset.phase = phase;
    line.dataset.error = error?.type ?? "";
    line.replaceChildren(
      html("strong", {}, tool), " ", html("code", {}, short(args)), " — ",
      html("span", { class: failed ? "failed" : phase === "started" ? undefined : "done" }, words[phase] + time), " ",
      phase === "started" ? "" : html("code", {}, failed ? error.message : short(result)));
    this.#bound();
  }

  #bound(): void {
    for (const [id, line] of this.#lines) {
      if (this.#lines.size <= MAX_CALLS) return;
      line.remove();
      this.#lines.delete(id);
    }
  }
}
