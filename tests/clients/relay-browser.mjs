#!/usr/bin/env node
// A Chromium that does what it is told, line by line.
//
//   relay-browser.mjs BROWSER
//
// Every line of the input is a command in JSON, every line of the output its answer: {"ok": …} or {"error": "…"}, with the id
// of the command before it where the command has one. The first line of the output says that the browser runs.
//
//   {"do": "open", "tab": NAME, "url": URL}              opens a tab
//   {"do": "look", "tab": NAME, "expression": JS}        what the expression is in the page; promises are waited for. With
//                                                        "frame", an origin, in the frame of the page that comes from there
//   {"do": "wait", "tab": NAME, "expression": JS, "seconds": N}   waits until it is true
//   {"do": "press", "tab": NAME, "keys": ["Tab", "Enter", "some text"]}
//   {"do": "reload", "tab": NAME}
//   {"do": "offline", "tab": NAME, "on": BOOL}           cuts the network of the tab, or gives it back
//   {"do": "crash", "tab": NAME}                         kills the process of the page
//   {"do": "close", "tab": NAME}
//   {"do": "tree", "tab": NAME}                          what a screen reader is told: [[role, name], …]
//   {"do": "said", "tab": NAME}                          what the page wrote to its console, and what its policy blocked
//   {"do": "screenshot", "tab": NAME, "file": PATH}      the whole page as PNG
//   {"do": "quit"}
import { createInterface } from "node:readline";
import { Browser } from "./lib/chromium.mjs";

const COMMANDS = ["open", "look", "wait", "press", "reload", "offline", "crash", "close", "tree", "said", "screenshot"];
const say = (answer) => process.stdout.write(`${JSON.stringify(answer)}\n`);
const browser = await Browser.start(process.argv[2]);
say({ ok: true });
try {
  for await (const line of createInterface({ input: process.stdin })) {
    const command = JSON.parse(line);
    if (command.do === "quit") break;
    try {
      if (!COMMANDS.includes(command.do)) throw new Error(`unknown: ${command.do}`);
      say({ id: command.id, ok: await browser[command.do](command) });
    } catch (thrown) {
      say({ id: command.id, error: String(thrown.message ?? thrown) });
    }
  }
} finally {
  await browser.stop();
}
