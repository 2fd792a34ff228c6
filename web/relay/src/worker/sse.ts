/** One event of a stream. */
export interface StreamEvent {
  event: string;
  data: string;
}

/** The most characters of one event. A gateway that sends more than that is not ours. */
const MAX_EVENT = 32 * 1024 * 1024;

/** Reads the events of a response. Calls `alive` for every piece that arrives, comments included. */
export async function* readEvents(body: ReadableStream<Uint8Array>, alive: () => void): AsyncGenerator<StreamEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let event = "";
  let data: string[] = [];
  let held = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      alive();
      rest += decoder.decode(value, { stream: true });
      // A carriage return at the end may be the first half of a line's end.
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? "";
      if (held + rest.length > MAX_EVENT) throw new Error("an event of the stream is too long");
      for (const line of lines) {
        if (line === "") {
          if (data.length > 0) yield { event: event || "message", data: data.join("\n") };
          event = "";
          data = [];
          held = 0;
          continue;
        }
        const at = line.indexOf(":");
        const name = at < 0 ? line : line.slice(0, at);
        const text = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
        if (name === "event") event = text;
        if (name === "data") {
          data.push(text);
          held += text.length;
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
