//! Recognises the answer to a request, and posts messages.

use bytes::Bytes;
use signalbox_runtime::LinkEvents;
use signalbox_wire::{Envelope, Kind, Limits, Message, RejectedMessage, json};

/// Minimum size of a body, in bytes, that is taken for the answer if it names the request near its beginning or end.
const LOOKED_INTO: usize = 64 * 1024;
/// Number of bytes at either end that are searched for the id.
const ENDS: usize = 256;

/// Content of a body or an event.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum BodyContent {
    /// The answer to the request, possibly among other messages.
    Answer,
    /// Messages, but not the answer.
    Others,
    /// Not a message. It was not posted.
    Garbage(RejectedMessage),
}

/// Receiver of messages, and the request they are about.
pub(crate) struct AnswerPost<'a> {
    pub events: &'a dyn LinkEvents,
    pub limits: &'a Limits,
    pub about: Option<u64>,
    pub status: Option<u16>,
    /// Id of the SSE event, if it has one.
    pub event_id: Option<&'a str>,
}

impl AnswerPost<'_> {
    /// Posts a whole body. A large body that names the request is not parsed here, since its receiver parses it and a
    /// second pass is too expensive.
    pub(crate) fn body(&self, bytes: Bytes) -> BodyContent {
        if bytes.len() > LOOKED_INTO && bytes.first() == Some(&b'{') && self.about.is_some_and(|key| names(&bytes, key))
        {
            self.post(bytes);
            return BodyContent::Answer;
        }
        self.messages(bytes)
    }

    /// Posts one message, or each element of a batch.
    pub(crate) fn messages(&self, bytes: Bytes) -> BodyContent {
        match Message::look(bytes, self.limits) {
            Ok(Message::Single(message)) => self.one(message),
            Ok(Message::Batch(messages)) => self.each(messages),
            Err(rejected) => BodyContent::Garbage(rejected),
        }
    }

    /// Posts an answer to the request. Returns any other body.
    pub(crate) fn answer(&self, bytes: Bytes) -> Result<(), Bytes> {
        match Envelope::parse(bytes.clone()) {
            Ok(message) if is_answer(&message, self.about) => {
                self.hand_over(message);
                Ok(())
            }
            _ => Err(bytes),
        }
    }

    fn one(&self, message: Envelope) -> BodyContent {
        let content = if is_answer(&message, self.about) { BodyContent::Answer } else { BodyContent::Others };
        self.hand_over(message);
        content
    }

    fn hand_over(&self, message: Envelope) {
        match self.event_id {
            Some(id) => self.events.event(message, self.about, self.status, id),
            None => self.events.message(message, self.about, self.status),
        }
    }

    fn each(&self, messages: Vec<Result<Envelope, RejectedMessage>>) -> BodyContent {
        let mut content = BodyContent::Others;
        for message in messages {
            match message {
                Ok(message) => {
                    if self.one(message) == BodyContent::Answer {
                        content = BodyContent::Answer;
                    }
                }
                Err(rejected) => self.events.garbage(&rejected),
            }
        }
        content
    }

    fn post(&self, bytes: Bytes) {
        self.events.received(bytes, self.about, self.status);
    }
}

/// Returns `true` if the id of a request occurs near either end of a message. Most libraries write it there, before or
/// after the result.
fn names(bytes: &[u8], key: u64) -> bool {
    let id = format!("\"id\":{key}");
    let (head, tail) = (&bytes[..ENDS.min(bytes.len())], &bytes[bytes.len().saturating_sub(ENDS)..]);
    let found = |part: &[u8]| {
        let ends = |at: usize| part.get(at + id.len()).is_none_or(|byte| !byte.is_ascii_digit());
        part.windows(id.len()).enumerate().any(|(at, window)| window == id.as_bytes() && ends(at))
    };
    found(head) || found(tail)
}

/// Session state that a 400 response implies.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum OnSession {
    /// The server does not know the session and has not processed the message.
    Unknown,
    /// The server answered this request, so it knows the session.
    Known,
    /// The response does not tell.
    Unclear,
}

/// Phrases by which the servers of the public SDKs, and servers modelled on their examples, report an unknown session.
const UNKNOWN_SESSION: [&str; 8] = [
    "no valid session",
    "invalid session",
    "unknown session",
    "missing session",
    "session not found",
    "session expired",
    "session has expired",
    "server not initialized",
];
/// Maximum length of a plain text refusal, in bytes.
const REFUSAL: usize = 256;

/// Evaluates the body of such a response to the request with this key.
pub(super) fn on_session(body: &[u8], key: Option<u64>) -> OnSession {
    let says = |text: &str| {
        let text = text.to_ascii_lowercase();
        UNKNOWN_SESSION.iter().any(|words| text.contains(words))
    };
    let Ok(message) = Envelope::parse(Bytes::copy_from_slice(body)) else {
        let plain = std::str::from_utf8(body).ok().filter(|text| text.len() <= REFUSAL);
        return if plain.is_some_and(says) { OnSession::Unknown } else { OnSession::Unclear };
    };
    let Some(error) = message.error().filter(|_| message.kind() == Kind::Error) else { return OnSession::Known };
    let member = |name: &str| json::member(error, name).map(|span| span.of(error));
    // These two codes belong to the transport. A tool with sessions of its own uses other codes, and HTTP 200.
    let transport = matches!(member("code"), Some(b"-32000" | b"-32001"));
    if transport && member("message").and_then(json::string).is_some_and(|text| says(&text)) {
        return OnSession::Unknown;
    }
    if key.is_some() && message.id_number() == key { OnSession::Known } else { OnSession::Unclear }
}

/// Returns `true` if a message answers the request. An error may lack the id if the request could not be parsed.
fn is_answer(message: &Envelope, key: Option<u64>) -> bool {
    match message.kind() {
        Kind::Response => message.id_number() == key,
        Kind::Error => message.id_token().is_none_or(|token| token == b"null" || message.id_number() == key),
        Kind::Request | Kind::Notification => false,
    }
}
