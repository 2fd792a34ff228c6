//! Tools: CODAP's two sets, those that a page registers, and the one that binds an MCP session to a code.

use crate::settings::ListedTools;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Maximum number of tools that a page may register.
pub const MAX_PAGE_TOOLS: usize = 256;
/// Maximum length of a tool's name.
const MAX_NAME: usize = 128;

/// Name of the tool by which a client with sessions selects a page.
pub const CONNECT: &str = "connect_to_session";
/// Name of the request that tells a page that an agent has connected.
pub const CONNECTED: &str = "__claude_connected__";
/// Argument by which a stateless client selects a page.
pub const SESSION_CODE: &str = "sessionCode";

const DOCUMENT: &str = include_str!("../assets/tools-document.json");
const LATER: &str = include_str!("../assets/tools-later.json");

/// A tool of CODAP.
#[derive(Debug)]
struct Tool {
    definition: Value,
    later: bool,
    idempotent: bool,
}

/// Tools that do not depend on a page.
#[derive(Debug)]
pub struct ToolSet {
    listed: ListedTools,
    order: Vec<String>,
    by_name: HashMap<String, Tool>,
}

/// Reason to reject a page's tools.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadTools {
    /// There are too many.
    #[error("a page may have {MAX_PAGE_TOOLS} tools")]
    TooMany,
    /// An entry is not a tool.
    #[error("tool {0}: {1}")]
    NotATool(usize, &'static str),
    /// The name is taken.
    #[error("tool {0}: the name `{1}` is taken by a tool of CODAP or by another of the page")]
    Taken(usize, String),
}

impl ToolSet {
    /// Loads the built-in tools, of which `listed` are listed.
    #[must_use]
    pub fn new(listed: ListedTools) -> Self {
        let mut set = Self { listed, order: Vec::new(), by_name: HashMap::new() };
        if listed != ListedTools::None {
            set.add(DOCUMENT, false);
            set.add(LATER, true);
        }
        set
    }

    fn add(&mut self, text: &str, later: bool) {
        let tools: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
        for definition in tools {
            let Some(name) = definition["name"].as_str().map(str::to_owned) else { continue };
            let idempotent = is_idempotent(&definition);
            self.order.push(name.clone());
            self.by_name.insert(name, Tool { definition, later, idempotent });
        }
    }

    /// Returns true if lists include the tool of this name. Tools of pages are always listed.
    #[must_use]
    pub fn is_listed(&self, name: &str) -> bool {
        self.by_name.get(name).is_none_or(|tool| match self.listed {
            ListedTools::Document => !tool.later,
            ListedTools::Later => tool.later,
            ListedTools::Both => true,
            ListedTools::None => false,
        })
    }

    /// Returns true if a call of this tool may be executed twice. The page's own tools declare it by their annotations.
    #[must_use]
    pub fn is_idempotent(&self, name: &str, own: &[Value]) -> bool {
        match self.by_name.get(name) {
            Some(tool) => tool.idempotent,
            None => name == CONNECTED || own.iter().any(|tool| tool["name"] == *name && is_idempotent(tool)),
        }
    }

    /// Returns true if CODAP or the page has a tool of this name.
    #[must_use]
    pub fn has(&self, name: &str, own: &[Value]) -> bool {
        self.by_name.contains_key(name) || own.iter().any(|tool| tool["name"] == *name)
    }

    /// Returns all tools that can be called, CODAP's first.
    pub fn all<'a>(&'a self, own: &'a [Value]) -> impl Iterator<Item = &'a Value> {
        self.order.iter().filter_map(|name| self.by_name.get(name)).map(|tool| &tool.definition).chain(own)
    }

    /// Returns the tool manifest of `/api/metadata`: the listed tools, with their schema under both names.
    #[must_use]
    pub fn manifest(&self, own: &[Value]) -> Vec<Value> {
        let listed = self.all(own).filter(|tool| tool["name"].as_str().is_some_and(|name| self.is_listed(name)));
        let entry = |tool: &Value| {
            let schema = &tool["inputSchema"];
            json!({
                "name": tool["name"],
                "description": tool["description"],
                "parameters": schema,
                "inputSchema": schema,
            })
        };
        listed.map(entry).collect()
    }

    /// Validates the tools that a page registers. Keeps only the members that MCP defines.
    ///
    /// # Errors
    /// If an entry is not a tool, or its name is taken.
    pub fn read_own(&self, tools: &[Value]) -> Result<Vec<Value>, BadTools> {
        if tools.len() > MAX_PAGE_TOOLS {
            return Err(BadTools::TooMany);
        }
        let mut own: Vec<Value> = Vec::with_capacity(tools.len());
        for (place, tool) in tools.iter().enumerate() {
            let bad = |why| BadTools::NotATool(place, why);
            let name = tool["name"].as_str().ok_or(bad("`name` must be a string"))?;
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
            if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(fits) {
                return Err(bad("`name` must be 1 to 128 letters, digits, `_`, `-` or `.`"));
            }
            if self.has(name, &own) || name == CONNECT || name.starts_with("__") {
                return Err(BadTools::Taken(place, name.to_owned()));
            }
            if !tool["inputSchema"].is_object() {
                return Err(bad("`inputSchema` must be an object"));
            }
            let known = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];
            let kept = known.into_iter().filter_map(|key| Some((key.to_owned(), tool.get(key)?.clone())));
            own.push(Value::Object(kept.collect::<Map<_, _>>()));
        }
        Ok(own)
    }
}

fn is_idempotent(tool: &Value) -> bool {
    let hint = |name: &str| tool["annotations"][name] == Value::Bool(true);
    hint("readOnlyHint") || hint("idempotentHint")
}

/// Adds the session code to a tool's schema, for stateless clients.
#[must_use]
pub fn with_session_code(tool: &Value) -> Value {
    let mut tool = tool.clone();
    if let Some(schema) = tool["inputSchema"].as_object_mut() {
        let properties = schema.entry("properties").or_insert_with(|| json!({}));
        if let Some(properties) = properties.as_object_mut().filter(|all| !all.contains_key(SESSION_CODE)) {
            properties.insert(
                SESSION_CODE.to_owned(),
                json!({
                    "type": "string",
                    "pattern": "^[A-Z0-9]{8}$",
                    "description": "The 8-character code that the page shows: which page is meant.",
                }),
            );
        }
    }
    tool
}

/// Returns the tool that binds an MCP session to a page.
#[must_use]
pub fn connect_tool() -> Value {
    json!({
        "name": CONNECT,
        "title": "Connect to a page",
        "description": "Connects this session to the page that shows this 8-character code. Ask the user for the code, call this once, \
                        then use the other tools.",
        "inputSchema": {
            "type": "object",
            "properties": {"sessionId": {"type": "string", "description": "The code, such as K7QWERTY."}},
            "required": ["sessionId"],
        },
        "annotations": {"readOnlyHint": false, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves C-5, C-21, CO-15 and CO-16.
    #[test]
    fn the_first_set_has_33_tools_and_the_later_one_34() {
        for (listed, count) in
            [(ListedTools::Document, 33), (ListedTools::Later, 34), (ListedTools::Both, 67), (ListedTools::None, 0)]
        {
            let set = ToolSet::new(listed);
            let manifest = set.manifest(&[]);
            assert_eq!(manifest.len(), count, "{listed:?}");
            let own = &json!([{"name": "x", "inputSchema": {}}]);
            assert_eq!(set.manifest(own.as_array().unwrap()).len(), count + 1);
            for tool in &manifest {
                assert!(tool["description"].as_str().is_some_and(|text| text.len() > 10), "{tool}");
                assert_eq!(tool["parameters"]["type"], "object", "C-5: the schema is there under its old name");
            }
        }
        let set = ToolSet::new(ListedTools::Document);
        assert!(set.has("createDataContext", &[]) && !set.is_listed("createDataContext"), "callable, not listed");
        assert!(set.is_idempotent("get_items", &[]) && !set.is_idempotent("create_items", &[]));
    }

    #[test]
    fn a_page_brings_tools_whose_names_are_free() {
        let set = ToolSet::new(ListedTools::Document);
        let read = |tools: Value| set.read_own(tools.as_array().unwrap());
        let fine =
            read(json!([{"name": "roll", "inputSchema": {}, "annotations": {"readOnlyHint": true}, "x": 1}])).unwrap();
        assert_eq!(fine[0].to_string(), r#"{"name":"roll","inputSchema":{},"annotations":{"readOnlyHint":true}}"#);
        assert!(set.is_idempotent("roll", &fine));
        let taken = |name: &str| read(json!([{"name": name, "inputSchema": {}}])).unwrap_err();
        assert_eq!(taken("get_items"), BadTools::Taken(0, "get_items".to_owned()));
        assert_eq!(taken(CONNECT), BadTools::Taken(0, CONNECT.to_owned()));
        assert!(matches!(taken("a b"), BadTools::NotATool(0, _)));
        assert!(read(json!([{"name": "a", "inputSchema": {}}, {"name": "a", "inputSchema": {}}])).is_err());
        assert!(read(json!([{"name": "a"}])).is_err() && read(json!([1])).is_err());
        let many: Vec<Value> =
            (0..=MAX_PAGE_TOOLS).map(|n| json!({"name": format!("t{n}"), "inputSchema": {}})).collect();
        assert_eq!(set.read_own(&many), Err(BadTools::TooMany));
        assert!(set.read_own(&many[1..]).is_ok());
        let none = ToolSet::new(ListedTools::None);
        assert!(none.read_own(&[json!({"name": "get_items", "inputSchema": {}})]).is_ok());
    }

    /// Proves C-37.
    #[test]
    fn only_the_new_revision_sees_the_code_in_schemas() {
        let set = ToolSet::new(ListedTools::Later);
        let tool = set.all(&[]).find(|tool| tool["name"] == "createDataContext").unwrap();
        assert!(tool["inputSchema"]["properties"]["collections"]["items"]["properties"]["attrs"].is_object());
        let added = with_session_code(tool);
        assert_eq!(added["inputSchema"]["properties"][SESSION_CODE]["type"], "string");
        let mut back = added.clone();
        back["inputSchema"]["properties"].as_object_mut().unwrap().shift_remove(SESSION_CODE);
        assert_eq!(back.to_string(), tool.to_string());
    }
}
