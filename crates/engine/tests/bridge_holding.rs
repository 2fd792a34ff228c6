//! Parked calls, and the clock of calls in flight.
#![allow(clippy::unwrap_used, reason = "a test may stop at what it does not expect")]

use bytes::Bytes;
use signalbox_engine::Principal;
use signalbox_engine::bridge::bridged_call::{BridgedCall, BridgedCallCommand};
use signalbox_engine::bridge::ticket::{Claim, Sealer, Ticket};
use signalbox_engine::correlation::Correlator;
use signalbox_wire::{Envelope, Revision};
use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);

/// The backend reports progress while the client thinks: the pause it was given must not shrink.
#[test]
fn a_sign_of_life_does_not_cut_the_pause_of_a_parked_call_short() {
    let now = Instant::now();
    let mut calls = Correlator::default();
    let id = calls.open("parked", now, MINUTE);
    calls.hold(id, now + 5 * MINUTE);
    calls.touch(id, now + Duration::from_secs(1));
    let over = calls.expire(now + 2 * MINUTE);
    assert!(over.is_empty(), "the client had five minutes to come back, and the call was given up after one");
}

/// After the client came back the backend must be heard of within its time-out.
#[test]
fn a_resumed_call_that_stays_silent_is_given_up_in_time() {
    let now = Instant::now();
    let mut calls = Correlator::default();
    let id = calls.open("parked", now, MINUTE);
    calls.hold(id, now + 5 * MINUTE);
    assert!(calls.expire(now + MINUTE).is_empty());
    calls.release(id, now + MINUTE);
    assert_eq!(
        calls.expire(now + 3 * MINUTE).len(),
        1,
        "two minutes of silence after the resumption, with one allowed"
    );
}

/// Once a call is given up nobody may be bound to it: the one who is would wait for ever.
#[test]
fn a_call_that_is_given_up_is_not_resumed() {
    let now = Instant::now();
    let mut bridged_call =
        BridgedCall::new("first", Bytes::from_static(b"{\"roots\":{}}"), Revision::V2025_11_25, MINUTE);
    let mut out = Vec::new();
    let question = Envelope::parse(Bytes::from_static(br#"{"jsonrpc":"2.0","id":7,"method":"roots/list"}"#)).unwrap();
    bridged_call.asked(&question, &mut out);
    bridged_call.settled(now, &mut out);
    out.clear();
    bridged_call.tick(now + MINUTE, &mut out);
    assert!(matches!(out[..], [BridgedCallCommand::Abandon]), "{out:?}");
    out.clear();
    // Between the decision and its doing another thread takes the call out of the lot.
    let back = bridged_call.resumed("second", 1, br#"{"q1":{"roots":[]}}"#, &mut out);
    let told = out.iter().any(|command| matches!(command, BridgedCallCommand::Deliver { .. }));
    assert!(back.is_err() || told, "it is bound to a call that is about to be abandoned: {out:?}");
}

struct Plain;

impl Sealer for Plain {
    fn seal(&self, plain: &[u8]) -> Option<Vec<u8>> {
        Some([&[0; 28], plain].concat())
    }

    fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        sealed.get(28..).map(<[u8]>::to_vec)
    }

    fn digest(&self, _: &[u8]) -> [u8; 32] {
        [0; 32]
    }
}

/// Every ticket that is given out can be brought back, however long the caller's name is.
#[test]
fn a_ticket_of_a_caller_with_a_long_name_can_be_opened() {
    let name = format!("https://issuer.example/{}#{}", "a".repeat(255), "b".repeat(255));
    let ticket =
        Ticket { claim: Claim::Again { number: 7 }, principal: Principal::named(&name), expires: 1, digest: [0; 32] };
    let text = ticket.seal(&Plain).unwrap();
    assert_eq!(Ticket::open(&text, &Plain), Some(ticket), "a ticket of {} characters", text.len());
}
