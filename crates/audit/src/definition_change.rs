//! Records of definitions that differ from the approved ones.

use crate::event::{AuditNote, EventType, Object, RiskLevel, SECURITY};
use serde_json::Value;
use signalbox_tape::redact::Redactor;

/// Maximum number of lines of the difference in a record.
const MAX_LINES: usize = 20;
/// Maximum number of characters of a name or a line.
const MAX_TEXT: usize = 500;

/// Difference between a backend's definition and the approved one.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct DefinitionChange<'a> {
    /// Configured name of the backend.
    pub backend: &'a str,
    /// The backend's own name for the tool.
    pub tool: &'a str,
    /// Kind of the difference, such as `changed`.
    pub what: &'a str,
    /// Lines that show the difference.
    pub lines: &'a [String],
    /// True if the tool cannot be used until it is approved.
    pub is_quarantined: bool,
}

impl DefinitionChange<'_> {
    /// Returns the record of the difference, without secrets.
    #[must_use]
    pub fn note(&self, unix_ms: u64, redactor: &Redactor) -> AuditNote {
        let clean = |text: &str| redactor.text(text.chars().take(MAX_TEXT).collect());
        let lines: Vec<Value> = self.lines.iter().take(MAX_LINES).map(|line| clean(line).into()).collect();
        let mut details = String::new();
        let mut about = Object::new(&mut details);
        about.text("backend", &clean(self.backend));
        about.text("tool", &clean(self.tool));
        about.text("change", self.what);
        about.text("action", if self.is_quarantined { "quarantined" } else { "reported" });
        about.raw("diff", &Value::from(lines).to_string());
        about.finish();
        AuditNote {
            timestamp: unix_ms,
            event_type: EventType::DefinitionChanged,
            source: SECURITY,
            user_context: "{}".to_owned(),
            details,
            risk_level: if self.is_quarantined { RiskLevel::High } else { RiskLevel::Medium },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_tape::redact::RedactionSettings;

    #[test]
    fn the_record_names_the_tool_and_shows_the_difference_without_secrets() {
        const SECRET: &str = concat!("ghp_", "16C7e42F292c6912E7710c838347Ae178B4a");
        let redactor = Redactor::new(&RedactionSettings::default(), [1; 32]).unwrap();
        let lines = [format!("description: a → {SECRET}")];
        let change =
            DefinitionChange { backend: "files", tool: "read", what: "changed", lines: &lines, is_quarantined: true };
        let note = change.note(1, &redactor);
        assert_eq!((note.event_type, note.risk_level), (EventType::DefinitionChanged, RiskLevel::High));
        let details: Value = serde_json::from_str(&note.details).unwrap();
        assert_eq!((&details["tool"], &details["action"]), (&"read".into(), &"quarantined".into()));
        assert!(details["diff"][0].as_str().unwrap().starts_with("description") && !note.details.contains(SECRET));
    }
}
