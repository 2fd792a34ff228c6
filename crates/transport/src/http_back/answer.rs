//! Finding out whether a message is the answer to a request, and posting it.

use bytes::Bytes;
use signalbox_runtime::LinkEvents;
use signalbox_wire::{Envelope, Kind, Limits, Message, Rejected, json};

/// Larger bodies that name the request at their beginning or end are taken for the answer unseen, in bytes.
const LOOKED_INTO: usize = 64 * 1024;
/// How far from either end its id is looked for.
const ENDS: usize = 256;

/// What came with a body or an event.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Came {
    /// The answer to the request, alone or among others.
    Answer,
    /// Messages, but not the answer.
    Others,
    /// Something that is no message. It was not posted.
    Garbage(Rejected),
}

/// Where messages go, and which request they are about.
pub(crate) struct AnswerPost<'a> {
    pub events: &'a dyn LinkEvents,
    pub limits: &'a Limits,
    pub about: Option<u64>,
    pub status: Option<u16>,
    /// The id of the SSE event, if it has one of its own.
    pub event_id: Option<&'a str>,
}

impl AnswerPost<'_> {
    /// Posts a whole body. A large one that names the request is not checked here, since its receiver checks it and a second
    /// pass costs too much.
    pub(crate) fn body(&self, bytes: Bytes) -> Came {
        if bytes.len() > LOOKED_INTO && bytes.first() == Some(&b'{') && self.about.is_some_and(|key| names(&bytes, key))
        {
            self.post(bytes);
            return Came::Answer;
        }
        self.messages(bytes)
    }

    /// Posts one message, or each of an array of them.
    pub(crate) fn messages(&self, bytes: Bytes) -> Came {
        match Message::look(bytes, self.limits) {
            Ok(Message::Single(message)) => self.one(message),
            Ok(Message::Batch(messages)) => self.each(messages),
            Err(rejected) => Came::Garbage(rejected),
        }
    }

    /// Posts an answer to the request. Anything else is given back.
    pub(crate) fn answer(&self, bytes: Bytes) -> Result<(), Bytes> {
        match Envelope::parse(bytes.clone()) {
            Ok(message) if is_answer(&message, self.about) => {
                self.hand_over(message);
                Ok(())
            }
            _ => Err(bytes),
        }
    }

    fn one(&self, message: Envelope) -> Came {
        let came = if is_answer(&message, self.about) { Came::Answer } else { Came::Others };
        self.hand_over(message);
        came
    }

    fn hand_over(&self, message: Envelope) {
        match self.event_id {
            Some(id) => self.events.event(message, self.about, self.status, id),
            None => self.events.message(message, self.about, self.status),
        }
    }

    fn each(&self, messages: Vec<Result<Envelope, Rejected>>) -> Came {
        let mut came = Came::Others;
        for message in messages {
            match message {
                Ok(message) => {
                    if self.one(message) == Came::Answer {
                        came = Came::Answer;
                    }
                }
                Err(rejected) => self.events.garbage(&rejected),
            }
        }
        came
    }

    fn post(&self, bytes: Bytes) {
        self.events.received(bytes, self.about, self.status);
    }
}

/// True where the id of a request stands near either end of a message. Most libraries write it there, before or behind the
/// result.
fn names(bytes: &[u8], key: u64) -> bool {
    let id = format!("\"id\":{key}");
    let (head, tail) = (&bytes[..ENDS.min(bytes.len())], &bytes[bytes.len().saturating_sub(ENDS)..]);
    let found = |part: &[u8]| {
        let ends = |at: usize| part.get(at + id.len()).is_none_or(|byte| !byte.is_ascii_digit());
        part.windows(id.len()).enumerate().any(|(at, window)| window == id.as_bytes() && ends(at))
    };
    found(head) || found(tail)
}

/// What a response of HTTP 400 in a session says about that session.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum OnSession {
    /// The server does not know it, and has not looked at the message.
    Unknown,
    /// The server answered this very request, so it does.
    Known,
    /// Nothing.
    Unclear,
}

/// The words in which the servers of the public SDKs, and those built after their examples, say that they do not know a session.
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
/// A plain refusal is short, in bytes.
const REFUSAL: usize = 256;

/// Reads the body of such a response to the request under this key.
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
    // These two codes are the transport's; a tool that speaks of sessions of its own has others, and HTTP 200.
    let transport = matches!(member("code"), Some(b"-32000" | b"-32001"));
    if transport && member("message").and_then(json::string).is_some_and(|text| says(&text)) {
        return OnSession::Unknown;
    }
    if key.is_some() && message.id_number() == key { OnSession::Known } else { OnSession::Unclear }
}

/// An answer names its request. An error may fail to, if the request could not be read.
fn is_answer(message: &Envelope, key: Option<u64>) -> bool {
    match message.kind() {
        Kind::Response => message.id_number() == key,
        Kind::Error => message.id_token().is_none_or(|token| token == b"null" || message.id_number() == key),
        Kind::Request | Kind::Notification => false,
    }
}
