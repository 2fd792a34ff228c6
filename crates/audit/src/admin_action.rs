//! Records of administrative actions: the principal, the origin, the change and its outcome.

use crate::event::{AuditNote, EventType, Object, RiskLevel};
use serde_json::Value;
use signalbox_tape::redact::Redactor;

/// Source of records about administration.
const ADMIN: &str = "mcp_admin";
/// Maximum size of a state before or after, in bytes. Only the size of a larger state is recorded.
pub const MAX_STATE: usize = 4_096;
/// Maximum number of characters of a name or a reason.
const MAX_TEXT: usize = 500;

/// Origin of an administrative action.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum AdminOrigin {
    /// A command on this machine.
    Cli,
    /// The HTTP API or a page.
    Api,
    /// A file that changed, or a signal.
    File,
}

impl AdminOrigin {
    fn word(self) -> &'static str {
        match self {
            Self::Cli => "cli",
            Self::Api => "api",
            Self::File => "file",
        }
    }
}

/// Outcome of an administrative action.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum AdminOutcome<'a> {
    /// The action took effect.
    Done,
    /// The caller lacks the permission for it.
    Denied(&'a str),
    /// The action failed, with the reason.
    Failed(&'a str),
}

/// Administrative action to record.
#[derive(Clone, PartialEq, Debug)]
pub struct AdminAction<'a> {
    /// Principal, operating system user, or owner of the file.
    pub who: &'a str,
    /// Address of the client of the API.
    pub address: Option<String>,
    pub origin: AdminOrigin,
    /// Name of the action, such as `switch.set`.
    pub action: &'a str,
    /// Object of the action.
    pub target: &'a str,
    /// State before the action, without secrets.
    pub before: Option<&'a Value>,
    /// State after the action, without secrets.
    pub after: Option<&'a Value>,
    pub outcome: AdminOutcome<'a>,
}

impl AdminAction<'_> {
    /// Returns the record of the action. Redacts the secrets left in its texts.
    #[must_use]
    pub fn note(&self, unix_ms: u64, redactor: &Redactor) -> AuditNote {
        let clean = |text: &str| redactor.text(text.chars().take(MAX_TEXT).collect());
        let (mut user_context, mut details) = (String::new(), String::new());
        let mut user = Object::new(&mut user_context);
        user.text("principal", &clean(self.who));
        user.maybe("address", self.address.as_deref());
        user.finish();
        let mut about = Object::new(&mut details);
        about.text("action", self.action);
        about.text("origin", self.origin.word());
        about.text("target", &clean(self.target));
        for (name, state) in [("before", self.before), ("after", self.after)] {
            if let Some(state) = state.filter(|state| !state.is_null()) {
                put(&mut about, name, state, redactor);
            }
        }
        let (status, why, risk_level) = match self.outcome {
            AdminOutcome::Done => ("success", None, RiskLevel::Medium),
            AdminOutcome::Denied(why) => ("denied", Some(why), RiskLevel::High),
            AdminOutcome::Failed(why) => ("error", Some(why), RiskLevel::Medium),
        };
        about.text("status", status);
        about.maybe("error", why.map(clean).as_deref());
        about.finish();
        AuditNote {
            timestamp: unix_ms,
            event_type: EventType::AdminAction,
            source: ADMIN,
            user_context,
            details,
            risk_level,
        }
    }
}

fn put(about: &mut Object<'_>, name: &str, state: &Value, redactor: &Redactor) {
    let text = state.to_string();
    if text.len() > MAX_STATE {
        return about.raw(name, &format!("{{\"bytes\":{}}}", text.len()));
    }
    let kept = redactor.text(text);
    // Redaction may have left text that is not valid JSON.
    match serde_json::from_str::<Value>(&kept) {
        Ok(value) => about.raw(name, &value.to_string()),
        Err(_) => about.text(name, &kept),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use signalbox_tape::redact::RedactionSettings;

    #[test]
    fn an_act_of_administration_says_who_did_what_to_what_without_secrets() {
        const SECRET: &str = concat!("ghp_", "16C7e42F292c6912E7710c838347Ae178B4a");
        let redactor = Redactor::new(&RedactionSettings::default(), [1; 32]).unwrap();
        let (before, after) = (json!({"off": "killed", "reason": SECRET}), json!({"x": "y".repeat(MAX_STATE)}));
        let action = AdminAction {
            who: "key:ada",
            address: Some("127.0.0.1:1".to_owned()),
            origin: AdminOrigin::Api,
            action: "switch.lift",
            target: "one/greet",
            before: Some(&before),
            after: Some(&after),
            outcome: AdminOutcome::Denied(SECRET),
        };
        let note = action.note(1, &redactor);
        assert_eq!((note.event_type, note.risk_level, note.source), (EventType::AdminAction, RiskLevel::High, ADMIN));
        assert_eq!(note.user_context, r#"{"principal":"key:ada","address":"127.0.0.1:1"}"#);
        assert!(!note.details.contains(SECRET), "{}", note.details);
        let details: Value = serde_json::from_str(&note.details).unwrap();
        for (name, value) in
            [("action", "switch.lift"), ("origin", "api"), ("target", "one/greet"), ("status", "denied")]
        {
            assert_eq!(details[name], value);
        }
        assert_eq!((&details["before"]["off"], details["after"]["bytes"].as_u64()), (&json!("killed"), Some(4_104)));
    }
}
