import { RelayError, type Api, type ToolRequest } from "./api.ts";
import { readEvents, type StreamEvent } from "./sse.ts";

/** How often the gateway says that it is there, unless it says otherwise. */
const HEARTBEAT = 25_000;
/** How long the first event of a stream may take before the stream counts as held back on its way. */
const FIRST_EVENT = 10_000;
const POLL_SECONDS = 25;

/** What is heard from the gateway. */
export interface Hearing {
  connected(standby: boolean): void;
  request(request: ToolRequest): void;
  cancel(requestId: string, reason: string): void;
  heartbeat(): void;
}

/** The stream cannot be used here: something on the way holds it back. */
export class StreamHeldBack extends Error {}

/** One connection by which calls arrive: a stream, or one poll after the other. */
export class Receiver {
  readonly #controller = new AbortController();
  readonly #api: Api;
  readonly #hearing: Hearing;
  #heartbeat = HEARTBEAT;
  #heard = Date.now();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(api: Api, hearing: Hearing) {
    this.#api = api;
    this.#hearing = hearing;
  }

  /** Ends the connection. */
  close(reason: Error): void {
    this.#controller.abort(reason);
  }

  /** Ends it if nothing was heard for longer than the gateway is ever silent. */
  wake(): void {
    if (Date.now() - this.#heard > this.#heartbeat * 1.2) this.close(new Error("nothing was heard from the gateway"));
  }

  /** Receives until the connection ends. Every end but that by the gateway is thrown. */
  async stream(): Promise<void> {
    const { signal } = this.#controller;
    this.#expect(FIRST_EVENT, new StreamHeldBack("the stream began with nothing"));
    try {
      const response = await this.#api.stream(signal);
      const type = response.headers.get("content-type") ?? "";
      if (!response.body || !type.startsWith("text/event-stream")) throw new StreamHeldBack(`the stream is ${type || "empty"}`);
      for await (const event of readEvents(response.body, () => this.#alive())) this.#hear(event);
    } catch (thrown) {
      throw signal.aborted ? signal.reason : thrown;
    } finally {
      clearTimeout(this.#timer);
      this.close(new Error("the stream ended"));
    }
  }

  /** Polls until `until`, or until a poll fails. */
  async poll(until: number): Promise<void> {
    const { signal } = this.#controller;
    try {
      let seconds = 0;
      while (Date.now() < until) {
        const requests = await this.#api.poll(seconds, signal);
        this.#heard = Date.now();
        if (seconds === 0) this.#hearing.connected(false);
        else this.#hearing.heartbeat();
        seconds = POLL_SECONDS;
        for (const request of requests) this.#hearing.request(request);
      }
    } catch (thrown) {
      throw signal.aborted ? signal.reason : thrown;
    }
  }

  #alive(): void {
    this.#heard = Date.now();
    // Two heartbeats may be lost.
    this.#expect(this.#heartbeat * 2.4, new Error("the gateway has fallen silent"));
  }

  #expect(ms: number, otherwise: Error): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.close(otherwise), ms);
  }

  #hear({ event, data }: StreamEvent): void {
    const said = parsed(data);
    const text = (name: string) => (typeof said[name] === "string" ? said[name] : "");
    switch (event) {
      case "connected":
        if (typeof said.heartbeatMs === "number" && said.heartbeatMs > 0) this.#heartbeat = said.heartbeatMs;
        this.#alive();
        return this.#hearing.connected(said.standby === true);
      case "promoted":
        return this.#hearing.connected(false);
      case "tool-request":
        return this.#hearing.request(said as unknown as ToolRequest);
      case "cancel":
        return this.#hearing.cancel(text("id") || text("requestId"), text("reason"));
      case "heartbeat":
        return this.#hearing.heartbeat();
      case "error":
        // After this the gateway ends the stream.
        if (text("error").startsWith("session_")) throw new RelayError(410, text("error"), text("message") || text("error"));
        throw new Error(text("message") || text("error") || "the gateway reported an error");
    }
  }
}

function parsed(data: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(data);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
