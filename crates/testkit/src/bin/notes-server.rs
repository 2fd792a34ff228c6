//! A server on standard input and output that mints an id for every note and counts its writes in a file:
//! `notes-server COUNTER [--changed] [--fixed-ids]`. With `--changed`, `read_note` answers in another form; with
//! `--fixed-ids`, the ids are the same in every run.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;

struct Notes {
    counter: PathBuf,
    changed: bool,
    /// What the ids of this run begin with.
    prefix: String,
    notes: BTreeMap<String, String>,
    writes: u64,
}

impl Notes {
    fn tools(&self) -> Value {
        let tool = |name: &str, member: &str, read_only: bool| {
            json!({"name": name, "description": format!("{name} of the notes"),
                   "inputSchema": {"type": "object", "properties": {member: {"type": "string"}}, "required": [member]},
                   "annotations": {"readOnlyHint": read_only}})
        };
        json!({"tools": [tool("create_note", "text", false), tool("read_note", "note", true), tool("delete_note", "note", false)]})
    }

    fn wrote(&mut self) -> std::io::Result<()> {
        self.writes += 1;
        std::fs::write(&self.counter, self.writes.to_string())
    }

    fn call(&mut self, name: &str, arguments: &Value) -> std::io::Result<Value> {
        let text = |text: String| json!({"content": [{"type": "text", "text": text}]});
        let note = arguments["note"].as_str().unwrap_or_default();
        Ok(match name {
            "create_note" => {
                self.wrote()?;
                let id = format!("{}-{}", self.prefix, self.notes.len() + 1);
                self.notes.insert(id.clone(), arguments["text"].as_str().unwrap_or_default().to_owned());
                text(format!("Created {id}."))
            }
            "delete_note" => {
                self.wrote()?;
                match self.notes.remove(note) {
                    Some(_) => text(format!("Deleted {note}.")),
                    None => json!({"isError": true, "content": [{"type": "text", "text": "There is no such note."}]}),
                }
            }
            _ => match self.notes.get(note) {
                Some(found) if self.changed => text(json!({"note": note, "body": found}).to_string()),
                Some(found) => text(json!({"note": note, "text": found}).to_string()),
                None => json!({"isError": true, "content": [{"type": "text", "text": "There is no such note."}]}),
            },
        })
    }

    fn answer(&mut self, request: &Value) -> std::io::Result<Value> {
        let params = &request["params"];
        Ok(match request["method"].as_str().unwrap_or_default() {
            "initialize" => json!({"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                                   "serverInfo": {"name": "notes", "version": "1"}}}),
            "ping" => json!({"result": {}}),
            "tools/list" => json!({"result": self.tools()}),
            "tools/call" => {
                let name = params["name"].as_str().unwrap_or_default().to_owned();
                json!({"result": self.call(&name, &params["arguments"])?})
            }
            _ => json!({"error": {"code": -32601, "message": "Method not found"}}),
        })
    }
}

fn main() -> std::io::Result<()> {
    let mut words = std::env::args_os().skip(1);
    let counter = PathBuf::from(words.next().unwrap_or_default());
    let flags: Vec<_> = words.collect();
    let has = |flag: &str| flags.iter().any(|word| word == flag);
    let (changed, pid) = (has("--changed"), std::process::id());
    let prefix = if has("--fixed-ids") { "note".to_owned() } else { format!("note-{pid:x}") };
    std::fs::write(&counter, "0")?;
    let mut notes = Notes { counter, changed, prefix, notes: BTreeMap::new(), writes: 0 };
    for line in std::io::stdin().lock().lines() {
        let Ok(request) = serde_json::from_str::<Value>(&line?) else { continue };
        let Some(id) = request.get("id").filter(|_| request.get("method").is_some()) else { continue };
        let mut answer = notes.answer(&request)?;
        answer["jsonrpc"] = "2.0".into();
        answer["id"] = id.clone();
        writeln!(std::io::stdout().lock(), "{answer}")?;
    }
    Ok(())
}
