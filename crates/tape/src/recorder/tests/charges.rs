//! What is remembered of calls that have ended is not charged to anybody.

use super::facts::{Facts, LONG};
use super::memory::{Memory, eventually};
use crate::Redactor;
use crate::recorder::{Recorder, RecorderSettings, Sampling, SamplingTrigger};
use bytes::Bytes;
use signalbox_engine::fact::{MessageFact, Outcome, Point};
use signalbox_engine::record::StoreError;
use signalbox_engine::{Caller, ExchangeId, Fact, FactSink, SessionKey};
use std::sync::Arc;
use std::time::{Duration, Instant};

const LARGE: usize = 256 << 10;

/// A buffer whose last copy takes the charge along.
struct Charged(Vec<u8>, #[expect(dead_code, reason = "counted by its clones")] Arc<()>);

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// A large call that the gateway refused: its request reaches no backend, so nothing is compared with it.
fn refused(recorder: &Recorder, exchange: u64, charge: &Arc<()>) {
    let text = super::facts::request(exchange, &"x".repeat(LARGE));
    let bytes = Bytes::from_owner(Charged(text.into_bytes(), Arc::clone(charge)));
    let fact = MessageFact::new(Instant::now(), SessionKey(1), Caller::anonymous("http"), Point::ClientIn, bytes);
    recorder.fact(&Fact::Message(MessageFact { exchange: Some(ExchangeId(exchange)), ..fact }));
    let facts = Facts::new(recorder);
    facts.message(1, Some(exchange), Point::ClientOut, r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}"#);
    facts.finished(1, exchange, "x", Outcome::Fault("denied"), Duration::from_millis(1));
}

/// Large refused calls of one caller left the budget of messages used up.
#[test]
fn calls_that_have_ended_hold_no_charged_message() {
    let ring = Sampling::Ring { exchanges: 1_000, within: None, after: 0, on: SamplingTrigger::default() };
    let ring = RecorderSettings { sampling: ring, ..RecorderSettings::default() };
    let (_, sealed) = super::sealing::sealed(10);
    for settings in [RecorderSettings::default(), ring, sealed] {
        let (memory, charge) = (Memory::default(), Arc::new(()));
        let words = settings.sampling_words();
        let recorder = memory.record(settings, Redactor::none());
        (0..100).for_each(|exchange| refused(&recorder, exchange, &charge));
        eventually(|| Arc::strong_count(&charge) == 1);
        assert_eq!(Arc::strong_count(&charge), 1, "{words}");
        recorder.stop(LONG);
    }
}

/// Calls that wait for a full disk have ended all the same.
#[test]
fn calls_that_wait_for_a_store_that_fails_hold_no_charged_message() {
    let (memory, charge) = (Memory::default(), Arc::new(()));
    let recorder = memory.record(RecorderSettings::default(), Redactor::none());
    memory.fail_with(Some(StoreError::Full("the disk".into())));
    (0..50).for_each(|exchange| refused(&recorder, exchange, &charge));
    eventually(|| Arc::strong_count(&charge) == 1);
    (50..100).for_each(|exchange| refused(&recorder, exchange, &charge));
    eventually(|| Arc::strong_count(&charge) == 1);
    memory.fail_with(None);
    recorder.stop(LONG);
    assert_eq!(memory.entries().len(), 300, "and nothing is lost");
}
