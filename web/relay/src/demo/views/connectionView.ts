import type { Session, StateChange } from "signalbox-relay";
import { byId } from "./element.ts";
import { qrView } from "./qrView.ts";
import { words } from "./words.ts";

/** What the page does when somebody presses a button. */
export interface ConnectionActions {
  join(code: string): void;
  create(): void;
  leave(): void;
}

/** The form to join, the code, and what the connection is doing. */
export class ConnectionView {
  readonly #state = byId("state");
  readonly #code = byId<HTMLInputElement>("code");
  readonly #error = byId("code-error");
  readonly #leave = byId<HTMLButtonElement>("leave");
  readonly #session = byId("session");

  constructor(actions: ConnectionActions) {
    byId<HTMLFormElement>("join").addEventListener("submit", (event) => {
      event.preventDefault();
      const code = this.#code.value.trim();
      const wrong = !/^[A-Za-z0-9]{8}(\.\S+)?$/.test(code);
      this.#error.textContent = wrong ? "A session code has eight letters and digits." : "";
      this.#code.setAttribute("aria-invalid", String(wrong));
      if (wrong) this.#code.focus();
      else actions.join(code);
    });
    byId("create").addEventListener("click", () => actions.create());
    this.#leave.addEventListener("click", () => actions.leave());
  }

  showState(change: StateChange): void {
    const text = words(change);
    // A live region that does not change says nothing.
    if (this.#state.textContent !== text) this.#state.textContent = text;
    this.#state.dataset.state = change.state;
    this.#state.dataset.standby = String(change.standby);
    this.#state.dataset.error = change.error ?? "";
    const serves = change.state !== "error" && !(change.state === "disconnected" && !change.standby);
    this.#leave.disabled = !serves;
    if (!serves) this.#session.hidden = true;
  }

  showSession({ code, joinUrl }: Session, base: string): void {
    this.#session.hidden = false;
    const shown = byId("shown-code");
    shown.textContent = code;
    // Letter by letter, for those who listen.
    shown.setAttribute("aria-label", [...code].join(" "));
    byId("mcp-address").textContent = `${base}/api/mcp`;
    const link = byId<HTMLAnchorElement>("join-address");
    link.href = joinUrl;
    // The token of the worker is behind the link and in the picture; nobody reads it from the screen.
    link.textContent = joinUrl.replace(/(#[A-Z0-9]{8})\..*$/, "$1");
    byId("qr").replaceChildren(qrView(joinUrl, "QR code of the address that opens this session on another device"));
  }
}
