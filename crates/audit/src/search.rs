//! Search in audit records.

use crate::event::{EventType, RiskLevel};
use crate::record::AuditRecord;
use signalbox_wire::glob::{self, Wildcards};

/// Filter for records. An empty part matches everything.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AuditQuery {
    /// Earliest time, in milliseconds since 1970.
    pub since: Option<u64>,
    /// End of the period (exclusive), in milliseconds since 1970.
    pub until: Option<u64>,
    /// Pattern of the caller's principal.
    pub principal: Option<String>,
    /// Pattern for tools, prompts and URIs, as named by the backend or as shown to clients.
    pub tool: Option<String>,
    /// Name of a backend.
    pub backend: Option<String>,
    /// Name of a status, such as `denied`.
    pub status: Option<String>,
    /// Minimum risk of the event.
    pub risk: Option<RiskLevel>,
    pub event_type: Option<EventType>,
    /// Audit id of an exchange.
    pub correlation_id: Option<String>,
}

impl AuditQuery {
    /// Returns true if the record matches. Signed heads match only if the query asks for their kind.
    #[must_use]
    pub fn fits(&self, record: &AuditRecord) -> bool {
        let kind = match (self.event_type, record.event_type) {
            (Some(wanted), kind) => kind == Some(wanted),
            (None, kind) => kind != Some(EventType::ChainHead),
        };
        let named = |pattern: &Option<String>, names: [Option<&str>; 2]| {
            let fits = |pattern: &String| {
                names.iter().flatten().any(|name| glob::fits(pattern, name, Wildcards::StarAndQuestion))
            };
            pattern.as_ref().is_none_or(fits)
        };
        let is =
            |wanted: &Option<String>, value: Option<&str>| wanted.as_deref().is_none_or(|wanted| value == Some(wanted));
        kind && self.since.is_none_or(|since| record.at >= since)
            && self.until.is_none_or(|until| record.at < until)
            && self.risk.is_none_or(|risk| record.risk >= risk)
            && named(&self.principal, [record.principal(), None])
            && named(&self.tool, [record.detail("tool"), record.detail("exposed")])
            && is(&self.backend, record.detail("backend"))
            && is(&self.status, record.detail("status"))
            && is(&self.correlation_id, record.correlation_id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> AuditRecord {
        let line = r#"{"chain":"c","seq":1,"timestamp":"2026-11-17T10:00:00.000Z","event_type":"tool_invocation","source":"mcp_protocol","user_context":{"principal":"user:ada"},"details":{"tool":"delete","exposed":"files__delete","backend":"files","status":"denied"},"risk_level":"high","correlation_id":"audit-1-2","prev":"","hash":""}"#;
        AuditRecord::read(line).unwrap()
    }

    /// Every key of a search narrows it.
    #[test]
    fn each_part_of_a_query_narrows_it() {
        let (record, any) = (record(), AuditQuery::default());
        assert!(any.fits(&record));
        let text = |text: &str| Some(text.to_owned());
        for (good, bad) in [
            (
                AuditQuery { since: Some(record.at), ..any.clone() },
                AuditQuery { since: Some(record.at + 1), ..any.clone() },
            ),
            (
                AuditQuery { until: Some(record.at + 1), ..any.clone() },
                AuditQuery { until: Some(record.at), ..any.clone() },
            ),
            (
                AuditQuery { principal: text("user:*"), ..any.clone() },
                AuditQuery { principal: text("group:*"), ..any.clone() },
            ),
            (AuditQuery { tool: text("files__*"), ..any.clone() }, AuditQuery { tool: text("read"), ..any.clone() }),
            (AuditQuery { backend: text("files"), ..any.clone() }, AuditQuery { backend: text("file"), ..any.clone() }),
            (
                AuditQuery { status: text("denied"), ..any.clone() },
                AuditQuery { status: text("success"), ..any.clone() },
            ),
            (
                AuditQuery { risk: Some(RiskLevel::High), ..any.clone() },
                AuditQuery { risk: Some(RiskLevel::Critical), ..any.clone() },
            ),
            (
                AuditQuery { event_type: Some(EventType::ToolInvocation), ..any.clone() },
                AuditQuery { event_type: Some(EventType::ChainHead), ..any.clone() },
            ),
            (
                AuditQuery { correlation_id: text("audit-1-2"), ..any.clone() },
                AuditQuery { correlation_id: text("audit-1-3"), ..any.clone() },
            ),
        ] {
            assert!(good.fits(&record), "{good:?}");
            assert!(!bad.fits(&record), "{bad:?}");
        }
    }
}
