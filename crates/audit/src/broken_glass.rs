//! The record that somebody may use everything for a while, or no longer.

use crate::event::{EventType, Note, Object, RiskLevel, SECURITY};
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
    /// What is written down of it. That it begins is critical: somebody has to look at it now.
    #[must_use]
    pub fn note(&self, unix_ms: u64) -> Note {
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
        Note {
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
