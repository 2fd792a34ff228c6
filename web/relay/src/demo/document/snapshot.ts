import type { DataDocument } from "./dataDocument.ts";
import type { Component, DataContext } from "./model.ts";

/** The most characters that are kept. A larger document is gone after a reload. */
const MAX_LENGTH = 2_000_000;
const KEY = "signalbox.demo.document";

type Plain = Omit<DataContext, "items" | "selected" | "caseIds"> & {
  items: { id: number; values: [number, unknown][] }[];
  selected: number[];
  caseIds: [string, number][];
};

interface Snapshot {
  lastId: number;
  contexts: Plain[];
  components: Component[];
  globals: [string, number][];
}

/** Keeps a document in the storage of the tab, so that a reload finds what the calls before it made. */
export function keep(document: DataDocument, storage: Storage): void {
  let waiting = false;
  const write = () => {
    waiting = false;
    const contexts = document.contexts.map((context) => ({
      ...context, items: context.items.map(({ id, values }) => ({ id, values: [...values] })), selected: [...context.selected],
      caseIds: [...context.caseIds],
    }));
    const snapshot: Snapshot = { lastId: document.lastId, contexts, components: document.components, globals: [...document.globals] };
    const text = JSON.stringify(snapshot);
    try {
      if (text.length <= MAX_LENGTH) storage.setItem(KEY, text);
      else storage.removeItem(KEY);
    } catch {
      storage.removeItem(KEY);
    }
  };
  // Before the answer leaves, which is after this turn.
  document.listen(() => {
    if (!waiting) queueMicrotask(write);
    waiting = true;
  });
}

/** Takes up the document that was kept, if there is one. */
export function restore(document: DataDocument, storage: Storage): void {
  try {
    const text = storage.getItem(KEY);
    if (!text) return;
    const { lastId, contexts, components, globals } = JSON.parse(text) as Snapshot;
    for (const context of contexts) {
      const items = context.items.map(({ id, values }) => ({ id, values: new Map(values) }));
      document.contexts.push({ ...context, items, selected: new Set(context.selected), caseIds: new Map(context.caseIds) });
    }
    document.components = components;
    for (const [name, value] of globals) document.globals.set(name, value);
    document.lastId = lastId;
  } catch {
    storage.removeItem(KEY);
  }
}
