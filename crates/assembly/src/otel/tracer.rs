//! Assigns each request its place in a trace, and makes spans of finished exchanges.

use super::collector::{ExportDropCounter, QUEUE_FULL};
use super::exporter::Job;
use super::semantics::{Places, SpanClock, spans};
use aws_lc_rs::digest;
use signalbox_config::otel::Ratio;
use signalbox_engine::trace::{self, CallTrace, Trace, TraceState};
use signalbox_engine::{Carrier, Fact, FactSink};
use signalbox_wire::hex::hex;
use signalbox_wire::trace_parent::{MAX_STATE, SAMPLED};
use signalbox_wire::{Envelope, TraceParent};
use std::sync::{Arc, OnceLock};
use tokio::sync::mpsc;

/// Number of bytes of a session id's digest that are exported.
const SESSION_DIGEST: usize = 16;

/// Fact subscriber that makes spans.
pub struct Tracer {
    pub(super) ratio: Ratio,
    pub(super) places: Places,
    pub(super) jobs: mpsc::Sender<Job>,
    pub(super) lost: Arc<ExportDropCounter>,
}

/// Origin of a trace.
enum Origin {
    /// The client's `_meta` names the parent span.
    Meta(TraceParent),
    /// An HTTP header of the client names the parent span.
    Header(TraceParent, TraceState),
    /// The trace begins at this gateway.
    Here,
}

impl Origin {
    fn of(message: &Envelope, carrier: Carrier<'_>) -> Self {
        let read = |text: &str| TraceParent::parse(text);
        if let Some(parent) = trace::in_meta(message).as_deref().and_then(read) {
            return Self::Meta(parent);
        }
        let sound = |state: &&str| state.len() <= MAX_STATE && state.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        match carrier.parent.and_then(read) {
            Some(parent) => {
                let state =
                    carrier.state.filter(sound).map_or(TraceState::Removed, |state| TraceState::Set(state.into()));
                Self::Header(parent, state)
            }
            None => Self::Here,
        }
    }
}

impl FactSink for Tracer {
    fn traces(&self) -> bool {
        true
    }

    fn begin(&self, message: &Envelope, carrier: Carrier<'_>) -> Option<Box<Trace>> {
        let (parent, state) = match Origin::of(message, carrier) {
            // `_meta` reaches the backend unchanged, so there is nothing to do.
            Origin::Meta(parent) if !parent.is_sampled() => return None,
            Origin::Meta(parent) => (Some(parent), TraceState::Kept),
            Origin::Header(parent, state) if !parent.is_sampled() => return Some(unrecorded(parent, state)),
            Origin::Header(parent, state) => (Some(parent), state),
            Origin::Here => (None, TraceState::Removed),
        };
        let ids = Ids::random()?;
        let (trace, flags) = match parent {
            Some(parent) => (parent.trace, parent.flags),
            None => (ids.trace, if self.ratio.takes(ids.trace) { SAMPLED } else { 0 }),
        };
        let at = |span| TraceParent { trace, span, flags };
        let told = CallTrace { call: at(ids.call), state, sent: OnceLock::new() };
        let session = carrier.session.filter(|_| flags & SAMPLED != 0).map(digest_of);
        let parent = parent.map(|parent| parent.span);
        Some(Box::new(Trace { span: at(ids.own), parent, session, told: Arc::new(told), ended: None }))
    }

    fn fact(&self, fact: &Fact) {
        let Fact::Finished(finished) = fact else { return };
        let Some(trace) = finished.trace.as_ref().filter(|trace| trace.span.is_sampled()) else { return };
        for span in spans(finished, trace, &self.places, SpanClock::read()) {
            if self.jobs.try_send(Job::Span(Box::new(span))).is_err() {
                self.lost.count(QUEUE_FULL, 1);
            }
        }
    }
}

/// Ids for the two spans of an exchange, and for the trace if it begins here.
struct Ids {
    trace: [u8; 16],
    own: [u8; 8],
    call: [u8; 8],
}

impl Ids {
    /// Draws random ids, or returns `None` without randomness: the request goes on without a trace.
    fn random() -> Option<Self> {
        let mut ids = Self { trace: [0; 16], own: [0; 8], call: [0; 8] };
        for part in [&mut ids.trace[..], &mut ids.own, &mut ids.call] {
            getrandom::fill(part).ok()?;
            // The protocol forbids an id of all zeros.
            part[0] = part[0].max(u8::from(part.iter().all(|byte| *byte == 0)));
        }
        Some(ids)
    }
}

/// Returns the trace of a client that does not record it. It is propagated, so that no backend begins another one.
fn unrecorded(parent: TraceParent, state: TraceState) -> Box<Trace> {
    let told = Arc::new(CallTrace { call: parent, state, sent: OnceLock::new() });
    Box::new(Trace { span: parent, parent: None, session: None, told, ended: None })
}

/// Returns a digest of a session id. The id itself lets its holder speak in the session and must not leave the gateway.
fn digest_of(session: &str) -> Box<str> {
    let digest = digest::digest(&digest::SHA256, session.as_bytes());
    hex(&digest.as_ref()[..SESSION_DIGEST]).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::{StateFiles, assemble};
    use signalbox_config::{Config, ConfigLocation, Overrides};
    use signalbox_engine::fact::{FinishedFact, Outcome};
    use signalbox_engine::{Caller, ExchangeId, Principal, SessionKey};
    use signalbox_oauth_client::page_host::PageHost;
    use signalbox_wire::Era;
    use std::time::{Duration, Instant};

    fn finished(trace: Option<Box<Trace>>) -> Fact {
        Fact::Finished(Arc::new(FinishedFact {
            at: Instant::now(),
            session: SessionKey(1),
            caller: Caller::anonymous("http"),
            client: None,
            operation: ExchangeId(1),
            round: 1,
            exchange: ExchangeId(1),
            era: Era::Legacy,
            method: "ping".into(),
            subject: None,
            backend: None,
            outcome: Outcome::Ok,
            took: Duration::from_millis(1),
            bytes_in: 1,
            bytes_out: 1,
            trace,
            unreached: None,
        }))
    }

    #[tokio::test]
    async fn a_full_queue_drops_and_counts_and_does_not_wait() {
        let env = |name: &str| (name == "HOME").then(|| "/".to_owned());
        let config = Config::load(&ConfigLocation::Defaults, &env, &Overrides::default()).unwrap().config;
        let app = assemble(&config, Principal::anonymous(), StateFiles::default(), None, PageHost::Person).unwrap();
        let (jobs, mut queue) = mpsc::channel(1);
        let lost = Arc::new(ExportDropCounter::default());
        lost.count_at(Arc::downgrade(&app.gateway));
        let tracer = Tracer { ratio: Ratio::new(1.0), places: Places::new(&config, false), jobs, lost };
        let message = Envelope::parse(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.into()).unwrap();
        for _ in 0..3 {
            let trace = tracer.begin(&message, Carrier::default());
            assert!(trace.as_ref().is_some_and(|trace| trace.span.is_sampled()));
            tracer.fact(&finished(trace));
        }
        tracer.fact(&finished(None));
        assert!(queue.try_recv().is_ok() && queue.try_recv().is_err());
        assert_eq!(app.gateway.counters.all_dropped().get(QUEUE_FULL), Some(&2));
    }

    #[test]
    fn a_state_that_could_not_be_a_header_of_ours_is_left_behind() {
        let message = Envelope::parse(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.into()).unwrap();
        let parent = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        let long = "x".repeat(MAX_STATE + 1);
        for (state, kept) in [("a=1", true), ("a=\u{e9}", false), (long.as_str(), false)] {
            let carrier = Carrier { parent, state: Some(state), ..Carrier::default() };
            let Origin::Header(_, found) = Origin::of(&message, carrier) else { panic!("{state}") };
            assert_eq!(found != TraceState::Removed, kept, "{state}");
        }
    }
}
