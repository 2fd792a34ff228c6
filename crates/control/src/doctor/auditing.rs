//! Audit log of a running process: whether it is written, and reaches its sinks.

use super::finding::Finding;
use crate::status::AuditStatus;
use serde_json::Value;

const CHECK: &str = "audit";

/// Returns the findings from the status of a running process.
pub(super) fn from_status(status: &Value) -> Vec<Finding> {
    let Some(audit) = status.get("audit").and_then(|audit| serde_json::from_value::<AuditStatus>(audit.clone()).ok())
    else {
        return Vec::new();
    };
    let running = format!("pid {}", status["pid"]);
    let mut findings = Vec::new();
    if let Some(why) = &audit.failing {
        let found = format!("{running} cannot write its audit log: {why}");
        findings.push(Finding::problem(CHECK, found, "make room in the data folder; writing resumes by itself"));
    }
    for sink in &audit.sinks {
        let Some(why) = &sink.failing else { continue };
        let found = format!("{running}: the sink `{}` takes nothing, {} records wait: {why}", sink.name, sink.waiting);
        findings.push(match sink.required {
            true => {
                Finding::problem(CHECK, found, "calls are refused until it works; see `mcp.protocol.audit.required`")
            }
            false => {
                Finding::warning(CHECK, found, "it is tried again by itself; what waits is kept up to `spool_max`")
            }
        });
    }
    let skipped: u64 = audit.sinks.iter().map(|sink| sink.skipped).sum();
    if audit.lost + skipped > 0 {
        let found = format!("{running}: records never written: {}, left out for a sink: {skipped}", audit.lost);
        findings.push(Finding::warning(CHECK, found, "see `signalbox audit verify`, and docs/audit.md about gaps"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Severity;
    use serde_json::json;

    #[test]
    fn what_keeps_calls_from_leaving_is_a_problem_and_what_waits_a_warning() {
        let say = |audit: Value| {
            let found = from_status(&json!({"pid": 7, "audit": audit}));
            found.iter().map(|finding| finding.severity).collect::<Vec<_>>()
        };
        let sink = |required: bool| json!({"sinks": [{"name": "remote", "required": required, "failing": "it hangs"}]});
        assert_eq!(say(sink(true)), [Severity::Problem]);
        assert_eq!(say(sink(false)), [Severity::Warning]);
        assert_eq!(say(json!({"failing": "disk full", "lost": 3})), [Severity::Problem, Severity::Warning]);
        assert!(say(json!({"written": 3, "sinks": [{"name": "file"}]})).is_empty());
        assert!(from_status(&json!({"pid": 7})).is_empty());
    }
}
