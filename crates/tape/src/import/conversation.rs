//! Turns one conversation into the entries that a recorder would have written: assigns messages to exchanges, finds the
//! outcome of each exchange, and identifies client and server.

use super::offers::Offers;
use super::recording::{ImportedMessage, Side, Talk};
use crate::recorder::SessionHash;
use crate::recorder::message::{MessageInfo, look};
use crate::redact::{Redaction, Redactor};
use bytes::Bytes;
use signalbox_engine::fact::{Outcome, Point};
use signalbox_engine::record::{
    BackendOffer, Body, ClientEntry, Content, FinishedEntry, MessageEntry, MessageKind, SessionInfo,
};
use signalbox_wire::{Envelope, json, meta, method};
use std::collections::HashMap;
use std::sync::Arc;

/// Name of a server that did not introduce itself.
const NAMELESS: &str = "server";
/// Name of the transport if the file does not state it.
const UNKNOWN: &str = "unknown";
/// Outcome of an exchange whose answer is not a message.
const HTTP_ERROR: &str = "http_error";

/// An entry to be written, with the exchange it belongs to.
pub(super) type Draft = (Option<u64>, Content);

/// A request that waits for its answer.
struct ImportedRequest {
    exchange: Option<u64>,
    seen: MessageInfo,
    at: u64,
    bytes: u64,
    server: Arc<str>,
    redacted: bool,
    token: Option<Bytes>,
    /// True for a request of a further page of a list.
    continued: bool,
}

/// State shared by all conversations of a file.
pub(super) struct ImportState {
    pub(super) redactor: Redactor,
    /// Number of the most recent exchange.
    pub(super) exchanges: u64,
    /// Number of server offers that may still be written.
    pub(super) offers: usize,
}

/// Importer of one conversation.
pub(super) struct Conversation {
    /// Number of the session, or of the caller if it has none.
    number: u64,
    stateless: bool,
    info: SessionInfo,
    told: Option<SessionInfo>,
    server: Arc<str>,
    by_client: HashMap<Bytes, ImportedRequest>,
    by_server: HashMap<Bytes, ImportedRequest>,
    tokens: HashMap<Bytes, Bytes>,
    offers: Offers,
}

impl Conversation {
    pub(super) fn new(number: u64, talk: Talk, hash: Option<&SessionHash>) -> Self {
        let info = SessionInfo {
            external: talk.external.zip(hash).map(|(id, hash)| hash.of(&id)),
            revision: talk.revision.clone(),
            transport: if talk.transport.is_empty() { UNKNOWN } else { talk.transport }.to_owned(),
            ..SessionInfo::default()
        };
        Self {
            number,
            stateless: talk.stateless,
            info,
            told: None,
            server: talk.server.unwrap_or_else(|| NAMELESS.to_owned()).into(),
            by_client: HashMap::new(),
            by_server: HashMap::new(),
            tokens: HashMap::new(),
            offers: Offers::of_revision(talk.revision),
        }
    }

    /// Returns the number of the session, unless the conversation is stateless.
    pub(super) fn session(&self) -> Option<u64> {
        (!self.stateless).then_some(self.number)
    }

    /// Processes the next message and appends the resulting drafts to `out`.
    pub(super) fn heard(&mut self, at: u64, heard: &ImportedMessage, shared: &mut ImportState, out: &mut Vec<Draft>) {
        let message = Envelope::parse(heard.bytes.clone()).ok();
        if let (Side::Client, Some(message)) = (heard.from, &message) {
            self.introduce(message);
        }
        self.tell(shared, out);
        match heard.from {
            Side::Client => self.of_client(at, heard, message.as_ref(), shared, out),
            Side::Server => self.of_server(at, heard, message.as_ref(), shared, out),
        }
    }

    /// Notes the client's description of itself from `initialize`, or from any request of the new era.
    fn introduce(&mut self, message: &Envelope) {
        let params = message.params().unwrap_or_default();
        let text = |path: &[&str]| {
            let span = json::path(params, path)?;
            json::string(span.of(params)).map(|text| text.into_owned())
        };
        let (info, revision) = match message.method() {
            Some(method::INITIALIZE) => (&["clientInfo"][..], text(&["protocolVersion"])),
            _ => (&[meta::META, meta::CLIENT_INFO][..], text(&[meta::META, meta::PROTOCOL_VERSION])),
        };
        self.info.client = text(&[info, &["name"]].concat()).or_else(|| self.info.client.take());
        self.info.client_version = text(&[info, &["version"]].concat()).or_else(|| self.info.client_version.take());
        self.info.revision = revision.or_else(|| self.info.revision.take());
    }

    /// Writes an entry for the session or the caller, if more is known about it than before.
    fn tell(&mut self, shared: &ImportState, out: &mut Vec<Draft>) {
        if self.told.as_ref() == Some(&self.info) || self.stateless && self.told.is_some() {
            return;
        }
        self.told = Some(self.info.clone());
        let mut info = self.info.clone();
        for text in [&mut info.client, &mut info.client_version, &mut info.revision] {
            *text = text.take().map(|text| shared.redactor.text(text));
        }
        let content = match self.stateless {
            true => Content::Client(ClientEntry { number: self.number, info }),
            false => Content::Session(info),
        };
        out.push((None, content));
    }

    fn of_client(
        &mut self,
        at: u64,
        heard: &ImportedMessage,
        message: Option<&Envelope>,
        shared: &mut ImportState,
        out: &mut Vec<Draft>,
    ) {
        let mut seen = look(&heard.bytes, Point::ClientIn);
        let id = message.and_then(Envelope::id).map(|id| id.bytes().clone());
        match (seen.kind, id) {
            (MessageKind::Request, Some(id)) => {
                let mut asked = self.asked(at, heard, seen, shared);
                shared.exchanges += 1;
                asked.exchange = Some(shared.exchanges);
                asked.token = message.and_then(|message| {
                    message.param_meta(meta::PROGRESS_TOKEN).map(|span| heard.bytes.slice(span.range()))
                });
                asked.continued = message.is_some_and(|message| message.param("cursor").is_some());
                let entry = self.message(heard, &asked.seen, asked.redacted, shared);
                out.push((asked.exchange, entry));
                if let Some(token) = &asked.token {
                    self.tokens.insert(token.clone(), id.clone());
                }
                self.by_client.insert(id, asked);
            }
            (MessageKind::Result | MessageKind::Error, Some(id)) => {
                let asked = self.by_server.remove(&id);
                seen.method = asked.as_ref().and_then(|asked| asked.seen.method.clone());
                let entry = self.message(heard, &seen, false, shared);
                out.push((asked.and_then(|asked| asked.exchange), entry));
            }
            _ => {
                let cancelled = message.filter(|_| seen.method.as_deref() == Some(method::CANCELLED));
                let cancelled = cancelled.and_then(|message| message.param("requestId"));
                let asked = cancelled.and_then(|span| self.by_client.remove(&heard.bytes.slice(span.range())));
                let entry = self.message(heard, &seen, false, shared);
                out.push((asked.as_ref().and_then(|asked| asked.exchange), entry));
                if let Some(asked) = asked {
                    self.finish(at, &asked, "cancelled", 0, out);
                }
            }
        }
    }

    fn of_server(
        &mut self,
        at: u64,
        heard: &ImportedMessage,
        message: Option<&Envelope>,
        shared: &mut ImportState,
        out: &mut Vec<Draft>,
    ) {
        let mut seen = look(&heard.bytes, Point::ClientOut);
        let id = message.and_then(Envelope::id).map(|id| id.bytes().clone());
        // A body that is not a message, or an error without an id, answers the request it came with.
        let answers = match seen.kind {
            MessageKind::Result | MessageKind::Error => {
                id.clone().filter(|id| id != "null").or_else(|| heard.during.clone())
            }
            MessageKind::Raw => heard.during.clone(),
            MessageKind::Request | MessageKind::Notification => None,
        };
        if let Some(asked) = answers.and_then(|id| self.by_client.remove(&id)) {
            seen.method.clone_from(&asked.seen.method);
            seen.subject.clone_from(&asked.seen.subject);
            out.push((asked.exchange, self.message(heard, &seen, asked.redacted, shared)));
            let outcome = message.map_or(HTTP_ERROR, |message| Outcome::of(message).label());
            self.finish(at, &asked, outcome, heard.bytes.len() as u64, out);
            if let Some(message) = message {
                self.learn(message, &asked, shared, out);
            }
            return;
        }
        let exchange = self.middle_of(heard, message);
        match (seen.kind, id) {
            (MessageKind::Request, Some(id)) => {
                let mut asked = self.asked(at, heard, seen, shared);
                asked.exchange = exchange;
                out.push((exchange, self.message(heard, &asked.seen, false, shared)));
                self.by_server.insert(id, asked);
            }
            _ => out.push((exchange, self.message(heard, &seen, false, shared))),
        }
    }

    /// Returns the exchange during which a server sent a message of its own.
    fn middle_of(&self, heard: &ImportedMessage, message: Option<&Envelope>) -> Option<u64> {
        let token = || message?.param("progressToken").map(|span| heard.bytes.slice(span.range()));
        let by_token = || self.tokens.get(&token()?);
        let asked = match heard.during.as_ref().or_else(by_token) {
            Some(id) => self.by_client.get(id),
            None if message?.method() == Some(method::PROGRESS) => None,
            // With a single open request, a question can only concern that one.
            None => message?.id().and_then(|_| self.by_client.values().next().filter(|_| self.by_client.len() == 1)),
        };
        asked.and_then(|asked| asked.exchange)
    }

    fn asked(&self, at: u64, heard: &ImportedMessage, mut seen: MessageInfo, shared: &ImportState) -> ImportedRequest {
        // The subject may hold a secret too, such as a URI with a key in its query.
        let subject = seen.subject.as_ref().map(|subject| Arc::from(shared.redactor.text(subject.to_string())));
        let redacted = subject != seen.subject;
        seen.subject = subject;
        let server = heard.server.clone().unwrap_or_else(|| Arc::clone(&self.server));
        let bytes = heard.bytes.len() as u64;
        ImportedRequest { exchange: None, seen, at, bytes, server, redacted, token: None, continued: false }
    }

    fn message(&self, heard: &ImportedMessage, seen: &MessageInfo, redacted: bool, shared: &ImportState) -> Content {
        let (body, changed) = match shared.redactor.message(&heard.bytes, seen.method.as_deref()) {
            Redaction::Same => (Body::Whole(heard.bytes.clone()), false),
            Redaction::Changed(bytes) => (Body::Whole(bytes), true),
            Redaction::Withheld => (Body::Left, true),
        };
        let point = match heard.from {
            Side::Client => Point::ClientIn,
            Side::Server => Point::ClientOut,
        };
        Content::Message(MessageEntry {
            method: seen.method.clone(),
            subject: seen.subject.clone(),
            backend: Some(heard.server.clone().unwrap_or_else(|| Arc::clone(&self.server))),
            error_code: seen.error_code,
            redacted: redacted || changed,
            carried: heard.carried.clone(),
            ..MessageEntry::new(point, seen.kind, heard.bytes.len() as u64, body)
        })
    }

    fn finish(
        &mut self,
        at: u64,
        asked: &ImportedRequest,
        outcome: &'static str,
        bytes_out: u64,
        out: &mut Vec<Draft>,
    ) {
        if let Some(token) = &asked.token {
            self.tokens.remove(token);
        }
        let content = Content::Finished(FinishedEntry {
            method: asked.seen.method.clone().unwrap_or_default(),
            subject: asked.seen.subject.clone(),
            backend: Some(Arc::clone(&asked.server)),
            outcome: outcome.into(),
            took: at.saturating_sub(asked.at),
            bytes_in: asked.bytes,
            bytes_out,
            client: self.stateless.then_some(self.number),
            redacted: asked.redacted,
            ..FinishedEntry::default()
        });
        out.push((asked.exchange, content));
    }

    /// Notes the server's description of itself from an answer.
    fn learn(&mut self, message: &Envelope, asked: &ImportedRequest, shared: &mut ImportState, out: &mut Vec<Draft>) {
        let Some(result) = message.result_span().map(|span| message.bytes().slice(span.range())) else { return };
        let name = asked.seen.method.as_deref().unwrap_or_default();
        if !self.offers.answered(name, &result, asked.continued) {
            return;
        }
        if name == method::INITIALIZE {
            self.info.revision = self.offers.revision.clone().or_else(|| self.info.revision.take());
            self.tell(shared, out);
        }
        if shared.offers == 0 {
            return;
        }
        let view = if self.stateless { "stateless" } else { "sessions" };
        if let Some(seen) = self.offers.told(&asked.server, view) {
            shared.offers -= 1;
            out.push((None, Content::Backend(Box::new(redacted(seen, &shared.redactor)))));
        }
    }
}

fn redacted(mut seen: BackendOffer, redactor: &Redactor) -> BackendOffer {
    for (_, part) in &mut seen.parts {
        let (kept, changed) = redactor.bytes(part);
        *part = kept;
        seen.redacted |= changed;
    }
    seen
}
