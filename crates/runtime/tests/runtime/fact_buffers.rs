//! What happens on a worker is told when the worker is idle, or soon after, and in its order all the same.

use crate::client::{Client, answer};
use crate::fake::{Fake, Shape, plain};
use crate::{Setup, pass, start};
use serde_json::json;
use signalbox_engine::{ExchangeId, Fact, FactSink, SessionKey};
use signalbox_runtime::Gateway;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// Writes down what it is told.
#[derive(Default)]
struct Notes(Mutex<Vec<(SessionKey, Option<ExchangeId>, String)>>);

impl Notes {
    /// The words of each exchange, in order.
    fn exchanges(&self) -> HashMap<(SessionKey, ExchangeId), Vec<String>> {
        let mut all: HashMap<_, Vec<String>> = HashMap::new();
        for (session, exchange, word) in &*self.0.lock().unwrap() {
            if let Some(exchange) = exchange {
                all.entry((*session, *exchange)).or_default().push(word.clone());
            }
        }
        all
    }

    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl FactSink for Notes {
    fn wants_messages(&self) -> bool {
        true
    }

    fn fact(&self, fact: &Fact) {
        let note = match fact {
            Fact::Message(one) => (one.session, one.exchange, format!("{:?}", one.point)),
            Fact::Finished(finished) => (finished.session, Some(finished.exchange), finished.method.to_string()),
            Fact::Session(fact) => (fact.session, None, "begins".to_owned()),
            Fact::SessionEnded { session, .. } => (*session, None, "ended".to_owned()),
            Fact::Decision(decision) => (decision.session, decision.exchange, "decided".to_owned()),
            Fact::Lost(lost) => (lost.session, lost.exchange, "lost".to_owned()),
            Fact::Refused(refused) => (refused.session, None, "refused".to_owned()),
        };
        self.0.lock().unwrap().push(note);
    }
}

const WHOLE: [&str; 6] = ["ClientIn", "decided", "BackendOut", "BackendIn", "ClientOut", "tools/call"];

#[tokio::test(start_paused = true)]
async fn a_worker_tells_when_it_is_idle_and_has_something_to_tell_or_when_somebody_asks() {
    let notes = Arc::new(Notes::default());
    let facts: Vec<Arc<dyn FactSink>> = vec![notes.clone()];
    let gateway = start(&Fake::new(Shape::Web, plain), Setup { facts, ..Setup::default() });
    let client = Client::open(&gateway, json!({})).await;
    assert!(client.tools().await.contains(&"t1".to_owned()));
    client.call("t1").await;
    let told = notes.len();
    assert!(told > 0, "a thread that is never said to be idle tells at once");

    gateway.idle();
    client.call("t1").await;
    assert_eq!(notes.len(), told, "nothing is told while there is work");
    gateway.idle();
    assert_eq!(notes.len(), told, "nor is a little");
    pass(150).await;
    assert_eq!(notes.len(), told + WHOLE.len(), "but soon it is");
    for _ in 0..7 {
        client.call("t1").await;
    }
    assert_eq!(notes.len(), told + WHOLE.len());
    gateway.idle();
    assert_eq!(notes.len(), told + 8 * WHOLE.len(), "several calls are told at once");
    let told = told + 7 * WHOLE.len();
    client.call("t1").await;
    gateway.settle();
    assert_eq!(notes.len(), told + 2 * WHOLE.len(), "who asks hears all");

    let large = json!({"name": "t1", "arguments": {"text": "x".repeat(64 << 10)}});
    client.ask("tools/call", large).await;
    assert!(notes.len() >= told + 2 * WHOLE.len() + 2, "a large message does not wait");
    for _ in 0..100 {
        client.call("t1").await;
    }
    gateway.settle();
    let exchanges = notes.exchanges();
    let calls = exchanges.values().filter(|words| words.contains(&"tools/call".to_owned()));
    assert_eq!(calls.clone().count(), 111);
    assert!(calls.clone().all(|words| words.as_slice() == WHOLE), "{exchanges:?}");
}

/// A session that goes on on another thread has what it noted before told first.
/// Proves S-28.
#[tokio::test(start_paused = true)]
async fn a_session_that_changes_its_thread_is_told_of_in_order() {
    let notes = Arc::new(Notes::default());
    let facts: Vec<Arc<dyn FactSink>> = vec![notes.clone()];
    let gateway = start(&Fake::new(Shape::Web, plain), Setup { facts, ..Setup::default() });
    let client = Arc::new(Client::open(&gateway, json!({})).await);
    client.call("t1").await;
    gateway.idle();
    gateway.settle();
    let told = notes.len();
    let first = client.post("tools/call", json!({"name": "t1", "arguments": {}}));
    assert_eq!(notes.len(), told);
    let (here, there, second) = (tokio::runtime::Handle::current(), Arc::clone(&gateway), Arc::clone(&client));
    let other = std::thread::spawn(move || {
        let _here = here.enter();
        there.idle();
        second.post("tools/call", json!({"name": "t1", "arguments": {}}))
    });
    let second = other.join().unwrap();
    let words =
        || -> Vec<String> { notes.0.lock().unwrap().iter().skip(told).map(|(.., word)| word.clone()).collect() };
    assert_eq!(words(), WHOLE[..3], "the first call was told before the second was noted");
    gateway.settle();
    assert_eq!(words(), [&WHOLE[..3], &WHOLE[..3]].concat());
    let (first, second) = (answer(&first).await, answer(&second).await);
    assert!(first.is_some() && second.is_some());
}

async fn call_from_everywhere(gateway: &Arc<Gateway>) {
    let mut tasks = Vec::new();
    for _ in 0..4 {
        let client = Arc::new(Client::open(gateway, json!({})).await);
        for _ in 0..4 {
            let client = Arc::clone(&client);
            tasks.push(tokio::spawn(async move {
                for _ in 0..50 {
                    client.call("t1").await;
                }
            }));
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
}

#[test]
fn what_happens_in_an_exchange_is_told_in_order_from_whichever_threads() {
    let notes = Arc::new(Notes::default());
    let working_for: Arc<OnceLock<Weak<Gateway>>> = Arc::default();
    let hired = Arc::clone(&working_for);
    let idle = move || {
        if let Some(gateway) = hired.get().and_then(Weak::upgrade) {
            gateway.idle();
        }
    };
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(4).enable_all().on_thread_park(idle).build().unwrap();
    let facts: Vec<Arc<dyn FactSink>> = vec![notes.clone()];
    let gateway = runtime.block_on(async {
        let gateway = start(&Fake::new(Shape::Web, plain), Setup { facts, ..Setup::default() });
        working_for.set(Arc::downgrade(&gateway)).unwrap();
        let calling = Arc::clone(&gateway);
        tokio::spawn(async move { call_from_everywhere(&calling).await }).await.unwrap();
        gateway
    });
    // The threads end what they had begun.
    drop(runtime);
    gateway.settle();
    let exchanges = notes.exchanges();
    let calls = exchanges.values().filter(|words| words.contains(&"tools/call".to_owned()));
    assert_eq!(calls.clone().count(), 800);
    let odd: Vec<_> = calls.filter(|words| words.as_slice() != WHOLE).collect();
    assert!(odd.is_empty(), "{odd:?}");
}
