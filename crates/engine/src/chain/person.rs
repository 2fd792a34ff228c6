//! Verdicts from a person's decision about a held message.

use super::case::{Case, HoldAnswer, Phase};
use super::judgement::{Judgement, Ruling, Verdict};
use crate::fault::{Fault, FaultKind};
use bytes::Bytes;
use signalbox_wire::{Envelope, Kind, Limits, Refusal, json, scan};
use std::sync::Arc;

/// Reason why an edited message cannot replace the held one.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EditError {
    /// The text is not a valid message.
    #[error("the edited message is not valid: {0}")]
    NotValid(#[from] Refusal),
    /// The message is of another kind than the held one.
    #[error("the edited message must be {wanted}, like the one in whose place it comes")]
    Kind {
        /// Kind that the held message has.
        wanted: &'static str,
    },
    /// The message has another method, which would make it another call.
    #[error("the edited message must keep the method {0}")]
    Method(String),
    /// The result is not a JSON object.
    #[error("a result must be a JSON object")]
    Result,
}

/// Checks an edited message against the strict rules and against the held one: same kind, same method. The result
/// always has the held message's id.
///
/// # Errors
/// Returns the defect of the message.
pub fn edited(held: &Envelope, message: Bytes, limits: &Limits) -> Result<Envelope, EditError> {
    let edited = Envelope::read(message, limits)?;
    fits(held, &edited)?;
    match held.id_token() {
        Some(id) if edited.id_token() != Some(id) => Ok(Envelope::read(edited.with_id(id), limits)?),
        _ => Ok(edited),
    }
}

/// Checks that a message may replace another: it must be of the same kind and method.
///
/// # Errors
/// Returns the difference that forbids it.
pub(super) fn fits(held: &Envelope, edited: &Envelope) -> Result<(), EditError> {
    let is_answer = |message: &Envelope| matches!(message.kind(), Kind::Response | Kind::Error);
    if is_answer(held) != is_answer(edited) || (!is_answer(held) && held.kind() != edited.kind()) {
        let wanted = match held.kind() {
            Kind::Request => "a request with an id",
            Kind::Notification => "a notification",
            Kind::Response | Kind::Error => "an answer with a result or an error",
        };
        return Err(EditError::Kind { wanted });
    }
    if let Some(method) = held.method().filter(|method| edited.method() != Some(method)) {
        return Err(EditError::Method(method.to_owned()));
    }
    Ok(())
}

/// Checks a result that a person wrote.
pub(crate) fn result(result: &Bytes, limits: &Limits) -> Result<Bytes, EditError> {
    scan(result, limits).map_err(Refusal::Scan)?;
    let start = json::skip_whitespace(result, 0);
    if result.get(start) != Some(&b'{') {
        return Err(EditError::Result);
    }
    Ok(result.clone())
}

/// Turns a person's decision into the verdict of the interceptor that held the message. `rule` is the rule that caused
/// the hold.
#[must_use]
pub fn settle(case: &Case<'_>, answer: &HoldAnswer, rule: Option<Arc<str>>, limits: &Limits) -> Judgement {
    let (word, detail, by, verdict) = settlement(case, answer, limits);
    let inputs = by.map(|by| ("person", by)).into_iter().collect();
    let ruling = Ruling { rule, verdict: word, detail, inputs, ..Ruling::default() };
    Judgement { verdict, rulings: ruling.into(), effects: vec![] }
}

type Settlement = (&'static str, String, Option<String>, Verdict);

fn settlement(case: &Case<'_>, answer: &HoldAnswer, limits: &Limits) -> Settlement {
    let refused = |kind, text: &str| Verdict::Refuse(Fault::new(kind, text));
    let what = if case.phase == Phase::Response { "answer" } else { "request" };
    match answer {
        HoldAnswer::GoOn { by } => ("released", String::new(), by.clone(), Verdict::Pass),
        HoldAnswer::Edited { by, message } => match edited(case.message, message.clone(), limits) {
            Ok(message) => ("edited", format!("{} bytes", message.bytes().len()), by.clone(), Verdict::Modify(message)),
            Err(error) => ("failed", error.to_string(), by.clone(), refused(FaultKind::Refused, &error.to_string())),
        },
        HoldAnswer::Result { by, result: told } => match result(told, limits) {
            Ok(bytes) => ("answered", format!("{} bytes", bytes.len()), by.clone(), Verdict::Reply(bytes)),
            Err(error) => ("failed", error.to_string(), by.clone(), refused(FaultKind::Refused, &error.to_string())),
        },
        HoldAnswer::Refused { by, reason } => {
            ("refused", reason.clone(), by.clone(), refused(FaultKind::Refused, reason))
        }
        HoldAnswer::Expired => {
            let text = format!("the {what} was held for a person, but not decided in time");
            ("expired", text.clone(), None, refused(FaultKind::HoldExpired, &text))
        }
        HoldAnswer::Failed(why) | HoldAnswer::Overloaded(why) => {
            ("failed", why.clone(), None, refused(FaultKind::Overloaded, why))
        }
        HoldAnswer::Webhook { status, .. } => {
            let text = format!("a webhook answered {status} where a person was asked");
            ("failed", text.clone(), None, refused(FaultKind::Internal, &text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(text: &str) -> Envelope {
        Envelope::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    fn edit(held: &str, text: &'static str) -> Result<String, EditError> {
        let message = edited(&envelope(held), Bytes::from_static(text.as_bytes()), &Limits::default())?;
        Ok(String::from_utf8(message.into_bytes().to_vec()).unwrap())
    }

    const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a"}}"#;

    #[test]
    fn an_edited_message_keeps_its_id_its_kind_and_its_method() {
        let other = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"b"}}"#;
        assert_eq!(edit(CALL, other).unwrap(), other.replace("9", "7"));
        let answer = r#"{"jsonrpc":"2.0","id":"x","result":{}}"#;
        assert!(
            edit(answer, r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#).unwrap().contains(r#""x""#)
        );
        let wrong = [
            (r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#, "keep the method tools/call"),
            (r#"{"jsonrpc":"2.0","method":"tools/call"}"#, "must be a request with an id"),
            (r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, "must be a request with an id"),
            (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","method":"x"}"#, "not valid"),
            ("", "not valid"),
        ];
        for (text, expected) in wrong {
            let error = edit(CALL, text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(edit(answer, CALL).unwrap_err().to_string().contains("must be an answer"));
    }

    #[test]
    fn a_result_is_an_object() {
        let limits = Limits::default();
        let told = |text: &'static str| result(&Bytes::from_static(text.as_bytes()), &limits);
        assert_eq!(told(" {}").unwrap(), " {}");
        assert_eq!(told("[]"), Err(EditError::Result));
        assert!(matches!(told("{\"a\":1,\"a\":2}"), Err(EditError::NotValid(_))));
    }
}
