//! A rule that holds the result of a call holds it also where the call is made as a task, in both eras, at
//! backends of either, whichever name the client uses, and when the call is no longer remembered.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};
use signalbox_engine::bridge::CallProgress;
use signalbox_engine::catalog::{Item, ListKind, View, ViewKey};
use signalbox_engine::front::{Context, FrontMachine, Mode};
use signalbox_engine::keys::{Numbers, StreamId};
use signalbox_engine::operations::Operations;
use signalbox_engine::read_cache::Generation;
use signalbox_engine::{
    AuthorizedCall, Caller, CapSet, Catalog, Chain, Command, Event, ExchangeId, Fact, ServerProfile, SessionKey,
    Snapshot, TaskCalls,
};
use signalbox_rules::{RuleInterceptor, RuleSet};
use signalbox_wire::{Edits, Envelope, Era, Revision, Span};
use std::sync::Arc;
use std::time::{Duration, Instant};

const BACKENDS: [&str; 2] = ["a", "b"];
const TOOLS: [&str; 2] = ["x", "y"];

fn catalog(revision: Revision) -> Snapshot {
    let mut catalog = Catalog::new(BACKENDS.map(Arc::from));
    for backend in BACKENDS {
        let profile = ServerProfile {
            revision,
            capabilities: Bytes::from_static(
                br#"{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
            ),
            info: Bytes::from_static(br#"{"name":"t","version":"1"}"#),
            instructions: None,
        };
        let mut view = View::empty(Arc::new(profile));
        let item = |name: &str| {
            let raw =
                json!({ "name": name, "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"} });
            Item::read(ListKind::Tools, raw.to_string().into()).unwrap()
        };
        view.set(ListKind::Tools, TOOLS.map(item).into());
        for era in [Era::Legacy, Era::Modern] {
            catalog.set_view(backend, ViewKey::shared(era, CapSet::bare()), view.clone());
        }
    }
    catalog.snapshot()
}

/// How a result comes to the client.
#[derive(Copy, Clone, PartialEq, Debug)]
struct Way {
    client: Era,
    backend: Era,
    task: bool,
    /// Nobody remembers the call any more when its result comes.
    forgotten: bool,
}

struct Scene<'a> {
    snapshot: &'a Snapshot,
    chain: &'a Chain,
    way: Way,
    calls: TaskCalls,
    numbers: Numbers,
    operations: Operations,
    machine: FrontMachine,
}

impl Scene<'_> {
    fn handle(&mut self, event: Event) -> Vec<Command> {
        let (now, mut out) = (Instant::now(), Vec::new());
        let ctx = Context {
            now,
            unix_ms: &|| 0,
            task_home: &|_| None,
            catalog: self.snapshot,
            caller: None,
            user: &signalbox_engine::Principal::anonymous().into(),
            refusal: None,
            operations: &self.operations,
            task_calls: &self.calls,
            numbers: &self.numbers,
            chain: self.chain,
            session: None,
            session_started: now,
            face: None,
            server_info: "{}",
            instance: "1",
            instructions: "",
            max_in_flight: 4,
            round_timeout: Duration::from_secs(300),
            changes: &|_, _| Generation::default(),
            dialect: None,
            error_detail: signalbox_engine::fault::ErrorDetail::Full,
            message_facts: false,
            trace: None,
            clock: &Instant::now,
            sight: None,
            lists_ready: &|_| true,
            sign_ins: &Vec::new,
        };
        self.machine.handle(event, &ctx, &mut out);
        for command in &out {
            if let Command::Fact(Fact::Finished(finished)) = command {
                self.chain.finished(finished);
            }
        }
        out
    }

    fn says(&mut self, message: Value) -> Vec<Command> {
        let message = Envelope::parse(message.to_string().into()).unwrap();
        self.handle(Event::Received { stream: StreamId(1), message })
    }

    /// A request of the client, and the call that leaves because of it.
    fn asks(&mut self, id: u32, method: &str, mut params: Value) -> Option<(ExchangeId, AuthorizedCall)> {
        if self.way.client == Era::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}
            });
        }
        let out = self.says(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        out.into_iter().find_map(|command| match command {
            Command::Forward { exchange, call, .. } => Some((exchange, call)),
            _ => None,
        })
    }

    /// What the client gets once the backend has answered with this result.
    fn answered(&mut self, exchange: ExchangeId, result: &Value, edits: impl Fn(&Envelope) -> Edits) -> String {
        let message = json!({"jsonrpc": "2.0", "id": 7, "result": result}).to_string();
        let message = Envelope::parse(message.into()).unwrap();
        let edits = edits(&message);
        sent(&self.handle(Event::Answered { exchange, message, edits, status: None }))
    }

    /// The call becomes a task.
    fn made(&mut self, exchange: ExchangeId, call: AuthorizedCall) -> String {
        let modern =
            json!({"resultType": "task", "taskId": "t", "status": "working", "createdAt": "c", "ttlMs": 60000});
        let legacy = json!({"task": {"taskId": "t", "status": "working", "createdAt": "c", "ttl": 60000}});
        match (self.way.client, self.way.backend) {
            (Era::Legacy, Era::Modern) => {
                let message = json!({"jsonrpc": "2.0", "id": 7, "result": modern}).to_string();
                let message = Envelope::parse(message.into()).unwrap();
                let backend = Revision::LATEST;
                sent(&self.handle(Event::Unfinished { exchange, message, reach: CallProgress::Task, call, backend }))
            }
            (Era::Legacy, Era::Legacy) => self.answered(exchange, &legacy, |_| Edits::new()),
            (Era::Modern, Era::Modern) => self.answered(exchange, &modern, |_| Edits::new()),
            // As the bridge tells it: the backend's words, and what has to be written differently.
            (Era::Modern, Era::Legacy) => self.answered(exchange, &legacy, |message| {
                let mut edits = Edits::new();
                let whole: Span = message.result_span().unwrap();
                edits.replace(whole, modern.to_string());
                edits
            }),
        }
    }
}

fn sent(out: &[Command]) -> String {
    let texts = out.iter().filter_map(|command| match command {
        Command::Send(message) => Some(String::from_utf8_lossy(message.bytes()).into_owned()),
        _ => None,
    });
    texts.collect()
}

/// What the client gets in the end of a call of this tool, whose backend answers with this text.
fn gets(rule: &str, then: &str, way: Way, (backend, tool): (&str, &str), text: &str) -> String {
    let file = format!("[[rules]]\nid = \"r\"\nwhen = {{ {rule} }}\nthen = {then}\n");
    let chain = Chain::new(vec![Arc::new(RuleInterceptor::new(RuleSet::parse("rules.toml", &file).unwrap(), 1))]);
    let revision = if way.backend == Era::Legacy { Revision::LATEST_LEGACY } else { Revision::LATEST };
    let snapshot = catalog(revision);
    let machine = |session| FrontMachine::new(SessionKey(session), Caller::anonymous("http"), Mode::Pipe);
    let (calls, numbers, operations) = Default::default();
    let mut scene = Scene { snapshot: &snapshot, chain: &chain, way, calls, numbers, operations, machine: machine(1) };
    if way.client == Era::Legacy {
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
        scene.says(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}));
        scene.says(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }
    let mut params = json!({"name": format!("{backend}__{tool}"), "arguments": {"path": "p"}});
    if way.task && way.client == Era::Legacy {
        params["task"] = json!({"ttl": 60000});
    }
    let (exchange, call) = scene.asks(1, "tools/call", params).unwrap();
    let mut result = json!({"content": [{"type": "text", "text": text}]});
    if way.backend == Era::Modern || way.client == Era::Modern {
        result["resultType"] = json!("complete");
    }
    if !way.task {
        return scene.answered(exchange, &result, |_| Edits::new());
    }
    let told = scene.made(exchange, call);
    assert!(told.contains("\"t\""), "{way:?}: {told}");
    if way.forgotten {
        scene.calls = TaskCalls::default();
    }
    if way.client == Era::Modern {
        // The next request is a session of its own.
        scene.machine = machine(2);
    }
    let ask = if way.client == Era::Legacy { "tasks/result" } else { "tasks/get" };
    let task = if way.client == Era::Modern { format!("{backend}+t") } else { "t".to_owned() };
    let (exchange, _) = scene.asks(2, ask, json!({"taskId": task})).unwrap();
    let done = json!({
        "resultType": "complete", "taskId": "t", "status": "completed", "createdAt": "c", "ttlMs": 60000, "result": result
    });
    let direct = way.client == Era::Legacy && way.backend == Era::Legacy;
    let answer = if direct { &result } else { &done };
    scene.answered(exchange, answer, |_| Edits::new())
}

fn rules(backend: &str, tool: &str) -> Vec<String> {
    let result = r#"result = { "/content/0/text" = { contains = "secret" } }"#;
    vec![
        result.to_owned(),
        format!("method = \"tools/call\", {result}"),
        format!("tool = \"{tool}\", {result}"),
        format!("tool = \"{backend}__{tool}\", {result}"),
        format!("backend = \"{backend}\", subject = \"{tool}\", {result}"),
        format!("not = {{ tool = \"another\" }}, {result}"),
        format!("tool = \"{tool}\", params = {{ \"/arguments/path\" = \"p\" }}, {result}"),
        format!("params = {{ \"/arguments/path\" = {{ starts_with = \"p\" }} }}, {result}"),
    ]
}

fn era() -> impl Strategy<Value = Era> {
    prop_oneof![Just(Era::Legacy), Just(Era::Modern)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_rule_on_a_result_holds_every_way_by_which_it_comes(
        client in era(), backend in era(), task: bool, forgotten: bool, of in 0usize..2, tool in 0usize..2,
    ) {
        let way = Way { client, backend, task, forgotten };
        let called = (BACKENDS[of], TOOLS[tool]);
        for rule in rules(called.0, called.1) {
            for then in [r#"{ block = "no" }"#, r#"{ set = { "/result/content/0/text" = "***" } }"#] {
                let got = gets(&rule, then, way, called, "a secret");
                prop_assert!(!got.is_empty() && !got.contains("secret"), "{:?} passes {}: {}", way, rule, got);
                let got = gets(&rule, then, way, called, "fine");
                prop_assert!(got.contains("fine"), "{:?} is held by {}: {}", way, rule, got);
            }
        }
        if !forgotten {
            for (backend, tool) in [(called.0, TOOLS[1 - tool]), (BACKENDS[1 - of], called.1)] {
                let rule = format!("tool = \"{backend}__{tool}\", result = {{ \"/content/0/text\" = {{ contains = \"secret\" }} }}");
                let got = gets(&rule, r#"{ block = "no" }"#, way, called, "a secret");
                prop_assert!(got.contains("secret"), "{:?} is held by {}: {}", way, rule, got);
            }
        }
    }
}

/// A changed result stands where the one of the backend stood.
#[test]
fn a_result_that_a_rule_changes_goes_back_into_its_task() {
    let way = |client, backend| Way { client, backend, task: true, forgotten: false };
    let when = r#"tool = "x", result = { "/content/0/text" = { contains = "secret" } }"#;
    let got =
        gets(when, r#"{ mock = { result = { content = [] } } }"#, way(Era::Modern, Era::Legacy), ("a", "x"), "secret");
    let got: Value = serde_json::from_str(&got).unwrap();
    assert_eq!(got["result"]["status"], "completed");
    assert_eq!(got["result"]["result"], json!({"content": [], "resultType": "complete"}));
    let got =
        gets(when, r#"{ mock = { result = { content = [] } } }"#, way(Era::Legacy, Era::Legacy), ("a", "x"), "secret");
    let got: Value = serde_json::from_str(&got).unwrap();
    assert_eq!(got["result"]["content"], json!([]));
    assert_eq!(got["result"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], "t");
}

#[test]
fn a_rule_that_only_tells_lets_the_result_of_a_forgotten_call_pass() {
    let way = Way { client: Era::Modern, backend: Era::Modern, task: true, forgotten: true };
    let got = gets(r#"phase = "response", tool = "x""#, r#"{ count = "n" }"#, way, ("a", "x"), "secret");
    assert!(got.contains("secret"), "{got}");
}

/// A question that a task shows in what `tasks/get` answers is judged like any other.
#[test]
fn a_rule_on_questions_holds_those_of_tasks() {
    let file = "[[rules]]\nid = \"r\"\nwhen = { phase = \"question\" }\nthen = { block = \"no\" }\n";
    let chain = Chain::new(vec![Arc::new(RuleInterceptor::new(RuleSet::parse("rules.toml", file).unwrap(), 1))]);
    let snapshot = catalog(Revision::LATEST);
    let way = Way { client: Era::Modern, backend: Era::Modern, task: true, forgotten: false };
    let machine = FrontMachine::new(SessionKey(1), Caller::anonymous("http"), Mode::Pipe);
    let (calls, numbers, operations) = Default::default();
    let mut scene = Scene { snapshot: &snapshot, chain: &chain, way, calls, numbers, operations, machine };
    let (exchange, _) = scene.asks(1, "tasks/get", json!({"taskId": "a+t"})).unwrap();
    let asks = json!({
        "resultType": "complete", "taskId": "t", "status": "input_required", "createdAt": "c", "ttlMs": null,
        "inputRequests": {"k": {"method": "elicitation/create", "params": {"message": "your password?"}}}
    });
    let got = scene.answered(exchange, &asks, |_| Edits::new());
    assert!(got.contains("\"error\"") && !got.contains("password"), "{got}");
}
