//! Export formats for other programs.

use crate::record::AuditRecord;
use serde_json::Value;
use signalbox_wire::printable;

/// Columns of an exported table, in order.
pub const COLUMNS: [&str; 17] = [
    "chain",
    "seq",
    "timestamp",
    "event_type",
    "source",
    "risk_level",
    "correlation_id",
    "principal",
    "trust_level",
    "phase",
    "method",
    "tool",
    "backend",
    "decision",
    "policy",
    "status",
    "latency_ms",
];

/// Returns the header row of a table.
#[must_use]
pub fn csv_head() -> String {
    COLUMNS.join(",") + "\r\n"
}

/// Returns a record as a row of a table (RFC 4180).
#[must_use]
pub fn csv_row(record: &AuditRecord) -> String {
    let value = |name: &&str| {
        let own = match *name {
            "principal" | "trust_level" => &record.value["user_context"][*name],
            "phase" | "method" | "tool" | "backend" | "decision" | "policy" | "status" | "latency_ms" => {
                &record.value["details"][*name]
            }
            name => &record.value[name],
        };
        match own {
            Value::Null => String::new(),
            Value::String(text) => quoted(text),
            other => quoted(&other.to_string()),
        }
    };
    COLUMNS.iter().map(value).collect::<Vec<_>>().join(",") + "\r\n"
}

/// Characters that begin a formula in a spreadsheet, also in full width.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// Quotes a cell, on one line and without characters that control a terminal. Prefixes text that a spreadsheet would
/// take for a formula, because callers may control it.
fn quoted(text: &str) -> String {
    let text = printable::one_line(text);
    let led = if text.trim_start().starts_with(FORMULA) { format!("'{text}") } else { text };
    match led.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", led.replace('"', "\"\"")),
        false => led,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_quoted_and_never_a_formula() {
        for (text, cell) in [("a", "a"), ("a,b", "\"a,b\""), ("say \"x\"", "\"say \"\"x\"\"\""), ("=1+1", "'=1+1")] {
            assert_eq!(quoted(text), cell);
        }
        for start in ["@", "-", "+", "\t=", "\r\n=", " =", "\u{ff1d}"] {
            assert!(quoted(&format!("{start}1")).starts_with('\''), "{start:?}");
        }
    }

    #[test]
    fn a_cell_forges_no_line_and_controls_no_terminal() {
        let harmful = "a\nchain,1\r\n\tb\u{1b}[2J\u{202e}\u{2066}\u{2028}\u{85}\u{9b}1m\u{7f}\u{feff}";
        let cell = quoted(harmful);
        assert_eq!(cell.chars().find(|char| printable::is_harmful(*char)), None, "{cell:?}");
        assert!(cell.starts_with("\"a chain,1   b\\u{1b}[2J\\u{202e}"), "{cell}");
    }

    #[test]
    fn a_row_has_every_column() {
        let line = r#"{"chain":"c","seq":1,"timestamp":"2026-11-17T10:00:00.000Z","event_type":"tool_invocation","source":"mcp_protocol","user_context":{"principal":"user:ada","trust_level":"verified"},"details":{"phase":"outcome","method":"tools/call","tool":"a,b","backend":"files","decision":"allow","status":"success","latency_ms":3},"risk_level":"high","correlation_id":"audit-1-2","prev":"","hash":""}"#;
        let row = csv_row(&AuditRecord::read(line).unwrap());
        assert_eq!(
            row,
            "c,1,2026-11-17T10:00:00.000Z,tool_invocation,mcp_protocol,high,audit-1-2,user:ada,verified,outcome,tools/call,\"a,b\",files,allow,,success,3\r\n"
        );
        assert_eq!(csv_head().split(',').count(), COLUMNS.len());
    }
}
