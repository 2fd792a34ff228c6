//! What the runtime once got wrong, each fault as a test: a gateway with a scripted backend, driven through its
//! sessions.
//!
//! But for the one about locks, the tests run on a clock that jumps to the next timer as soon as nothing else is to be
//! done, so that a backoff of a second costs nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "all of this is a test, its helpers too")]

mod asleep;
mod batches;
mod breaker;
mod bridged_calls;
mod bridged_following;
mod bridged_policy;
mod bridged_rounds;
mod client;
mod crowds;
mod early_lists;
mod eras;
mod expiry;
mod fact_buffers;
mod fake;
mod following;
mod health;
mod holds;
mod idle;
mod limits;
mod listening;
mod lists;
mod locks;
mod losses;
mod notifications;
mod parking;
mod process_shares;
mod questions;
mod reads;
mod repeated_states;
mod replacing;
mod restarts;
mod sessions;
mod unwritten;

use fake::Fake;
use signalbox_engine::audit::IntentLog;
use signalbox_engine::back::Wish;
use signalbox_engine::{Chain, FactSink};
use signalbox_runtime::status::BackendStatus;
use signalbox_runtime::{
    AuditTrail, Backend, BackendSpec, FailureRules, Gateway, GatewayParts, Lifetime, QuestionTime, Settings,
};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How a gateway with one backend is set up.
struct Setup {
    wish: Wish,
    max_children: usize,
    timeout: Duration,
    settings: Settings,
    failing: FailureRules,
    lifetime: Lifetime,
    questions: QuestionTime,
    source: u64,
    catalog_file: Option<PathBuf>,
    facts: Vec<Arc<dyn FactSink>>,
    intents: Option<Arc<dyn IntentLog>>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            wish: Wish::Legacy,
            max_children: 8,
            timeout: Duration::from_secs(60),
            settings: Settings::default(),
            failing: FailureRules::default(),
            lifetime: Lifetime::default(),
            questions: QuestionTime::default(),
            source: 0,
            catalog_file: None,
            facts: Vec::new(),
            intents: None,
        }
    }
}

/// A running gateway in front of this backend.
fn start(fake: &Fake, setup: Setup) -> Arc<Gateway> {
    start_with(fake, setup, Chain::default())
}

/// The same with interceptors.
fn start_with(fake: &Fake, setup: Setup, chain: Chain) -> Arc<Gateway> {
    let spec = BackendSpec {
        timeout: setup.timeout,
        start_timeout: Duration::from_secs(60),
        max_children: setup.max_children,
        wish: setup.wish,
        strict: None,
        failing: setup.failing,
        lifetime: setup.lifetime,
        questions: setup.questions,
        source: setup.source,
        allows: Box::new(|_| true),
    };
    let gateway = Gateway::new(GatewayParts {
        chain,
        facts: setup.facts,
        catalog_file: setup.catalog_file,
        audit: AuditTrail::begin(setup.intents).unwrap(),
        ..GatewayParts::unguarded(setup.settings, vec![Backend::new("a", Arc::new(fake.clone()), spec)]).unwrap()
    })
    .unwrap();
    gateway.start();
    gateway
}

/// The state of the only backend.
fn status(gateway: &Gateway) -> BackendStatus {
    gateway.status().backends.remove(0)
}

/// Lets this much time pass.
async fn pass(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

/// A plain backend of the old era.
fn spec(lifetime: Lifetime, allows: impl Fn(&str) -> bool + Send + Sync + 'static) -> BackendSpec {
    BackendSpec {
        timeout: Duration::from_secs(60),
        start_timeout: Duration::from_secs(60),
        max_children: 8,
        wish: Wish::Legacy,
        strict: None,
        failing: FailureRules::default(),
        lifetime,
        questions: QuestionTime::default(),
        source: 0,
        allows: Box::new(allows),
    }
}
