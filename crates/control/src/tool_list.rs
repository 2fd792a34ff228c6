//! Output of `tools list`: every tool with its backend, and the backends whose tools are missing.

use crate::in_process_session::{InProcessSession, PipeError};
use crate::table;
use serde_json::{Map, Value, json};
use signalbox_config::Config;
use signalbox_runtime::Gateway;

/// Maximum number of characters shown of a description.
const DESCRIPTION: usize = 100;

/// Tools that one caller sees.
#[derive(Debug, Default)]
pub struct ToolList {
    /// Tools as clients get them, with `backend`, `trust_level` and `category` added.
    tools: Vec<Value>,
    /// Backends that are not up, with the reason.
    missing: Vec<String>,
    /// False if there are backends and none of them is up.
    ready: bool,
}

impl ToolList {
    /// Requests every page of the list from the gateway.
    ///
    /// # Errors
    /// If the gateway refuses.
    pub async fn ask(pipe: &mut InProcessSession, gateway: &Gateway, config: &Config) -> Result<Self, PipeError> {
        let mut tools = Vec::new();
        let mut params = json!({});
        loop {
            let mut page = pipe.request("tools/list", params, |_| ()).await?;
            if let Some(more) = page["tools"].as_array_mut() {
                tools.append(more);
            }
            match page["nextCursor"].take() {
                Value::Null => break,
                cursor => params = json!({"cursor": cursor}),
            }
        }
        let catalog = gateway.catalog.snapshot();
        for tool in tools.iter_mut().filter_map(Value::as_object_mut) {
            let route = tool.get("name").and_then(Value::as_str).and_then(|name| catalog.tool(name));
            let Some(route) = route else { continue };
            label(tool, &route.backend, config);
        }
        let ready = gateway.backends().is_empty() || gateway.is_ready();
        Ok(Self { tools, missing: missing(gateway), ready })
    }

    /// Returns the list as JSON, the inverse of [`Self::from_json`].
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({"tools": self.tools, "missing": self.missing, "ready": self.ready})
    }

    /// Parses the list that a running process sent.
    #[must_use]
    pub fn from_json(mut told: Value) -> Self {
        let tools = told["tools"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let missing = told["missing"].as_array().into_iter().flatten().filter_map(Value::as_str);
        Self { tools, missing: missing.map(str::to_owned).collect(), ready: told["ready"] != false }
    }

    /// Returns true unless there are backends and none of them is up.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// Returns one sentence for each unavailable backend.
    #[must_use]
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Returns the tools as one line of JSON.
    #[must_use]
    pub fn json(&self) -> String {
        format!("{}\n", Value::from(self.tools.clone()))
    }

    /// Returns the tools as a table.
    #[must_use]
    pub fn shown(&self) -> String {
        let labelled = |label: &str| self.tools.iter().any(|tool| tool[label].is_string());
        let (trust, category) = (labelled("trust_level"), labelled("category"));
        let mut headings = vec!["TOOL", "BACKEND"];
        headings.extend(trust.then_some("TRUST"));
        headings.extend(category.then_some("CATEGORY"));
        headings.push("DESCRIPTION");
        let row = |tool: &Value| {
            let word = |key: &str| tool[key].as_str().unwrap_or("-").to_owned();
            let mut cells = vec![word("name"), word("backend")];
            cells.extend(trust.then(|| word("trust_level")));
            cells.extend(category.then(|| word("category")));
            cells.push(description(tool));
            cells
        };
        table::render(&headings, &self.tools.iter().map(row).collect::<Vec<_>>())
    }
}

/// Adds the backend of a tool and the operator's labels for that backend. The demo tools have no labels.
fn label(tool: &mut Map<String, Value>, backend: &str, config: &Config) {
    tool.insert("backend".to_owned(), backend.into());
    let Some(configured) = config.backends.iter().find(|one| one.name == backend) else { return };
    tool.insert("trust_level".to_owned(), json!(configured.trust_level));
    if let Some(category) = &configured.category {
        tool.insert("category".to_owned(), category.as_str().into());
    }
}

/// Returns the first line of a tool's description, shortened.
fn description(tool: &Value) -> String {
    let text = tool["description"].as_str().or(tool["title"].as_str()).unwrap_or_default();
    let first = text.trim().lines().next().unwrap_or_default();
    let mut short: String = first.chars().take(DESCRIPTION).collect();
    if short.len() < first.len() {
        short.push('…');
    }
    short
}

/// Returns one sentence for each backend that is not up.
#[must_use]
pub fn missing(gateway: &Gateway) -> Vec<String> {
    let status = gateway.status();
    let down = status.backends.iter().filter(|backend| !matches!(backend.state, "up" | "asleep" | "waiting"));
    down.map(|backend| {
        let why = backend.last_error.as_deref().unwrap_or("it did not answer in time");
        format!("backend `{}` is {}: {why}", backend.name, backend.state)
    })
    .collect()
}
