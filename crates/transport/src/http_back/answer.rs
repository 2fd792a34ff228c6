//! Telling what a message of a backend is, and posting it.

use bytes::Bytes;
use signalbox_runtime::LinkEvents;
use signalbox_wire::{Envelope, Kind, Limits, Message, Rejected};

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
pub(crate) struct Post<'a> {
    pub events: &'a dyn LinkEvents,
    pub limits: &'a Limits,
    pub about: Option<u64>,
    pub status: Option<u16>,
}

impl Post<'_> {
    /// Posts a whole body. What is wrong with a large one that names the request is left to whoever reads it next: looking
    /// through it twice costs too much.
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
                self.events.message(message, self.about, self.status);
                Ok(())
            }
            _ => Err(bytes),
        }
    }

    fn one(&self, message: Envelope) -> Came {
        let came = if is_answer(&message, self.about) { Came::Answer } else { Came::Others };
        self.events.message(message, self.about, self.status);
        came
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

/// An answer names its request. An error may fail to, if the request could not be read.
fn is_answer(message: &Envelope, key: Option<u64>) -> bool {
    match message.kind() {
        Kind::Response => message.id_number() == key,
        Kind::Error => message.id_token().is_none_or(|token| token == b"null" || message.id_number() == key),
        Kind::Request | Kind::Notification => false,
    }
}
