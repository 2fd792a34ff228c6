//! A-2: what is taken out of the answers of a tool is taken out of all that its tasks say, whichever request asks for
//! it.

use super::*;
use crate::govern_parts::GovernParts;
use serde_json::{Value, json};
use signalbox_config::Overrides;
use signalbox_engine::bridge::CallProgress;
use signalbox_engine::catalog::{Item, View, ViewKey};
use signalbox_engine::front::{Context, FrontMachine, Mode};
use signalbox_engine::keys::{Numbers, StreamId};
use signalbox_engine::operations::Operations;
use signalbox_engine::read_cache::Generation;
use signalbox_engine::standing::{Standing, TrustLevel};
use signalbox_engine::{
    AuthorizedCall, BackendUser, CapSet, Catalog, Chain, Command, Event, ExchangeId, Identity, Principal, Proof,
    ServerProfile, SessionKey, Snapshot, TaskCalls,
};
use signalbox_wire::{Edits, Era, Revision};
use std::path::Path;
use std::time::{Duration, Instant};

const CONSTRAINTS: &str = "[constraints.'a/x']\nredact = ['[0-9]{4}-[0-9]{4}']\nredact_members = ['iban']\n";
const SECRETS: [&str; 3] = ["1234-5678", "DE02", "DE03"];

const BY_TRUST: &str = "[mcp.protocol.security]\nrequire_authentication = true\ntool_error_detail = 'by_trust'\n";

fn chain(configured: &str) -> Chain {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("[gateway]\ndata_dir = '{}'\n{configured}", folder.path().display());
    let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
    let config = Config::parse(Path::new("signalbox.toml"), &text, &env, &Overrides::default()).unwrap().config;
    let [redaction, ..] = GovernParts::new(&config, None).unwrap().interceptors();
    Chain::new(vec![redaction])
}

fn catalog(backends: &[&str], revision: Revision) -> Snapshot {
    let mut catalog = Catalog::new(backends.iter().map(|name| Arc::from(*name)));
    for backend in backends {
        let capabilities = br#"{"tools":{},"tasks":{"list":{},"requests":{"tools":{"call":{}}}},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
        let profile = ServerProfile {
            revision,
            capabilities: (&capabilities[..]).into(),
            info: (&br#"{"name":"t","version":"1"}"#[..]).into(),
            instructions: None,
        };
        let mut view = View::empty(Arc::new(profile));
        let item = |name: &str| {
            let raw =
                json!({ "name": name, "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"} });
            Item::read(ListKind::Tools, raw.to_string().into()).unwrap()
        };
        view.set(ListKind::Tools, ["x", "y"].map(item).into());
        for era in [Era::Legacy, Era::Modern] {
            catalog.set_view(backend, ViewKey::shared(era, CapSet::bare()), view.clone());
        }
    }
    catalog.snapshot()
}

#[derive(Copy, Clone, PartialEq, Debug)]
struct Way {
    client: Era,
    backend: Era,
    /// Another backend runs tasks too, so that the gateway itself lists them.
    several: bool,
    /// The call is no longer remembered.
    forgotten: bool,
}

struct Scene {
    snapshot: Snapshot,
    chain: Chain,
    way: Way,
    calls: TaskCalls,
    numbers: Numbers,
    operations: Operations,
    caller: Caller,
    machine: FrontMachine,
}

fn machine(session: u64, caller: &Caller) -> FrontMachine {
    FrontMachine::new(SessionKey(session), caller.clone(), Mode::Pipe)
}

impl Scene {
    fn new(way: Way) -> Self {
        Self::of(way, CONSTRAINTS, Caller::anonymous("http"))
    }

    fn of(way: Way, configured: &str, caller: Caller) -> Self {
        let revision = if way.backend == Era::Legacy { Revision::LATEST_LEGACY } else { Revision::LATEST };
        let backends: &[&str] = if way.several { &["a", "b"] } else { &["a"] };
        let (snapshot, machine) = (catalog(backends, revision), machine(1, &caller));
        let (calls, numbers, operations) = Default::default();
        let mut scene = Self { snapshot, chain: chain(configured), way, calls, numbers, operations, caller, machine };
        if way.client == Era::Legacy {
            let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
            scene.says(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}));
            scene.says(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
        scene
    }

    fn handle(&mut self, event: Event) -> Vec<Command> {
        let (now, mut out) = (Instant::now(), Vec::new());
        let user: BackendUser = self.caller.principal().clone().into();
        let ctx = Context {
            now,
            unix_ms: &|| 0,
            task_home: &|_| None,
            catalog: &self.snapshot,
            caller: None,
            user: &user,
            refusal: None,
            operations: &self.operations,
            task_calls: &self.calls,
            numbers: &self.numbers,
            chain: &self.chain,
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
            error_detail: ErrorDetail::Full,
            message_facts: false,
            trace: None,
            clock: &Instant::now,
            sight: None,
            lists_ready: &|_| true,
            sign_ins: &Vec::new,
        };
        self.machine.handle(event, &ctx, &mut out);
        out
    }

    fn says(&mut self, message: Value) -> Vec<Command> {
        let message = Envelope::parse(message.to_string().into()).unwrap();
        self.handle(Event::Received { stream: StreamId(1), message })
    }

    /// A request of the client, what it is told at once, and the call that leaves because of it.
    fn asks(&mut self, method: &str, mut params: Value) -> (String, Option<(ExchangeId, AuthorizedCall)>) {
        if self.way.client == Era::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {
                    "elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}
                }
            });
        }
        let out = self.says(json!({"jsonrpc": "2.0", "id": 9, "method": method, "params": params}));
        let told = sent(&out);
        let call = out.into_iter().find_map(|command| match command {
            Command::Forward { exchange, call, .. } => Some((exchange, call)),
            _ => None,
        });
        (told, call)
    }

    fn answered(&mut self, exchange: ExchangeId, result: &Value, edited: Option<&Value>) -> String {
        let message = json!({"jsonrpc": "2.0", "id": 7, "result": result}).to_string();
        let message = Envelope::parse(message.into()).unwrap();
        let mut edits = Edits::new();
        if let Some(edited) = edited {
            edits.replace(message.result_span().unwrap(), edited.to_string());
        }
        sent(&self.handle(Event::Answered { exchange, message, edits, status: None }))
    }

    /// A call of this tool becomes the task `t`. What the client is told of it.
    fn makes_task(&mut self, tool: &str) -> String {
        let mut params = json!({"name": format!("a__{tool}"), "arguments": {}});
        if !self.way.several {
            params["name"] = json!(tool);
        }
        if self.way.client == Era::Legacy {
            params["task"] = json!({"ttl": 60000});
        }
        let (exchange, call) = self.asks("tools/call", params).1.unwrap();
        let (legacy, modern) = (json!({ "task": state("working", Era::Legacy) }), state("working", Era::Modern));
        let mut modern = modern;
        modern["resultType"] = json!("task");
        let told = match (self.way.client, self.way.backend) {
            (Era::Legacy, Era::Modern) => {
                let message = json!({"jsonrpc": "2.0", "id": 7, "result": modern}).to_string();
                let message = Envelope::parse(message.into()).unwrap();
                let backend = Revision::LATEST;
                sent(&self.handle(Event::Unfinished { exchange, message, reach: CallProgress::Task, call, backend }))
            }
            (Era::Legacy, Era::Legacy) => self.answered(exchange, &legacy, None),
            (Era::Modern, Era::Modern) => self.answered(exchange, &modern, None),
            (Era::Modern, Era::Legacy) => self.answered(exchange, &legacy, Some(&modern)),
        };
        if self.way.forgotten {
            self.calls = TaskCalls::default();
        }
        if self.way.client == Era::Modern {
            self.machine = machine(2, &self.caller);
        }
        told
    }

    /// Returns the answer to this request about the task.
    fn gets(&mut self, method: &str, status: &str) -> String {
        let task = if self.way.client == Era::Modern { "a+t" } else { "t" };
        let params = match method {
            "tasks/list" => json!({}),
            "tasks/update" => json!({"taskId": task, "inputResponses": {}}),
            _ => json!({ "taskId": task }),
        };
        let (told, mut call) = self.asks(method, params);
        let mut all = told;
        // The gateway may ask the backend more than once.
        while let Some((exchange, sent)) = call.take() {
            let era = if self.way.client == Era::Modern { Era::Modern } else { self.way.backend };
            let answer = match (method, &*sent.method) {
                ("tasks/list", _) => json!({"tasks": [state(status, era)]}),
                ("tasks/result", "tasks/result") => result(status == "failed"),
                _ => state(status, era),
            };
            let message = json!({"jsonrpc": "2.0", "id": 7, "result": answer}).to_string();
            let message = Envelope::parse(message.into()).unwrap();
            let out = self.handle(Event::Answered { exchange, message, edits: Edits::new(), status: None });
            all.push_str(&self::sent(&out));
            call = out.into_iter().find_map(|command| match command {
                Command::Forward { exchange, call, .. } => Some((exchange, call)),
                _ => None,
            });
        }
        all
    }
}

fn result(is_error: bool) -> Value {
    json!({
        "resultType": "complete", "isError": is_error, "content": [{"type": "text", "text": "1234-5678"}],
        "structuredContent": {"iban": "DE02"}, "_meta": {"x": "1234-5678"}
    })
}

/// A task with a secret in each of its parts.
fn state(status: &str, era: Era) -> Value {
    let mut task = json!({
        "taskId": "t", "status": status, "statusMessage": "at 1234-5678", "iban": "DE02", "createdAt": "c",
        "lastUpdatedAt": "u", "other": {"iban": "DE03", "text": "1234-5678"}, "_meta": {"y": "1234-5678"}
    });
    task[if era == Era::Modern { "ttlMs" } else { "ttl" }] = json!(60000);
    if era == Era::Modern {
        task["resultType"] = json!("complete");
        match status {
            "completed" => task["result"] = result(false),
            "failed" => task["error"] = json!({"code": -1, "message": "1234-5678", "data": {"iban": "DE02"}}),
            "input_required" => {
                let schema = json!({"type": "object", "properties": {"n": {"type": "string", "title": "1234-5678"}}});
                let params =
                    json!({"mode": "form", "message": "for 1234-5678?", "requestedSchema": schema, "iban": "DE02"});
                task["inputRequests"] = json!({"k": {"method": "elicitation/create", "params": params}});
            }
            _ => {}
        }
    }
    task
}

fn sent(out: &[Command]) -> String {
    let texts = out.iter().filter_map(|command| match command {
        Command::Send(message) => Some(String::from_utf8_lossy(message.bytes()).into_owned()),
        _ => None,
    });
    texts.collect()
}

fn ways() -> Vec<Way> {
    let eras = [Era::Legacy, Era::Modern];
    let mut all = Vec::new();
    for (client, backend) in eras.into_iter().flat_map(|client| eras.map(|backend| (client, backend))) {
        for (several, forgotten) in [(false, false), (true, false), (false, true), (true, true)] {
            all.push(Way { client, backend, several, forgotten });
        }
    }
    all
}

/// Proves G-16.
#[test]
fn no_answer_about_a_task_shows_what_is_taken_out_of_the_answers_of_its_tool() {
    for way in ways() {
        let methods: &[&str] = match way.client {
            Era::Legacy => &["tasks/get", "tasks/result", "tasks/cancel", "tasks/list"],
            Era::Modern => &["tasks/get", "tasks/cancel", "tasks/update"],
        };
        for method in methods {
            for status in ["working", "input_required", "completed", "failed", "cancelled"] {
                let mut scene = Scene::new(way);
                let mut told = scene.makes_task("x");
                assert!(told.contains("\"t\"") || told.contains("a+t"), "{way:?} {told}");
                let answer = scene.gets(method, status);
                // A session of the old era knows no task whose call is forgotten.
                let is_known = way.client == Era::Modern || !way.forgotten;
                // A result is waited for.
                let is_told = is_known && (*method != "tasks/result" || status == "completed");
                assert!(!is_told || answer.contains("[redacted]"), "{way:?} {method} {status}: {answer}");
                told.push_str(&answer);
                for secret in SECRETS {
                    assert!(!told.contains(secret), "{way:?} {method} {status}: {told}");
                }
            }
        }
    }
}

#[test]
fn the_tasks_of_other_tools_say_all() {
    for way in ways().into_iter().filter(|way| !way.forgotten) {
        for method in ["tasks/get", "tasks/cancel"] {
            let mut scene = Scene::new(way);
            scene.makes_task("y");
            let told = scene.gets(method, "completed");
            assert!(told.contains("at 1234-5678") && told.contains("DE03"), "{way:?} {method}: {told}");
        }
    }
}

/// Returns the answer of the tool in a gateway of its own, and that to the same call again.
fn answers_with_secret_names() -> [String; 2] {
    let mut scene = Scene::new(Way { client: Era::Legacy, backend: Era::Legacy, several: false, forgotten: false });
    let named = json!({"1234-5678": {"1234-5679": 1, "list": [{"1234-5678": 2}]}});
    [(); 2].map(|()| {
        let (exchange, _) = scene.asks("tools/call", json!({"name": "x", "arguments": {}})).1.unwrap();
        scene.answered(exchange, &json!({"content": [], "structuredContent": named}), None)
    })
}

fn hashes(answer: &str) -> Vec<&str> {
    answer.split("hash:").skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// Without a secret key, a caller could hash every card number until it finds that of a name.
#[test]
fn names_of_members_are_hashed_with_a_key_of_the_process() {
    let [answer, again] = answers_with_secret_names();
    let names = hashes(&answer);
    assert!(names.len() == 3 && names[0] == names[2] && names[0] != names[1], "{answer}");
    assert_eq!(hashes(&again), names, "names stay comparable from answer to answer");
    let other = answers_with_secret_names();
    assert!(hashes(&other[0]).iter().all(|name| !names.contains(name)), "{answer} {}", other[0]);
}

/// Returns a caller with this trust level.
fn caller(trust: TrustLevel) -> Caller {
    Caller::new(Identity {
        principal: Principal::named("ada"),
        proof: Proof::ApiKey,
        claims: Vec::new(),
        address: None,
        transport: "http",
        standing: Some(Arc::new(Standing { trust, ..Standing::default() })),
    })
}

/// Proves G-24.
#[test]
fn nothing_that_is_said_of_a_failed_task_tells_more_than_the_caller_is_trusted_with() {
    let little = [TrustLevel::Community, TrustLevel::Untrusted];
    for (way, trust) in ways().into_iter().flat_map(|way| little.map(|trust| (way, trust))) {
        let methods: &[&str] = match way.client {
            Era::Legacy => &["tasks/get", "tasks/result", "tasks/cancel", "tasks/list"],
            Era::Modern => &["tasks/get", "tasks/cancel", "tasks/update"],
        };
        for method in methods {
            let [answer, whole] = [trust, TrustLevel::System].map(|trust| {
                let mut scene = Scene::of(way, BY_TRUST, caller(trust));
                scene.makes_task("x");
                scene.gets(method, "failed")
            });
            // The gateway's own list has the status that it heard of last.
            if whole.contains("working") {
                continue;
            }
            for secret in SECRETS {
                assert!(!answer.contains(secret), "{way:?} {trust:?} {method}: {answer}");
            }
            assert_eq!(
                answer.contains("The tool failed"),
                whole.contains(SECRETS[0]),
                "{way:?} {trust:?} {method}: {answer}"
            );
        }
    }
}
