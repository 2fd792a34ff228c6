//! Translation of list entries to the client's era.

use super::object::says;
use crate::catalog::ListKind;
use bytes::Bytes;
use signalbox_wire::{Edits, Era, Revision, Span, json};

/// Translates an entry for a client of revision `to`. Only members that would break a client are removed; unknown ones
/// do no harm. An entry that fits is returned unchanged.
#[must_use]
pub fn entry(kind: ListKind, to: Revision, entry: &Bytes) -> Bytes {
    if kind != ListKind::Tools {
        return entry.clone();
    }
    let whole = Span::new(0, entry.len());
    let mut edits = Edits::new();
    for member in json::members(entry) {
        let key = member.key.of(entry);
        if to.era() == Era::Modern {
            // In the new era the server decides whether a call becomes a task.
            if json::key_eq(key, "execution") {
                edits.remove_member(entry, whole, "execution");
            }
        } else if to.structured_content()
            && json::key_eq(key, "outputSchema")
            && !says(member.value.of(entry), "type", "object")
        {
            edits.remove_member(entry, whole, "outputSchema");
        }
    }
    edits.apply(entry)
}

/// Adds the task support of a new backend's tool for a client of 2025-11-25, which asks for a task only if the tool
/// allows it.
#[must_use]
pub fn with_task_support(tool: &Bytes) -> Bytes {
    if json::member(tool, "execution").is_some() {
        return tool.clone();
    }
    let mut edits = Edits::new();
    edits.set_member(tool, Span::new(0, tool.len()), "execution", br#"{"taskSupport":"optional"}"#);
    edits.apply(tool)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::{V2024_11_05 as R1, V2025_06_18 as R3, V2025_11_25 as R4, V2026_07_28 as R5};

    fn shown(kind: ListKind, to: Revision, text: &str) -> String {
        String::from_utf8(entry(kind, to, &Bytes::copy_from_slice(text.as_bytes())).to_vec()).unwrap()
    }

    #[test]
    fn an_output_that_is_no_object_is_not_promised_to_old_clients() {
        let list = r#"{"name":"t","outputSchema":{"type":"array"},"inputSchema":{"type":"object"}}"#;
        for to in [R3, R4] {
            assert_eq!(shown(ListKind::Tools, to, list), r#"{"name":"t","inputSchema":{"type":"object"}}"#);
        }
        assert_eq!(shown(ListKind::Tools, R5, list), list);
        assert_eq!(shown(ListKind::Tools, R1, list), list);
        let either = r#"{"name":"t","inputSchema":{},"outputSchema":{"anyOf":[{"type":"object"}]}}"#;
        assert_eq!(shown(ListKind::Tools, R4, either), r#"{"name":"t","inputSchema":{}}"#);
    }

    #[test]
    fn how_a_tool_runs_as_a_task_is_not_told_in_the_new_era() {
        let tool = r#"{"name":"t","execution":{"taskSupport":"optional"},"x":1}"#;
        assert_eq!(shown(ListKind::Tools, R5, tool), r#"{"name":"t","x":1}"#);
        assert_eq!(shown(ListKind::Tools, R4, tool), tool);
    }

    #[test]
    fn a_tool_whose_server_decides_may_be_asked_to_run_as_a_task() {
        let shown = |tool: &'static str| with_task_support(&Bytes::from_static(tool.as_bytes()));
        assert_eq!(shown(r#"{"name":"t"}"#), r#"{"name":"t","execution":{"taskSupport":"optional"}}"#);
        assert_eq!(shown(r#"{"name":"t","execution":{}}"#), r#"{"name":"t","execution":{}}"#);
    }

    #[test]
    fn what_fits_is_the_same_bytes() {
        let tool = Bytes::from_static(br#"{"name":"t","outputSchema":{"type":"object"},"icons":[]}"#);
        for to in Revision::ALL {
            assert_eq!(entry(ListKind::Tools, to, &tool).as_ptr(), tool.as_ptr());
            assert_eq!(entry(ListKind::Prompts, to, &tool).as_ptr(), tool.as_ptr());
        }
        assert_eq!(shown(ListKind::Prompts, R4, r#"{"outputSchema":1}"#), r#"{"outputSchema":1}"#);
    }
}
