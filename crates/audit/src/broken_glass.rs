//! The record that somebody may use everything for a while, or no longer.

use crate::event::{AuditEvent, EventType, Object, RiskLevel, SECURITY};
use signalbox_wire::timestamp;

/// A grant that breaks the glass, and what became of it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BrokenGlass<'a> {
    /// The name of the grant in decisions.
    pub grant: &'a str,
    /// Who may use everything.
    pub to: &'a str,
    /// Who gave it.
    pub by: &'a str,
    /// Why.
    pub because: &'a str,
    /// When it ends, in milliseconds since 1970.
    pub until: u64,
    /// Whether it begins, or is over.
    pub begins: bool,
}

impl BrokenGlass<'_> {
    /// The event of it. That it begins is critical: somebody has to look at it now.
    #[must_use]
    pub fn event(&self, unix_ms: u64) -> AuditEvent {
        let mut user = Object::new();
        user.text("principal", self.by);
        let mut details = Object::new();
        details.text("phase", if self.begins { "begin" } else { "end" });
        details.text("policy", self.grant);
        details.text("to", self.to);
        details.text("until", &timestamp::rfc3339_millis(self.until));
        details.text("reason", self.because);
        AuditEvent {
            timestamp: unix_ms,
            event_type: EventType::BreakGlass,
            source: SECURITY,
            user_context: user.finish().into(),
            details: details.finish(),
            risk_level: if self.begins { RiskLevel::Critical } else { RiskLevel::Medium },
            correlation_id: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_names_who_may_what_until_when_and_why() {
        let broken = BrokenGlass {
            grant: "break_glass:1",
            to: "user:ada",
            by: "bob",
            because: "it \"burns\"",
            until: 1_700_000_000_000,
            begins: true,
        };
        let event = broken.event(1);
        assert_eq!((event.event_type, event.risk_level), (EventType::BreakGlass, RiskLevel::Critical));
        assert_eq!(
            event.details,
            r#"{"phase":"begin","policy":"break_glass:1","to":"user:ada","until":"2023-11-14T22:13:20.000Z","reason":"it \"burns\""}"#
        );
        let over = BrokenGlass { begins: false, ..broken }.event(1);
        assert!(over.risk_level < RiskLevel::Critical && over.details.starts_with(r#"{"phase":"end""#));
    }
}
