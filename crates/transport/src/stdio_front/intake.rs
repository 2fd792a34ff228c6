//! Parses client bytes into a message, or into a refusal and its addressee.

use bytes::Bytes;
use signalbox_engine::budget::OverBudget;
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::Settings;
use signalbox_wire::{Envelope, EnvelopeError, Kind, RawId, Refusal, RejectedMessage, ScanError, codes, json, scan};

/// Bytes that are not an acceptable message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unreadable {
    /// Reason for the refusal.
    pub fault: Fault,
    /// Request to send the refusal to, if any.
    pub answer: Addressee,
}

/// Request that a refusal answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Addressee {
    /// The request with this id.
    Request(RawId),
    /// A request whose id could not be read.
    UnknownRequest,
    /// None: notifications and responses are never answered.
    None,
}

impl Unreadable {
    /// Returns the id to answer, if known, and the fault; `None` if nothing is answered.
    #[must_use]
    pub fn into_refusal(self) -> Option<(Option<RawId>, Fault)> {
        match self.answer {
            Addressee::Request(id) => Some((Some(id), self.fault)),
            Addressee::UnknownRequest => Some((None, self.fault)),
            Addressee::None => None,
        }
    }
}

/// Parses one message, after the strict scan if messages are governed.
///
/// # Errors
/// Returns the refusal and its addressee.
pub fn read(bytes: Bytes, settings: &Settings) -> Result<Envelope, Unreadable> {
    let read = match settings.strict {
        true => Envelope::read(bytes.clone(), &settings.limits),
        false => Envelope::parse(bytes.clone()).map_err(Refusal::from),
    };
    read.map_err(|refusal| match refusal {
        Refusal::Scan(error) => scan_refusal(bytes, error, settings),
        Refusal::Message(rejected) => refuse(&bytes, rejected),
    })
}

/// Converts a failure of the strict scan.
fn scan_refusal(bytes: Bytes, error: ScanError, settings: &Settings) -> Unreadable {
    let kind = kind_of(error.code());
    let answer = match kind {
        // Input that is not JSON has no id that can be trusted.
        FaultKind::Parse => Addressee::UnknownRequest,
        // The id itself may be what was refused, and then the client could not parse the answer.
        _ => match addressee(bytes) {
            Addressee::Request(id) if scan(id.token(), &settings.limits).is_err() => Addressee::UnknownRequest,
            answer => answer,
        },
    };
    Unreadable { fault: fault(kind, &error.to_string()), answer }
}

/// Refuses a message that was too long to read.
#[must_use]
pub fn too_long(why: &str) -> Unreadable {
    Unreadable { fault: fault(FaultKind::InvalidRequest, why), answer: Addressee::UnknownRequest }
}

/// Refuses a message for which there was no room.
#[must_use]
pub fn no_room(error: OverBudget) -> Unreadable {
    let fault = Fault::new(FaultKind::Overloaded, format!("a message was not taken: {error}; try again later"));
    Unreadable { fault, answer: Addressee::UnknownRequest }
}

fn refuse(bytes: &[u8], rejected: RejectedMessage) -> Unreadable {
    let kind = kind_of(rejected.code());
    let text = match rejected.error {
        EnvelopeError::Batch => "a batch cannot be part of a batch, nor stand where one message is expected".to_owned(),
        ref error => error.to_string(),
    };
    let answer = match rejected.id {
        _ if is_answer(bytes) || is_notification(bytes) => Addressee::None,
        Some(id) => Addressee::Request(id),
        None => Addressee::UnknownRequest,
    };
    Unreadable { fault: fault(kind, &text), answer }
}

fn fault(kind: FaultKind, text: &str) -> Fault {
    let prefix = match kind {
        FaultKind::Parse => "Parse error",
        _ => "Invalid request",
    };
    Fault::new(kind, format!("{prefix}: {text}"))
}

fn kind_of(code: i64) -> FaultKind {
    match code {
        codes::PARSE_ERROR => FaultKind::Parse,
        _ => FaultKind::InvalidRequest,
    }
}

/// Returns the request that a message made, which is JSON but not acceptable.
fn addressee(bytes: Bytes) -> Addressee {
    match Envelope::parse(bytes.clone()) {
        Ok(message) => match (message.kind(), message.id()) {
            (Kind::Request, Some(id)) => Addressee::Request(id),
            (Kind::Request, None) => Addressee::UnknownRequest,
            _ => Addressee::None,
        },
        Err(rejected) => refuse(&bytes, rejected).answer,
    }
}

/// The id of a response is one of ours: sent back to the client, it would name a request of its own.
fn is_answer(bytes: &[u8]) -> bool {
    let has = |key| json::member(bytes, key).is_some();
    !has("method") && (has("result") || has("error"))
}

fn is_notification(bytes: &[u8]) -> bool {
    let method = json::member(bytes, "method").and_then(|span| json::string(span.of(bytes)));
    method.is_some_and(|method| method.starts_with("notifications/")) && json::member(bytes, "id").is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_wire::Era;

    /// What is answered, as `ID CODE TEXT`.
    fn check(text: &str) -> String {
        match read(Bytes::copy_from_slice(text.as_bytes()), &Settings::default()) {
            Ok(message) => format!("{:?}", message.kind()),
            Err(unreadable) => {
                let code = unreadable.fault.code(Era::Legacy);
                match unreadable.answer {
                    Addressee::Request(id) => format!("{id} {code} {}", unreadable.fault),
                    Addressee::UnknownRequest => format!("null {code} {}", unreadable.fault),
                    Addressee::None => format!("nobody {}", unreadable.fault),
                }
            }
        }
    }

    /// Proves N-23.
    #[test]
    fn what_is_not_json_is_a_parse_error_without_an_id() {
        assert_eq!(check("{"), "null -32700 Parse error: unexpected end at byte 1");
        assert_eq!(check(r#"{"jsonrpc":"2.0","id":7,"#), "null -32700 Parse error: unexpected end at byte 24");
        assert!(check("hello").starts_with("null -32700 Parse error: "));
    }

    #[test]
    fn what_is_json_but_no_message_is_answered_to_its_id() {
        assert_eq!(
            check(r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#),
            r#"7 -32600 Invalid request: member "jsonrpc" must be "2.0""#
        );
        assert_eq!(
            check(r#"{"jsonrpc":"2.0","id":"x","method":1}"#),
            r#""x" -32600 Invalid request: member "method" must be a string"#
        );
        assert!(check("1").starts_with("null -32600 "));
        let doubled = check(r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":1,"a":2}}"#);
        assert!(doubled.starts_with("7 -32600 Invalid request: duplicate key"), "{doubled}");
        for id in [r#""\ud800""#, "1e999"] {
            let unreadable = check(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
            assert!(unreadable.starts_with("null -32600 "), "{unreadable}");
        }
    }

    #[test]
    fn a_batch_is_no_message() {
        assert_eq!(
            check(r#"[{"jsonrpc":"2.0","id":7,"method":"ping"}]"#),
            "null -32600 Invalid request: a batch cannot be part of a batch, nor stand where one message is expected"
        );
    }

    /// Proves N-27.
    #[test]
    fn neither_a_notification_nor_an_answer_is_answered() {
        for text in [
            r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"a":1,"a":2}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/x","params":5}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":5}"#,
        ] {
            assert!(check(text).starts_with("nobody "), "{text}: {}", check(text));
        }
    }
}
