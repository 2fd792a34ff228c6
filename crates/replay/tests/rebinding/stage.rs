//! The parts that all servers and scenes share.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};
use signalbox_replay::RecordedCall;
use signalbox_replay::recorded_call::RecordedMessage;
use signalbox_replay::run::{Connection, RunReport, RunSettings, Runner};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

pub const TITLES: [&str; 4] = ["book", "pen", "lamp", "desk"];
const NAMES: [&str; 16] = [
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi",
    "omicron", "pi",
];

/// A text that only chance makes twice.
pub fn token(prefix: &str, hidden: usize, run: u64) -> String {
    let mixed = (hidden as u64 + 1 + run * 1000).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    format!("{prefix}-{:08x}", mixed >> 32)
}

/// The ids that a server shows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Ids {
    /// A token that each order keeps.
    Token,
    /// A name that each order keeps.
    Name,
    /// A number that each order keeps.
    Serial,
    /// A token that is another one in each run.
    FreshToken,
    /// The place in the list, as a number.
    Place,
}

impl Ids {
    pub fn are_kept(self) -> bool {
        matches!(self, Self::Token | Self::Name | Self::Serial)
    }

    /// The id of the order with this hidden number at this place.
    pub fn of(self, hidden: usize, place: usize, run: u64) -> Value {
        match self {
            Self::Token => json!(token("ord", hidden, 0)),
            Self::Name => json!(format!("order-{}", NAMES[hidden])),
            Self::Serial => json!(hidden + 101),
            Self::FreshToken => json!(token("ord", hidden, run)),
            Self::Place => json!(place + 1),
        }
    }
}

pub fn any_ids() -> impl Strategy<Value = Ids> {
    prop_oneof![Just(Ids::Token), Just(Ids::Name), Just(Ids::Serial), Just(Ids::FreshToken), Just(Ids::Place)]
}

/// An id as a word of a text.
pub fn word(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), ToOwned::to_owned)
}

pub fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// An order by a seed, so that shrinking keeps the worlds small and readable.
pub fn shuffle<T>(items: &mut [T], seed: u64, hidden: impl Fn(&T) -> usize) {
    items.sort_by_key(|item| (hidden(item) as u64 + 1).wrapping_mul(seed | 1) >> 7);
}

/// A recorded call of a tool.
pub fn recorded(number: u64, tool: &str, arguments: &Value, result: &Value) -> Arc<RecordedCall> {
    let params = json!({"name": tool, "arguments": arguments});
    let request = json!({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params});
    let answer = json!({"jsonrpc": "2.0", "id": number, "result": result});
    Arc::new(RecordedCall {
        number,
        session: Some(1),
        seq: number * 10,
        last: number * 10 + 1,
        began: number,
        era: signalbox_wire::Era::Legacy,
        method: "tools/call".into(),
        subject: Some(tool.into()),
        request: Some(request.to_string().into()),
        key: None,
        steps: Vec::new(),
        answer: Some(RecordedMessage { at: number, bytes: Some(answer.to_string().into()), redacted: false }),
        afterwards: Vec::new(),
        redacted: false,
    })
}

/// A call that reached the server: its tool and its arguments.
pub type Frontier = (String, Value);

/// Answers each call of a tool, and keeps them.
async fn serve(
    answer: impl Fn(&str, &Value) -> Value,
    mut from: mpsc::Receiver<Bytes>,
    to: mpsc::Sender<Bytes>,
    reached: Arc<Mutex<Vec<Frontier>>>,
) {
    while let Some(bytes) = from.recv().await {
        let message: Value = serde_json::from_slice(&bytes).unwrap();
        let Some(id) = message.get("id") else { continue };
        let result = match message["params"]["name"].as_str() {
            Some(tool) => {
                let arguments = &message["params"]["arguments"];
                reached.lock().unwrap().push((tool.to_owned(), arguments.clone()));
                answer(tool, arguments)
            }
            None => json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}),
        };
        to.send(json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string().into()).await.unwrap();
    }
}

/// Replays calls against a server. Returns what reached it, and the report.
pub fn replay(
    calls: &[Arc<RecordedCall>],
    reads: &[&str],
    answer: impl Fn(&str, &Value) -> Value + Send + 'static,
) -> (Vec<Frontier>, RunReport) {
    let mut settings = RunSettings { allow_writes: true, ..RunSettings::default() };
    settings.read_only.extend(reads.iter().map(|&tool| tool.to_owned()));
    let reached = Arc::new(Mutex::new(Vec::new()));
    let (to_server, from_client) = mpsc::channel(8);
    let (to_client, from_server) = mpsc::channel(8);
    let server = serve(answer, from_client, to_client, Arc::clone(&reached));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let report = runtime.block_on(async {
        tokio::spawn(server);
        let mut connection = Connection::new(to_server, from_server);
        let mut runner = Runner::new(&settings);
        runner.session(calls, &mut connection).await.unwrap();
        runner.finish().0
    });
    let reached = reached.lock().unwrap().clone();
    (reached, report)
}

/// The numbers of the calls of a tool that were sent.
pub fn sent(report: &RunReport, tool: &str) -> Vec<u64> {
    let calls = report.calls.iter().filter(|call| call.subject.as_deref() == Some(tool));
    calls.filter(|call| matches!(call.verdict.word(), "same" | "different")).map(|call| call.number).collect()
}
