//! Infers which side sent a message, if the file does not say so or says it relative to an unnamed side.

use super::recording::{ImportedMessage, Side};
use bytes::Bytes;
use signalbox_wire::{Direction, Envelope, Kind, method};
use std::collections::HashMap;

/// Direction of a message, as the file states it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum DirectionHint {
    /// The file names the sender.
    From(Side),
    /// The writer of the file received the message.
    In,
    /// The writer of the file sent the message.
    Out,
    /// The file does not say.
    Nothing,
}

impl DirectionHint {
    /// Parses a word for a direction. Words for the kind of a message (`request`) carry no direction.
    pub(super) fn of_word(word: &str) -> Self {
        let plain: String = word.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        match &*plain {
            "clientserver" | "clienttoserver" | "client2server" | "c2s" | "toserver" | "fromclient" | "client" => {
                Self::From(Side::Client)
            }
            "serverclient" | "servertoclient" | "server2client" | "s2c" | "toclient" | "fromserver" | "server" => {
                Self::From(Side::Server)
            }
            "in" | "inbound" | "incoming" | "recv" | "receive" | "received" => Self::In,
            "out" | "outbound" | "outgoing" | "send" | "sent" => Self::Out,
            _ => Self::Nothing,
        }
    }
}

/// Determines the sender of each message.
pub(super) fn settle(told: &[DirectionHint], heard: &mut [ImportedMessage]) {
    let out = who_writes(told, heard);
    let mut open = Vec::new();
    for (told, heard) in told.iter().zip(heard) {
        if open.len() <= heard.talk {
            open.resize_with(heard.talk + 1, Open::default);
        }
        let Some(open) = open.get_mut(heard.talk) else { continue };
        let message = Envelope::parse(heard.bytes.clone()).ok();
        heard.from = match told {
            DirectionHint::From(side) => *side,
            DirectionHint::Out => out,
            DirectionHint::In => other(out),
            DirectionHint::Nothing => message.as_ref().map_or(Side::Server, |message| open.guess(message)),
        };
        if let Some(message) = &message {
            open.passed(heard.from, message);
        }
    }
}

/// Returns the side that wrote the file, judged by the first message that only one side can send. Most such files are
/// written by clients.
fn who_writes(told: &[DirectionHint], heard: &[ImportedMessage]) -> Side {
    let judged = told.iter().zip(heard).find_map(|(told, heard)| {
        let out = match told {
            DirectionHint::Out => true,
            DirectionHint::In => false,
            _ => return None,
        };
        let side = by_method(Envelope::parse(heard.bytes.clone()).ok()?.method()?)?;
        Some(if out { side } else { other(side) })
    });
    judged.unwrap_or(Side::Client)
}

fn other(side: Side) -> Side {
    match side {
        Side::Client => Side::Server,
        Side::Server => Side::Client,
    }
}

/// Returns the side that sends messages of this method, if only one side does.
fn by_method(name: &str) -> Option<Side> {
    match method::direction(name)? {
        Direction::ClientToServer => Some(Side::Client),
        Direction::ServerToClient => Some(Side::Server),
        Direction::Both => None,
    }
}

/// Open requests of both sides, with their position among all requests.
#[derive(Default)]
struct Open {
    by_client: HashMap<Bytes, u64>,
    by_server: HashMap<Bytes, u64>,
    count: u64,
}

impl Open {
    fn guess(&self, message: &Envelope) -> Side {
        let id = message.id().map(|id| id.bytes().clone());
        match message.kind() {
            Kind::Request => message.method().and_then(by_method).unwrap_or(Side::Client),
            Kind::Response | Kind::Error => id.map_or(Side::Server, |id| other(self.asked_by(&id))),
            Kind::Notification if message.method() == Some(method::CANCELLED) => {
                let id = message.param("requestId").map(|span| message.bytes().slice(span.range()));
                id.map_or(Side::Client, |id| self.asked_by(&id))
            }
            Kind::Notification => message.method().and_then(by_method).unwrap_or(Side::Server),
        }
    }

    /// Returns the side that asked with this id. If both did, it is the later one: a question in the middle of a call
    /// is answered before the call.
    fn asked_by(&self, id: &Bytes) -> Side {
        if self.by_server.get(id) > self.by_client.get(id) { Side::Server } else { Side::Client }
    }

    fn passed(&mut self, from: Side, message: &Envelope) {
        let Some(id) = message.id().map(|id| id.bytes().clone()) else { return };
        self.count += 1;
        let (own, others) = match from {
            Side::Client => (&mut self.by_client, &mut self.by_server),
            Side::Server => (&mut self.by_server, &mut self.by_client),
        };
        match message.kind() {
            Kind::Request => drop(own.insert(id, self.count)),
            Kind::Response | Kind::Error => drop(others.remove(&id)),
            Kind::Notification => {}
        }
    }
}
