//! Answers that wait for the disk when the gateway ends.

use crate::client::{Client, answer};
use crate::fake::{Fake, Shape, Step, plain};
use crate::{Setup, pass, start};
use serde_json::json;
use signalbox_engine::{Fact, FactSink};
use signalbox_runtime::{Gateway, StreamReader};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A disk that takes so many milliseconds.
#[derive(Default)]
struct Disk(AtomicU64);

impl FactSink for Disk {
    fn wants_messages(&self) -> bool {
        true
    }

    fn is_durable(&self) -> bool {
        true
    }

    fn written(&self) -> Pin<Box<dyn Future<Output = bool> + Send>> {
        let takes = Duration::from_millis(self.0.load(Ordering::Relaxed));
        Box::pin(async move {
            tokio::time::sleep(takes).await;
            true
        })
    }

    fn fact(&self, _fact: &Fact) {}
}

/// A gateway whose call has reached its backend, which answers after 100 ms; from now on the disk takes this long.
async fn called(takes: u64) -> (Arc<Gateway>, Client, StreamReader) {
    let disk = Arc::new(Disk::default());
    let facts: Vec<Arc<dyn FactSink>> = vec![disk.clone()];
    let fake = Fake::new(Shape::Web, |heard| match &*heard.method {
        "tools/call" => [Step::Wait(100)].into_iter().chain(plain(heard)).collect(),
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup { facts, ..Setup::default() });
    let client = Client::open(&gateway, json!({})).await;
    client.tools().await;
    let stream = client.post("tools/call", json!({"name": "t1", "arguments": {}}));
    while fake.heard("tools/call").is_empty() {
        pass(1).await;
    }
    disk.0.store(takes, Ordering::Relaxed);
    (gateway, client, stream)
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_waits_for_the_disk_leaves_before_its_session_ends() {
    for drain in [2_000, 0] {
        let (gateway, client, stream) = called(700).await;
        pass(150).await;
        assert_eq!(client.session.in_flight(), 1, "the client still waits");
        gateway.shut_down(Duration::from_millis(drain)).await;
        let answer = answer(&stream).await.expect("the answer was lost");
        assert!(answer["result"]["content"].is_array(), "{answer}");
        assert_eq!(client.session.in_flight(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_the_disk_does_not_take_in_time_is_answered_with_an_error() {
    let (gateway, _client, stream) = called(3_600_000).await;
    pass(150).await;
    let began = tokio::time::Instant::now();
    gateway.shut_down(Duration::from_millis(500)).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let answer = answer(&stream).await.expect("the answer was lost");
    assert_eq!(answer["error"]["data"]["reason"], "not_recorded", "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_because_the_gateway_ends_is_answered_too() {
    let (gateway, _client, stream) = called(300).await;
    gateway.shut_down(Duration::ZERO).await;
    let answer = answer(&stream).await.expect("the answer was lost");
    assert!(answer["error"]["code"].is_i64(), "{answer}");
}
