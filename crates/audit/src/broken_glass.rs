//! Records of emergency ("break glass") access: its grant and its end.

use crate::event::{AuditNote, EventType, Object, RiskLevel, SECURITY};
use signalbox_wire::timestamp;

/// Start or end of an emergency grant.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BrokenGlass<'a> {
    /// Name of the grant in decisions.
    pub grant: &'a str,
    /// Principal that may use everything.
    pub to: &'a str,
    /// Principal that issued the grant.
    pub by: &'a str,
    /// Reason for the grant.
    pub because: &'a str,
    /// Time at which the grant ends, in milliseconds since 1970.
    pub until: u64,
    /// True when the grant begins, false when it is over.
    pub begins: bool,
}

impl BrokenGlass<'_> {
    /// Returns the record of the grant. Its start is critical, because an operator has to look at it at once.
    #[must_use]
    pub fn note(&self, unix_ms: u64) -> AuditNote {
        let (mut user_context, mut details) = (String::new(), String::new());
        let mut user = Object::new(&mut user_context);
        user.text("principal", self.by);
        user.finish();
        let mut about = Object::new(&mut details);
        about.text("phase", if self.begins { "begin" } else { "end" });
        about.text("policy", self.grant);
        about.text("to", self.to);
        about.text("until", &timestamp::rfc3339_millis(self.until));
        about.text("reason", self.because);
        about.finish();
        AuditNote {
            timestamp: unix_ms,
            event_type: EventType::BreakGlass,
            source: SECURITY,
            user_context,
            details,
            risk_level: if self.begins { RiskLevel::Critical } else { RiskLevel::Medium },
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
        let event = broken.note(1);
        assert_eq!((event.event_type, event.risk_level), (EventType::BreakGlass, RiskLevel::Critical));
        assert_eq!(
            event.details,
            r#"{"phase":"begin","policy":"break_glass:1","to":"user:ada","until":"2023-11-14T22:13:20.000Z","reason":"it \"burns\""}"#
        );
        let over = BrokenGlass { begins: false, ..broken }.note(1);
        assert!(over.risk_level < RiskLevel::Critical && over.details.starts_with(r#"{"phase":"end""#));
    }
}
