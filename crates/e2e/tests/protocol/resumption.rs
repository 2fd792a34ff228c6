//! Streams that are lost and taken up again: by clients at the gateway, and by the gateway at backends.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test, in its helpers too")]

mod backend;
mod client;
mod dice;

use backend::{Backend, Row};
use client::{Reader, get};
use dice::Dice;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use signalbox_engine::fact::Point;
use signalbox_engine::record::{Content, MessageEntry, Query, TapeStore as _};
use signalbox_store::SqliteStore;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::scene::{call, eventually, remote, tool_names};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

/// Resumptions of each kind of stream.
const RESUMPTIONS: u64 = 250;
/// The numbers come to their end this many resumptions before, so that the end is lost as often as the rest.
const TAIL: u64 = 20;

struct Scene {
    gateway: GatewayProcess,
    backend: Arc<Backend>,
}

impl Scene {
    async fn new() -> Self {
        let (backend, address) = backend::start().await;
        let gateway = GatewayProcess::serve(&remote("counter", &address.to_string(), "")).await.unwrap();
        Self { gateway, backend }
    }

    async fn session(&self, version: &str) -> HttpClient {
        let client = HttpClient::new(self.gateway.address()).initialize(version, json!({})).await.unwrap();
        assert!(tool_names(&client).await.unwrap().contains(&"count".to_owned()));
        client
    }

    /// A general stream on which the backend counts.
    async fn counting(&self, client: &HttpClient) -> Reader {
        let reader = Reader::general(client).await.unwrap();
        begin_counting(client).await;
        reader
    }

    /// How many messages were dropped for this reason.
    async fn dropped(&self, reason: &str) -> u64 {
        let answer = HttpClient::new(self.gateway.address()).get("/metrics").await.unwrap();
        let page = String::from_utf8(answer.body.to_vec()).unwrap();
        let line = page.lines().find(|line| line.contains(&format!("reason=\"{reason}\"")));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
    }
}

/// Lets the backend begin to count in logs.
async fn begin_counting(client: &HttpClient) {
    let answer = client.request(1, "tools/call", json!({"name": "count_in_logs", "arguments": {}})).await.unwrap();
    assert!(answer["result"].is_object(), "{answer}");
}

fn count(id: u64) -> Value {
    let mut message = call(id, "count", &json!({}));
    message["params"]["_meta"] = json!({"progressToken": "p"});
    message
}

/// What a message says: a number, or how many there were.
enum Said {
    Number(u64),
    End(u64),
}

fn said(message: &Value) -> Said {
    if let Some(text) = message["result"]["content"][0]["text"].as_str() {
        return Said::End(text.parse().unwrap());
    }
    let params = &message["params"];
    if let Some(end) = params["data"]["end"].as_u64() {
        return Said::End(end);
    }
    let number = params["progress"].as_f64().map(|number| number as u64);
    Said::Number(number.or(params["data"].as_u64()).unwrap_or_else(|| panic!("{message}")))
}

/// Everything that a client hears of a row, which must be every number once and in order, then the end.
struct Heard<'a> {
    row: &'a Row,
    numbers: u64,
    end: Option<u64>,
}

impl Heard<'_> {
    fn take(&mut self, message: &Value) {
        assert_eq!(self.end, None, "nothing comes after the end, and the end comes once: {message}");
        match said(message) {
            Said::Number(number) => {
                assert_eq!(number, self.numbers + 1, "lost or repeated");
                self.numbers = number;
                self.row.seen.store(number, SeqCst);
            }
            Said::End(count) => {
                assert_eq!(count, self.numbers, "numbers are missing before the end");
                self.end = Some(count);
            }
        }
    }
}

/// Reads a row over so many connections, each lost after a few events, at times in the middle of one and at times while
/// the next is opened.
async fn lose_and_resume(reader: &mut Reader, row: &Row, times: u64, tail: u64, seed: u64) -> u64 {
    let mut dice = Dice::new(seed);
    let mut heard = Heard { row, numbers: 0, end: None };
    heard.take(&reader.next().await.unwrap().unwrap());
    for resumption in 0..times {
        for _ in 0..dice.up_to(6) {
            if heard.end.is_some() {
                break;
            }
            match reader.next().await.unwrap() {
                Some(message) => heard.take(&message),
                None => break,
            }
        }
        if resumption + tail == times {
            row.stop.store(true, SeqCst);
        }
        let old = reader.lose(dice.up_to(120));
        // Half of the time the old connection is still open when the client comes back, so that nobody has noticed.
        let kept = if dice.up_to(1) == 0 { old } else { None };
        reader.resume().await.unwrap();
        drop(kept);
    }
    while heard.end.is_none() {
        heard.take(&reader.next().await.unwrap().unwrap());
    }
    heard.numbers
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_resumptions_lose_no_event_and_repeat_none() {
    let scene = Scene::new().await;
    let client = scene.session("2025-06-18").await;
    let mut stream = Reader::post(&client, &count(7)).await.unwrap();
    let numbers = lose_and_resume(&mut stream, &scene.backend.call, RESUMPTIONS, TAIL, 1).await;
    assert!(numbers > RESUMPTIONS, "{numbers}");
    assert!(stream.next().await.unwrap().is_none(), "the stream ends with the answer");

    let mut stream = scene.counting(&client).await;
    let numbers = lose_and_resume(&mut stream, &scene.backend.general, RESUMPTIONS, TAIL, 2).await;
    assert!(numbers > RESUMPTIONS, "{numbers}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_loses_its_connections_too_is_resumed_and_nobody_notices() {
    let scene = Scene::new().await;
    let client = scene.session("2025-11-25").await;
    for row in [&scene.backend.call, &scene.backend.general] {
        row.breaks.store(true, SeqCst);
    }
    let mut stream = scene.counting(&client).await;
    lose_and_resume(&mut stream, &scene.backend.general, 60, 5, 3).await;
    let mut stream = Reader::post(&client, &count(7)).await.unwrap();
    lose_and_resume(&mut stream, &scene.backend.call, 60, 5, 4).await;
    for row in [&scene.backend.call, &scene.backend.general] {
        assert!(row.broken.load(SeqCst) > 5, "{:?}", row.broken);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stream_of_a_batch_is_resumed_like_any_other() {
    let scene = Scene::new().await;
    let client = scene.session("2025-03-26").await;
    let batch = json!([count(7), {"jsonrpc": "2.0", "id": 8, "method": "ping"}]);
    let mut stream = Reader::post(&client, &batch).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap()["id"], 8);
    lose_and_resume(&mut stream, &scene.backend.call, 20, 5, 5).await;
    assert!(stream.next().await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_resumed_is_said_so() {
    let scene = Scene::new().await;
    let client = scene.session("2025-06-18").await;
    let refused = async |id: &str| {
        let answer = get(&client, Some(id)).await.unwrap();
        let status = answer.status().as_u16();
        let fault: Value = serde_json::from_slice(&answer.into_body().collect().await.unwrap().to_bytes()).unwrap();
        (status, fault["error"]["message"].as_str().unwrap().to_owned())
    };
    // A stream of a call that is gone, or never was, has no stream to go on with.
    assert_eq!(
        refused("77-3").await,
        (410, "the stream that Last-Event-ID names is no longer kept, and its answer is lost".to_owned())
    );
    assert_eq!(refused("hello").await, (410, "Last-Event-ID is not an event id of this session".to_owned()));
    // A general one begins anew.
    let mut fresh = Reader::general(&client).await.unwrap();
    fresh.last_id = Some("g77-3".to_owned());
    fresh.resume().await.unwrap();

    // An id of one session means nothing in another.
    let mut stream = Reader::post(&client, &count(7)).await.unwrap();
    stream.next().await.unwrap().unwrap();
    let other = scene.session("2025-06-18").await;
    let answer = get(&other, stream.last_id.as_deref()).await.unwrap();
    assert_eq!(answer.status(), 410);
    assert!(scene.dropped("replay_gone").await >= 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_was_away_for_too_much_is_told_and_begins_anew() {
    let scene = Scene::new().await;
    let client = scene.session("2025-06-18").await;
    let mut stream = scene.counting(&client).await;
    stream.next().await.unwrap().unwrap();
    drop(stream.lose(0));
    scene.backend.general.window.store(5_000, SeqCst);
    let overflown = async || (scene.dropped("slow_client").await > 0).then_some(());
    eventually("something is dropped", overflown).await.unwrap();
    let answer = get(&client, stream.last_id.as_deref()).await.unwrap();
    assert_eq!(answer.status(), 410);
    let text = String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap();
    assert!(text.contains("some were lost"), "{text}");
    assert_eq!(scene.dropped("replay_gap").await, 1);
    // The same id again begins anew, so that a client that does nothing but try again is not shut out.
    stream.resume().await.unwrap();
    scene.backend.general.window.store(50_000, SeqCst);
    let Said::Number(number) = said(&stream.next().await.unwrap().unwrap()) else { panic!("a number") };
    assert!(number > 256, "{number}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_session_that_is_forgotten_while_nobody_calls_is_opened_again() {
    let scene = Scene::new().await;
    let client = scene.session("2025-06-18").await;
    let mut stream = scene.counting(&client).await;
    let mut number = async || match said(&stream.next().await.unwrap().unwrap()) {
        Said::Number(number) => number,
        Said::End(_) => panic!("it does not end"),
    };
    while number().await < scene.backend.general.window.load(SeqCst) {}
    let subscribed = client.request(2, "resources/subscribe", json!({"uri": "x://y"})).await.unwrap();
    assert!(subscribed["result"].is_object(), "{subscribed}");
    let before = scene.backend.heard("initialize").len();
    let lists = scene.backend.heard("tools/list").len();
    scene.backend.forget();
    // The gateway's own session and the client's, each by its general stream: nothing is called meanwhile.
    let again = async || (scene.backend.heard("initialize").len() >= before + 2).then_some(());
    eventually("both sessions are opened again", again).await.unwrap();
    let followed = async || (scene.backend.heard("resources/subscribe").len() == 2).then_some(());
    eventually("the resource is followed again", followed).await.unwrap();
    let listed = async || (scene.backend.heard("tools/list").len() > lists).then_some(());
    eventually("the lists are read again", listed).await.unwrap();
    // What the new session says arrives on the stream that the client has held all the time.
    begin_counting(&client).await;
    assert_eq!(number().await, 1);
}

/// What is sent once more is on the tape, and names its first sending.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_again_is_on_the_tape_with_its_first_sending() {
    let scene = Scene::new().await;
    let client = scene.session("2025-06-18").await;
    let mut stream = Reader::post(&client, &count(7)).await.unwrap();
    lose_and_resume(&mut stream, &scene.backend.call, 20, 5, 6).await;
    let file = scene.gateway.data_dir().join("tapes.db");
    let again = eventually("messages that were sent again", async || {
        let sent = sent_to_clients(&file);
        let again: Vec<_> = sent.iter().filter_map(|(number, again)| Some((*number, (*again)?))).collect();
        let first = |of: &u64| sent.iter().any(|(number, again)| number == of && again.is_none());
        let known = again.iter().all(|(number, of)| of < number && first(of));
        (!again.is_empty() && known).then_some(again.len())
    });
    assert!(again.await.unwrap() > 0);
}

/// Ids of a backend's events are on the tape, beside the messages that they hold.
/// Proves S-71.
#[tokio::test(flavor = "multi_thread")]
async fn event_ids_of_backends_are_on_the_tape() {
    let scene = Scene::new().await;
    let client = scene.session("2025-06-18").await;
    let mut stream = Reader::post(&client, &count(7)).await.unwrap();
    lose_and_resume(&mut stream, &scene.backend.call, 20, 5, 6).await;
    let file = scene.gateway.data_dir().join("tapes.db");
    let ids = eventually("ids of events", async || {
        let ids: Vec<_> = messages(&file).into_iter().filter(|message| message.point == Point::BackendIn).collect();
        let ids: Vec<_> = ids.iter().filter_map(|message| message.carried.as_ref()?.event_id.clone()).collect();
        (ids.len() > 5).then_some(ids)
    });
    let mut ids = ids.await.unwrap();
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all, "each event has an id of its own: {ids:?}");
}

/// The numbers of the messages to clients on the newest tape of this file, and of what each repeats.
fn sent_to_clients(file: &Path) -> Vec<(u64, Option<u64>)> {
    let sent = messages(file).into_iter().filter(|message| message.point == Point::ClientOut);
    sent.map(|message| (message.number, message.again.map(u64::from))).collect()
}

/// The messages on the newest tape of this file.
fn messages(file: &Path) -> Vec<MessageEntry> {
    let store = SqliteStore::open(file).unwrap();
    // What the recorder has not written yet is looked for again.
    let Ok(tape) = store.tape("last").map(|tape| tape.id) else { return Vec::new() };
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page =
            store.find(&Query { tape: Some(tape.clone()), after, limit: Some(500), ..Query::default() }).unwrap();
        for hit in page.hits {
            after = Some(hit.entry.seq);
            if let Content::Message(message) = hit.entry.content {
                found.push(message);
            }
        }
        if !page.more {
            return found;
        }
    }
}
