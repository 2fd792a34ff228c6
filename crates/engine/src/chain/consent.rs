//! Consent to a call: the form in which the caller is asked in its own client, and the reading of the answer.
//!
//! ```text
//! old era   elicitation/create in the middle of the call ─► accept with `approve: true`, or anything else
//! new era   input_required with one input request ─► the same call again, with the answer and our state
//! ```
//!
//! Only an accepted form that says yes is consent. A form that was declined, cancelled, or accepted without a yes is
//! not.

use super::case::HoldAnswer;
use signalbox_wire::{Envelope, json, method, printable};
use std::sync::Arc;
use std::time::Duration;

/// Key of the question, and prefix of the state with which a client of the new era repeats the call.
pub(crate) const KEY: &str = "signalbox-consent";
/// Maximum number of characters of the arguments shown in a question.
const MAX_PREVIEW: usize = 1_000;
/// Maximum number of characters of a name shown in a question.
const MAX_NAME: usize = 200;

/// Person whose consent a call needs.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum ConsentOf {
    /// Another person, who has the role of an approver.
    #[default]
    Approver,
    /// The caller itself, asked in its client.
    Caller,
    /// The caller itself, or an approver if its client cannot ask.
    CallerOrApprover,
}

/// Consent that a call needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Consent {
    /// Reason shown to the person who decides.
    pub reason: Arc<str>,
    /// Role or policy that requires the consent.
    pub policy: Option<Arc<str>>,
    /// Time limit for the decision.
    pub within: Duration,
    /// Person whose consent is needed.
    pub of: ConsentOf,
}

/// Builds the params of the elicitation that asks for consent to a call. It always succeeds: unreadable arguments are
/// not shown.
pub(crate) fn question(consent: &Consent, subject: Option<&str>, backend: Option<&str>, message: &Envelope) -> String {
    let what = printable::beginning(subject.or(message.method()).unwrap_or_default(), MAX_NAME);
    let at = backend.map(|backend| format!(" of `{}`", printable::beginning(backend, MAX_NAME))).unwrap_or_default();
    let arguments = message.param("arguments").map(|span| span.of(message.bytes())).unwrap_or_default();
    let with = match printable::beginning(&String::from_utf8_lossy(arguments), MAX_PREVIEW) {
        none if none.is_empty() => String::new(),
        shown => format!(" with {shown}"),
    };
    let text = format!("Let `{what}`{at} run{with}? {}", consent.reason);
    let schema = r#"{"type":"object","properties":{"approve":{"type":"boolean","title":"Let it run","description":"Yes lets this one call run."}},"required":["approve"]}"#;
    format!(r#"{{"mode":"form","message":{},"requestedSchema":{schema}}}"#, json::quote(text.trim_end()))
}

/// Reads the answer to the elicitation. `by` is the caller.
pub(crate) fn answer(response: &[u8], by: &str) -> HoldAnswer {
    let action = json::member(response, "action").and_then(|span| json::string(span.of(response)));
    let content = json::member(response, "content").map_or(&b""[..], |span| span.of(response));
    let says_yes = json::member(content, "approve").is_some_and(|span| span.of(content) == b"true");
    let by = Some(by.to_owned());
    match action.as_deref() {
        Some("accept") if says_yes => HoldAnswer::GoOn { by },
        Some("accept" | "decline") => HoldAnswer::Refused { by, reason: "the caller said no".to_owned() },
        _ => HoldAnswer::Refused { by, reason: "the caller did not answer the question".to_owned() },
    }
}

/// Returns true if a request comes back with the answer to our question.
pub(crate) fn is_return(message: &Envelope) -> bool {
    let state = message.param("requestState").and_then(|span| json::string(span.of(message.bytes())));
    message.method() != Some(method::INITIALIZE) && state.is_some_and(|state| state.starts_with(KEY))
}

/// Reads the answer in a request of the new era that comes back from our question; `None` for any other message. `by`
/// is the caller.
#[must_use]
pub fn returned(message: &Envelope, by: &str) -> Option<HoldAnswer> {
    if !is_return(message) {
        return None;
    }
    let responses = message.param("inputResponses").map_or(&b""[..], |span| span.of(message.bytes()));
    let response = json::member(responses, KEY).map_or(&b""[..], |span| span.of(responses));
    Some(answer(response, by))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn call(params: &str) -> Envelope {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        Envelope::parse(Bytes::from(text)).unwrap()
    }

    #[test]
    fn only_a_form_that_says_yes_is_consent() {
        let yes = answer(br#"{"action":"accept","content":{"approve":true}}"#, "ada");
        assert_eq!(yes, HoldAnswer::GoOn { by: Some("ada".to_owned()) });
        for no in [
            r#"{"action":"accept","content":{"approve":false}}"#,
            r#"{"action":"accept","content":{"approve":"true"}}"#,
            r#"{"action":"accept"}"#,
            r#"{"action":"decline","content":{"approve":true}}"#,
            r#"{"action":"cancel"}"#,
            "{}",
            "",
            "[1",
        ] {
            assert!(matches!(answer(no.as_bytes(), "ada"), HoldAnswer::Refused { .. }), "{no}");
        }
    }

    #[test]
    fn a_return_is_told_by_its_state() {
        let yes = r#""inputResponses":{"signalbox-consent":{"action":"accept","content":{"approve":true}}}"#;
        let message = call(&format!(r#"{{"name":"x",{yes},"requestState":"signalbox-consent-1-2"}}"#));
        assert!(matches!(returned(&message, "ada"), Some(HoldAnswer::GoOn { .. })));
        assert_eq!(returned(&call(&format!(r#"{{"name":"x",{yes},"requestState":"other"}}"#)), "ada"), None);
        let empty = call(r#"{"name":"x","requestState":"signalbox-consent-1-2"}"#);
        assert!(matches!(returned(&empty, "ada"), Some(HoldAnswer::Refused { .. })));
    }

    #[test]
    fn a_question_shows_what_it_is_about_and_not_more_than_a_person_reads() {
        let consent =
            Consent { reason: "it writes".into(), policy: None, within: Duration::from_secs(1), of: ConsentOf::Caller };
        let long = "x".repeat(5_000);
        let asked = question(
            &consent,
            Some("wr\u{1b}ite"),
            Some("files"),
            &call(&format!(r#"{{"arguments":{{"a":"{long}"}}}}"#)),
        );
        let text = json::string(json::member(asked.as_bytes(), "message").unwrap().of(asked.as_bytes())).unwrap();
        assert!(text.starts_with("Let `wr") && text.ends_with("it writes") && text.len() < 1_400, "{text}");
        assert!(!text.contains('\u{1b}') && text.contains("of `files` run with {\"a\""));
    }
}
