//! A rule that names a backend's own tool or URI holds every way of reaching it, in whatever
//! catalog, whichever names collide and in both eras.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use bytes::Bytes;
use proptest::prelude::*;
use signalbox_engine::catalog::{Item, ListKind, View, ViewKey};
use signalbox_engine::front::{Context, FrontMachine, Mode};
use signalbox_engine::keys::{Numbers, StreamId};
use signalbox_engine::operations::Operations;
use signalbox_engine::read_cache::Generation;
use signalbox_engine::{
    Caller, CapSet, Catalog, Chain, Command, Event, ServerProfile, SessionKey, Snapshot, TaskCalls,
};
use signalbox_rules::{RuleInterceptor, RuleSet};
use signalbox_wire::{Envelope, Era, Revision};
use std::sync::Arc;
use std::time::{Duration, Instant};

const BACKENDS: [&str; 3] = ["a", "b", "files"];

/// The catalog of these backends' tools and resources, stored in this order.
fn catalog(tools: &[Vec<String>], uris: &[Vec<String>], order: &[usize], settle: bool) -> Catalog {
    let mut catalog = Catalog::new(BACKENDS.map(Arc::from));
    for index in order {
        let profile = ServerProfile {
            revision: Revision::LATEST_LEGACY,
            capabilities: Bytes::from_static(br#"{"tools":{},"resources":{}}"#),
            info: Bytes::from_static(br#"{"name":"t","version":"1"}"#),
            instructions: None,
        };
        let mut view = View::empty(Arc::new(profile));
        for (kind, key, names) in
            [(ListKind::Tools, "name", &tools[*index]), (ListKind::Resources, "uri", &uris[*index])]
        {
            let item = |name: &String| {
                let raw = serde_json::json!({ key: name, "inputSchema": {"type": "object"} }).to_string();
                Item::read(kind, raw.into()).unwrap()
            };
            view.set(kind, names.iter().map(item).collect());
        }
        catalog.set_view(BACKENDS[*index], ViewKey::shared(Era::Legacy, CapSet::bare()), view);
        if settle {
            catalog.settle();
        }
    }
    catalog
}

/// What comes of one request: the backend it went to, or none.
fn reaches(
    snapshot: &Snapshot,
    chain: &Chain,
    era: Era,
    method: &str,
    key: &str,
    name: &str,
) -> Option<(String, String)> {
    let mut machine = FrontMachine::new(SessionKey(1), Caller::anonymous("http"), Mode::Pipe);
    let now = Instant::now();
    let ctx = Context {
        now,
        unix_ms: &|| 0,
        task_home: &|_| None,
        catalog: snapshot,
        caller: None,
        user: &signalbox_engine::Principal::anonymous().into(),
        refusal: None,
        operations: &Operations::default(),
        task_calls: &TaskCalls::default(),
        numbers: &Numbers::default(),
        chain,
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
    let mut say = |message: serde_json::Value| {
        let mut out = Vec::new();
        let message = Envelope::parse(message.to_string().into()).unwrap();
        machine.handle(Event::Received { stream: StreamId(1), message }, &ctx, &mut out);
        out
    };
    let mut params = serde_json::json!({ key: name });
    if era == Era::Legacy {
        let hello = serde_json::json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
        say(serde_json::json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}));
        say(serde_json::json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    } else {
        params["_meta"] = serde_json::json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}
        });
    }
    let out = say(serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
    out.into_iter().find_map(|command| match command {
        Command::Forward { backend, call, .. } => {
            Some((backend.to_string(), call.name.clone().unwrap_or_default().into()))
        }
        _ => None,
    })
}

fn chain(rule: &str) -> Chain {
    let set = RuleSet::parse(
        "rules.toml",
        &format!("[[rules]]\nid = \"r\"\nwhen = {{ {rule} }}\nthen = {{ block = \"no\" }}\n"),
    );
    Chain::new(vec![Arc::new(RuleInterceptor::new(set.unwrap(), 1))])
}

fn tool() -> impl Strategy<Value = String> {
    prop_oneof!["[xy]", "(a|b|files)__[xy]", "(a|b)__(a|b)__[xy]", "files__files__x"]
}

fn uri() -> impl Strategy<Value = String> {
    prop_oneof!["file:///(p|q)/[xy]", "ui://[xy]", "(a|b|files)[+]file:///p/x", "ui://(a|b)[+]x"]
}

/// Other ways to write a path of the same meaning.
fn spelled(uri: &str, way: u8) -> String {
    match way {
        1 => uri.replace("///p/", "///q/../p/"),
        2 => uri.replace("///p/", "///q/%2e%2E/p/"),
        3 => uri.replace("file:", "FILE:"),
        4 => uri.replace("/p/", "/%70/"),
        _ => uri.to_owned(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_rule_on_a_tool_holds_every_name_of_it(
        tools in proptest::collection::vec(proptest::collection::vec(tool(), 0..5), 3),
        order in Just(vec![0, 1, 2]).prop_shuffle(),
        settle: bool,
        asked in proptest::collection::vec(tool(), 1..5),
    ) {
        let catalog = catalog(&tools, &[vec![], vec![], vec![]], &order, settle);
        let snapshot = catalog.snapshot();
        let mut names = asked;
        for (backend, own) in BACKENDS.iter().zip(&tools) {
            names.extend(own.iter().cloned());
            names.extend(own.iter().map(|name| format!("{backend}__{name}")));
        }
        for name in &names {
            for era in [Era::Legacy, Era::Modern] {
                let Some((backend, own)) = reaches(&snapshot, &Chain::default(), era, "tools/call", "name", name) else { continue };
                for rule in [
                    format!("backend = \"{backend}\", tool = \"{own}\""),
                    format!("tool = \"{own}\""),
                    format!("tool = \"{backend}__{own}\""),
                ] {
                    let reached = reaches(&snapshot, &chain(&rule), era, "tools/call", "name", name);
                    prop_assert_eq!(reached, None, "{} passes {}", name, rule);
                }
                // A rule that lets nothing through but another backend's tools is not passed by a name that looks like
                // one.
                for other in BACKENDS.iter().filter(|other| **other != backend) {
                    let rule = format!("not = {{ tool = \"{other}__*\" }}");
                    let reached = reaches(&snapshot, &chain(&rule), era, "tools/call", "name", name);
                    prop_assert_eq!(reached, None, "{} passes {}", name, rule);
                }
            }
        }
        // Every entry is reached under its qualified name.
        for (backend, own) in BACKENDS.iter().zip(&tools) {
            for name in own {
                let route = snapshot.tool(&format!("{backend}__{name}")).unwrap();
                prop_assert_eq!((&*route.backend, &*route.name), (*backend, &**name));
            }
        }
    }

    #[test]
    fn a_rule_on_a_uri_holds_every_spelling_of_it(
        uris in proptest::collection::vec(proptest::collection::vec(uri(), 0..4), 3),
        order in Just(vec![0, 1, 2]).prop_shuffle(),
        way in 0u8..5,
        backend in 0usize..3,
    ) {
        let snapshot = catalog(&[vec![], vec![], vec![]], &uris, &order, true).snapshot();
        let name = BACKENDS[backend];
        for asked in ["file:///p/x".to_owned(), format!("{name}+file:///p/x")] {
            let asked = spelled(&asked, way);
            let Some((reached, own)) = reaches(&snapshot, &Chain::default(), Era::Modern, "resources/read", "uri", &asked) else { continue };
            // A resource of another scheme that is literally called so is another resource.
            if own.contains('+') {
                continue;
            }
            for rule in [
                "subject = \"file:///p/*\"".to_owned(),
                format!("backend = \"{reached}\", subject = \"file:///p/*\""),
                format!("subject = \"{reached}+file:///p/*\""),
                "not = { subject = \"file:///q/*\" }".to_owned(),
            ] {
                let passed = reaches(&snapshot, &chain(&rule), Era::Modern, "resources/read", "uri", &asked);
                prop_assert_eq!(passed, None, "{} passes {}", asked, rule);
            }
        }
    }
}
