//! The handshake of a backend connection, which also finds the era of the backend.
//!
//! With [`Wish::Auto`] the new era is tried first. A `server/discover` that succeeds, or fails in a way specific to the
//! new era, settles it; any other answer, or none, leads to `initialize`.

use super::{BackCommand, BackMachine, Draft, Outbound, Purpose};
use crate::bridge::BackendFeatures;
use crate::fault::{Fault, FaultKind};
use crate::profile::ServerProfile;
use bytes::Bytes;
use signalbox_wire::{Envelope, Era, Kind, RawId, Revision, builder, codes, json, meta, method};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Era in which a connection is to be opened.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Wish {
    /// Either era; the new one is tried first.
    Auto,
    /// The old era only, by `initialize`.
    Legacy,
    /// The new era only, without a session.
    Modern,
}

/// Client side of the handshake, as declared to the backend.
#[derive(Clone, Debug)]
pub struct ClientOffer {
    /// Revision to ask for in the old era.
    pub revision: Revision,
    /// The client's `capabilities` object, raw.
    pub capabilities: Bytes,
    /// The client's `clientInfo` object, raw.
    pub info: Arc<str>,
    /// Id of the gateway, by which it refuses a connection to itself.
    pub instance: Arc<str>,
    /// Time limit for the whole handshake.
    pub start_timeout: Duration,
    /// Time limit for an answer to the probe for the new era.
    pub probe_timeout: Duration,
    /// Extra time for a call while the backend waits for the client's answer to a question.
    pub question_timeout: Duration,
}

/// State of the connection.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum ConnectionState {
    Opening,
    /// `server/discover` was sent; `initialize` follows at this time if there is no answer.
    Probing {
        until: Instant,
    },
    Initializing,
    Ready,
    Dead,
}

/// Request of the handshake.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum HandshakeRequest {
    Probe,
    Initialize,
}

/// Unanswered requests of the handshake. A slow server may answer the probe after `initialize` was sent; that answer
/// still settles its era.
#[derive(Default, Debug)]
pub(super) struct Handshake {
    /// Number of probes sent.
    probes: u8,
    /// Id of the unanswered probe.
    probe: Option<u64>,
    /// Id of the unanswered `initialize`.
    initialize: Option<u64>,
    /// Refusal of `initialize`, while the probe may still be answered.
    refusal: Option<Fault>,
}

/// Maximum number of probes on one connection.
const MAX_PROBES: u8 = 2;

impl<O: Clone> BackMachine<O> {
    /// Starts the handshake once the link is open.
    pub fn opened(&mut self, now: Instant, out: &mut Vec<BackCommand<O>>) {
        match self.wish {
            Wish::Legacy => self.initialize(now, out),
            Wish::Auto | Wish::Modern => self.probe(now, out),
        }
    }

    fn probe(&mut self, now: Instant, out: &mut Vec<BackCommand<O>>) {
        // If `initialize` may follow, an answer to the probe counts for as long as one to `initialize` would.
        let (alone, timeout) = match self.wish {
            Wish::Auto => (self.offer.probe_timeout, self.offer.probe_timeout + self.offer.start_timeout),
            _ => (self.offer.start_timeout, self.offer.start_timeout),
        };
        self.phase = ConnectionState::Probing { until: now + alone };
        let id = self.calls.open(Purpose::Handshake(HandshakeRequest::Probe), now, timeout);
        self.handshake.probes += 1;
        self.handshake.probe = Some(id);
        let probe = self.request(id, method::SERVER_DISCOVER, "", Revision::LATEST);
        out.push(BackCommand::Transmit(probe));
    }

    /// Sends `initialize` to a backend that did not answer the probe in time.
    pub(super) fn initialize_silent(&mut self, now: Instant, out: &mut Vec<BackCommand<O>>) {
        if let ConnectionState::Probing { until } = self.phase
            && until <= now
            && self.wish == Wish::Auto
        {
            self.initialize(now, out);
        }
    }

    /// Opens a new session on the same link after the backend lost ours. Calls in flight stay in flight.
    pub fn reopen(&mut self, now: Instant, out: &mut Vec<BackCommand<O>>) {
        self.initialize(now, out);
    }

    fn initialize(&mut self, now: Instant, out: &mut Vec<BackCommand<O>>) {
        self.phase = ConnectionState::Initializing;
        let id = self.calls.open(Purpose::Handshake(HandshakeRequest::Initialize), now, self.offer.start_timeout);
        self.handshake.initialize = Some(id);
        let bytes = builder::RequestBuilder::new(method::INITIALIZE)
            .id(RawId::number(id))
            .param_str("protocolVersion", self.offer.revision.as_str())
            .param_raw("capabilities", &self.offer.capabilities)
            .param_raw("clientInfo", self.offer.info.as_bytes())
            .param_raw(meta::META, format!(r#"{{"{}":"{}"}}"#, meta::INSTANCE, self.offer.instance).as_bytes())
            .build();
        let draft = Draft { key: Some(id), ..Draft::word(method::INITIALIZE, bytes) };
        out.push(BackCommand::Transmit(draft.depart()));
    }

    /// Builds a request of the gateway itself, for this revision.
    pub(super) fn request(&self, id: u64, name: &'static str, params: &str, revision: Revision) -> Outbound {
        let mut members = String::from("{");
        members.push_str(params);
        if revision.era() == Era::Modern {
            if !params.is_empty() {
                members.push(',');
            }
            members.push_str(&format!(
                r#""_meta":{{"{}":"{}","{}":{{}},"{}":{},"{}":"{}"}}"#,
                meta::PROTOCOL_VERSION,
                revision.as_str(),
                meta::CLIENT_CAPABILITIES,
                meta::CLIENT_INFO,
                self.offer.info,
                meta::INSTANCE,
                self.offer.instance
            ));
        }
        members.push('}');
        let bytes = builder::RequestBuilder::new(name).id(RawId::number(id)).params_raw(members.as_bytes()).build();
        Draft { key: Some(id), revision: Some(revision), ..Draft::word(name, bytes) }.depart()
    }

    /// Handles the answer to a request of the handshake.
    pub(super) fn handshake_answered(
        &mut self,
        word: HandshakeRequest,
        message: &Envelope,
        now: Instant,
        out: &mut Vec<BackCommand<O>>,
    ) {
        match word {
            HandshakeRequest::Probe => self.probe_answered(message, now, out),
            HandshakeRequest::Initialize => self.initialize_answered(message, out),
        }
    }

    fn probe_answered(&mut self, message: &Envelope, now: Instant, out: &mut Vec<BackCommand<O>>) {
        self.handshake.probe = None;
        match message.result().and_then(read_discovery) {
            Some(profile) => self.ready(profile, out),
            // The server refuses the version but lists it as supported: probe once more, but not more often.
            None if self.handshake.probes < MAX_PROBES && offers_latest(message) => {
                self.drop_unanswered(out);
                self.probe(now, out);
            }
            None if self.phase == ConnectionState::Initializing => self.probe_failed(out),
            None if self.wish == Wish::Auto && !only_modern(message) => self.initialize(now, out),
            None => self.unusable("does not serve revision 2026-07-28", out),
        }
    }

    /// Gives up the probe. If `initialize` was refused before, the connection is unusable.
    fn probe_failed(&mut self, out: &mut Vec<BackCommand<O>>) {
        if let Some(fault) = self.handshake.refusal.take() {
            self.die(fault, out);
        }
    }

    fn initialize_answered(&mut self, message: &Envelope, out: &mut Vec<BackCommand<O>>) {
        self.handshake.initialize = None;
        let Some(result) = message.result() else {
            let why = format!("refused `initialize`: {}", error_text(message));
            // A server of the new era refuses `initialize` too; its answer to the probe will settle the era.
            if self.handshake.probe.is_some() {
                self.handshake.refusal = Some(self.era_refused(&why));
                return;
            }
            return self.unusable(&why, out);
        };
        match read_initialize(result) {
            Ok(profile) => {
                let bytes = builder::Notification::new(method::INITIALIZED).build();
                let revision = Some(profile.revision);
                let draft = Draft { revision, ..Draft::word(method::INITIALIZED, bytes) };
                out.push(BackCommand::Transmit(draft.depart()));
                self.ready(profile, out);
            }
            Err(why) => self.unusable(why, out),
        }
    }

    /// Handles a request of the handshake that the transport refused, or that timed out.
    pub(super) fn handshake_refused(
        &mut self,
        word: HandshakeRequest,
        fault: &Fault,
        now: Instant,
        out: &mut Vec<BackCommand<O>>,
    ) {
        // Without a sign-in, the refusal does not reveal the era of the backend.
        let unreachable = matches!(fault.kind, FaultKind::BackendDown | FaultKind::SignInNeeded);
        match word {
            HandshakeRequest::Probe => self.handshake.probe = None,
            HandshakeRequest::Initialize => self.handshake.initialize = None,
        }
        match (word, self.phase) {
            (HandshakeRequest::Probe, ConnectionState::Probing { .. }) if self.wish == Wish::Auto && !unreachable => {
                self.initialize(now, out)
            }
            (HandshakeRequest::Probe, ConnectionState::Initializing) => self.probe_failed(out),
            (HandshakeRequest::Initialize, _)
                if self.handshake.probe.is_some() && !unreachable && fault.kind != FaultKind::TimedOut =>
            {
                self.handshake.refusal = Some(fault.clone());
            }
            _ => self.die(fault.clone(), out),
        }
    }

    /// Gives up the unanswered requests of the handshake.
    fn drop_unanswered(&mut self, out: &mut Vec<BackCommand<O>>) {
        self.handshake.refusal = None;
        for key in [self.handshake.probe.take(), self.handshake.initialize.take()].into_iter().flatten() {
            self.calls.give_up(key);
            out.push(BackCommand::Abort(key));
        }
    }

    fn ready(&mut self, profile: ServerProfile, out: &mut Vec<BackCommand<O>>) {
        self.drop_unanswered(out);
        let profile = Arc::new(profile);
        self.offered = BackendFeatures::read(&profile);
        self.phase = ConnectionState::Ready;
        self.profile = Some(Arc::clone(&profile));
        out.push(BackCommand::Ready(profile));
    }

    fn unusable(&mut self, why: &str, out: &mut Vec<BackCommand<O>>) {
        self.die(self.era_refused(why), out);
    }

    fn era_refused(&self, why: &str) -> Fault {
        let text = format!("backend `{}` {why}", self.backend);
        Fault::new(FaultKind::EraRefused, text).with_str("backend", &self.backend)
    }

    fn die(&mut self, fault: Fault, out: &mut Vec<BackCommand<O>>) {
        self.phase = ConnectionState::Dead;
        out.push(BackCommand::Unusable(fault));
    }
}

fn read_discovery(result: &[u8]) -> Option<ServerProfile> {
    let raw = |key: &str| json::member(result, key).map(|span| span.of(result));
    if !names_latest(raw("supportedVersions")?) {
        return None;
    }
    let info = json::path(result, &["_meta", meta::SERVER_INFO]).map(|span| span.of(result));
    Some(ServerProfile {
        revision: Revision::LATEST,
        capabilities: Bytes::copy_from_slice(raw("capabilities").unwrap_or(b"{}")),
        info: Bytes::copy_from_slice(info.unwrap_or(b"{}")),
        instructions: raw("instructions").and_then(json::string).map(|text| text.into_owned()),
    })
}

/// Returns true if a list of versions contains the newest one.
fn names_latest(versions: &[u8]) -> bool {
    let mut named = json::elements(versions).filter_map(|span| json::string(span.of(versions)));
    named.any(|version| version == Revision::LATEST.as_str())
}

/// Returns true for an error that refuses our version but lists it as supported.
fn offers_latest(message: &Envelope) -> bool {
    let Some(error) = message.error().filter(|_| message.kind() == Kind::Error) else { return false };
    let code = json::member(error, "code").map(|span| span.of(error));
    let unsupported = code.is_some_and(|code| code == codes::UNSUPPORTED_VERSION.to_string().as_bytes());
    let supported = json::path(error, &["data", "supported"]).map(|span| span.of(error));
    unsupported && supported.is_some_and(names_latest)
}

fn read_initialize(result: &[u8]) -> Result<ServerProfile, &'static str> {
    let raw = |key: &str| json::member(result, key).map(|span| span.of(result));
    let version = raw("protocolVersion").and_then(json::string).ok_or("answered `initialize` without a version")?;
    let revision = Revision::parse(&version)
        .filter(|revision| revision.era() == Era::Legacy)
        .ok_or("answered `initialize` with a revision that is not known")?;
    Ok(ServerProfile {
        revision,
        capabilities: Bytes::copy_from_slice(raw("capabilities").unwrap_or(b"{}")),
        info: Bytes::copy_from_slice(raw("serverInfo").unwrap_or(b"{}")),
        instructions: raw("instructions").and_then(json::string).map(|text| text.into_owned()),
    })
}

/// Returns true for errors that only a server of the new era gives: it exists, but does not serve the revision we
/// named.
fn only_modern(message: &Envelope) -> bool {
    let Some(error) = message.error().filter(|_| message.kind() == Kind::Error) else { return false };
    let code = json::member(error, "code").map(|span| span.of(error));
    matches!(code, Some(b"-32020" | b"-32021"))
}

fn error_text(message: &Envelope) -> String {
    let error = message.error().unwrap_or_default();
    let text = json::member(error, "message").and_then(|span| json::string(span.of(error)));
    text.map_or_else(|| "no reason given".to_owned(), |text| text.chars().take(200).collect())
}
