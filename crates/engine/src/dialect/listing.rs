//! Translation of tool lists for the dialect: tools with their labels, filtered as requested.

use super::error::quoted;
use crate::standing::TrustLevel;
use crate::tool_label::ToolLabel;
use signalbox_wire::json;

/// Filter of a tool list.
#[derive(Copy, Clone, Debug, Default)]
pub struct ListFilter<'a> {
    /// Only tools of this category.
    pub category: Option<&'a str>,
    /// Only tools of this trust level.
    pub trust: Option<TrustLevel>,
}

impl ListFilter<'_> {
    fn fits(&self, label: &ToolLabel) -> bool {
        self.category.is_none_or(|wanted| label.categories.iter().any(|category| **category == *wanted))
            && self.trust.is_none_or(|wanted| label.trust == wanted)
    }
}

/// Translates the result of MCP's `tools/list` for the dialect. `label` returns the label of a tool by its listed name.
#[must_use]
pub fn translate(
    result: &[u8],
    wanted: ListFilter<'_>,
    label: &dyn Fn(&str) -> ToolLabel,
    session: Option<&str>,
) -> Vec<u8> {
    let member = |name: &str| json::member(result, name).map(|span| span.of(result));
    let tools = member("tools").unwrap_or(b"[]");
    let mut out = br#"{"tools":["#.to_vec();
    let mut is_first = true;
    for element in json::elements(tools) {
        let tool = element.of(tools);
        let Some(name) = json::member(tool, "name").and_then(|span| json::string(span.of(tool))) else { continue };
        let label = label(&name);
        if !wanted.fits(&label) {
            continue;
        }
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        write_tool(&mut out, tool, &name, &label);
    }
    out.push(b']');
    let next = member("nextCursor");
    let session = session.map(quoted);
    for (name, value) in [("nextCursor", next), ("session_id", session.as_deref())] {
        if let Some(value) = value {
            write_member(&mut out, name, value);
        }
    }
    out.push(b'}');
    out
}

fn write_tool(out: &mut Vec<u8>, tool: &[u8], name: &str, label: &ToolLabel) {
    let member = |key: &str| json::member(tool, key).map(|span| span.of(tool));
    let name = quoted(name);
    out.extend_from_slice(br#"{"tool_id":"#);
    out.extend_from_slice(&name);
    write_member(out, "name", &name);
    let version = label.version.as_deref().map(quoted);
    write_member(out, "version", version.as_deref().unwrap_or(b"null"));
    write_member(out, "description", member("description").unwrap_or(br#""""#));
    write_member(out, "categories", &texts(&label.categories));
    write_member(out, "trust_level", &quoted(label.trust.word()));
    write_member(out, "permissions", &texts(&label.permissions));
    out.extend_from_slice(br#","schema":{"input":"#);
    out.extend_from_slice(member("inputSchema").unwrap_or(b"{}"));
    write_member(out, "output", member("outputSchema").unwrap_or(b"{}"));
    out.extend_from_slice(b"}}");
}

fn write_member(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.push(b',');
    json::write_quoted(out, name);
    out.push(b':');
    out.extend_from_slice(value);
}

/// Encodes a list of strings as raw JSON.
pub(super) fn texts(all: &[Box<str>]) -> Vec<u8> {
    let quoted: Vec<String> = all.iter().map(|text| json::quote(text)).collect();
    format!("[{}]", quoted.join(",")).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn listed(wanted: ListFilter<'_>, session: Option<&str>) -> Value {
        let result = br#"{"tools":[{"name":"a","description":"A","inputSchema":{"type":"object","x":1.50},"outputSchema":{"y":2}},{"name":"b","title":"B","inputSchema":{}},{"nothing":1}],"nextCursor":"c","ttlMs":5}"#;
        let label = |name: &str| match name {
            "a" => ToolLabel {
                categories: vec!["filesystem".into(), "utility".into()],
                trust: TrustLevel::Verified,
                permissions: vec!["read:filesystem".into()],
                version: Some("1.0.0".into()),
            },
            _ => ToolLabel::default(),
        };
        serde_json::from_slice(&translate(result, wanted, &label, session)).unwrap()
    }

    /// Proves G-4 and G-19.
    #[test]
    fn tools_are_listed_with_their_labels_and_by_category_and_trust() {
        let first = json!({
            "tool_id": "a", "name": "a", "version": "1.0.0", "description": "A",
            "categories": ["filesystem", "utility"], "trust_level": "verified", "permissions": ["read:filesystem"],
            "schema": {"input": {"type": "object", "x": 1.5}, "output": {"y": 2}},
        });
        let second = json!({
            "tool_id": "b", "name": "b", "version": null, "description": "", "categories": [],
            "trust_level": "community", "permissions": [], "schema": {"input": {}, "output": {}},
        });
        let all = listed(ListFilter::default(), Some("s"));
        assert_eq!(all, json!({"tools": [first, second], "nextCursor": "c", "session_id": "s"}));
        for (category, trust, names) in [
            (Some("filesystem"), Some(TrustLevel::Verified), &["a"][..]),
            (Some("filesystem"), Some(TrustLevel::Community), &[]),
            (Some("file"), None, &[]),
            (None, Some(TrustLevel::Community), &["b"]),
        ] {
            let shown = listed(ListFilter { category, trust }, None);
            let ids: Vec<&str> =
                shown["tools"].as_array().unwrap().iter().filter_map(|tool| tool["tool_id"].as_str()).collect();
            assert_eq!(ids, names);
            assert!(shown.get("session_id").is_none());
        }
    }
}
