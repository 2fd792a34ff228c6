//! What the client answers when it is asked.

use serde_json::{Value, json};

use crate::revision::Revision;

/// Answers to questions of servers; what has none is not declared.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// To `elicitation/create`: a whole result.
    pub elicitation: Option<Value>,
    /// To `sampling/createMessage`: a whole result.
    pub sampling: Option<Value>,
    /// To `roots/list`: a whole result.
    pub roots: Option<Value>,
    /// Whether the tasks of 2026-07-28 are declared.
    pub tasks: bool,
}

impl Answers {
    /// To everything: a name, a word and a root.
    pub fn all(name: &str) -> Self {
        let content = json!({"type": "text", "text": format!("word for {name}")});
        Self {
            elicitation: Some(json!({"action": "accept", "content": {"name": name}})),
            sampling: Some(json!({"role": "assistant", "content": content, "model": "test", "stopReason": "endTurn"})),
            roots: Some(json!({"roots": [{"uri": format!("file:///{name}"), "name": name}]})),
            tasks: false,
        }
    }

    /// The answer to this method, if there is one.
    pub fn to(&self, method: &str) -> Option<Value> {
        match method {
            "elicitation/create" => self.elicitation.clone(),
            "sampling/createMessage" => self.sampling.clone(),
            "roots/list" => self.roots.clone(),
            _ => None,
        }
    }

    /// What is declared in this revision.
    pub fn capabilities(&self, revision: Revision) -> Value {
        let mut declared = json!({});
        if self.elicitation.is_some() && revision.elicits() {
            declared["elicitation"] = if revision >= Revision::R4 { json!({"form": {}}) } else { json!({}) };
        }
        if self.sampling.is_some() {
            declared["sampling"] = json!({});
        }
        if self.roots.is_some() {
            declared["roots"] = json!({});
        }
        if self.tasks && revision.modern() {
            declared["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
        }
        declared
    }
}
