//! Dialogues with a front machine: what a client and a backend say, and what the machine does about it.

use super::*;
use crate::caller::{Identity, Proof};
use crate::catalog::tests::{bare, view};
use crate::catalog::{Catalog, ListChanges, ListKind};
use crate::chain::Chain;
use crate::exchange::Absence;
use crate::fact::Fact;
use crate::keys::{Numbers, PeerId};
use crate::operations::Operations;
use crate::read_cache::Generation;
use bytes::Bytes;
use dialogue::*;
use signalbox_wire::{Edits, Revision};
use std::time::{Duration, Instant};

mod consent;
mod dialect;
mod dialogue;
mod holding;
mod judging;
mod lists;
mod refused_notifications;
mod resource_uris;
mod rounds;
mod signing_in;
mod tasks;

/// Proves N-1, N-7, N-8, N-9, N-10 and N-25.
#[test]
fn the_gate_of_an_old_session() {
    let mut dialogue = Dialogue::new(Mode::Pipe);
    assert_eq!(
        dialogue.says(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#),
        [
            r#"< {"jsonrpc":"2.0","id":2,"error":{"code":-32002,"message":"Server not initialized","data":{"reason":"not_initialized","method":"tools/list"}}}"#
        ]
    );
    assert_eq!(
        dialogue.says(r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#),
        [r#"< {"jsonrpc":"2.0","id":3,"result":{}}"#]
    );
    assert_eq!(dialogue.machine.state(), Lifecycle::Created);
    let greeting = dialogue.says(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#);
    assert_eq!(
        greeting,
        [
            r#"< {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}},"serverInfo":{"name":"signalbox","version":"0"}}}"#
        ]
    );
    assert_eq!(dialogue.machine.state(), Lifecycle::Initializing);
    assert!(dialogue.says(r#"{"jsonrpc":"2.0","id":4,"method":"tools/list"}"#)[0].contains("-32002"));
    assert_eq!(dialogue.says(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), ["operational"]);
    assert!(dialogue.says(r#"{"jsonrpc":"2.0","id":5,"method":"tools/list"}"#)[0].contains("b__echo"));
    dialogue.event(Event::Close);
    assert!(dialogue.says(r#"{"jsonrpc":"2.0","id":6,"method":"ping"}"#)[0].contains("session_closed"));
}

/// Proves N-17.
#[test]
fn an_unknown_or_new_version_is_answered_with_the_newest_old_one() {
    for version in ["2026-07-28", "2099-01-01", "1.0"] {
        let mut dialogue = Dialogue::new(Mode::Session);
        let answer = dialogue.says(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}}}}}}"#));
        assert!(answer[0].contains(r#""protocolVersion":"2025-11-25""#), "{version}: {answer:?}");
    }
}

/// Permissions, constraints and rules judge the members of an object, and a server may read JSON from a text.
#[test]
fn arguments_that_are_no_object_reach_no_backend() {
    let legacy = |method: &str, name: &str, arguments: &str| {
        let mut dialogue = Dialogue::operational();
        dialogue.says(&format!(
            r#"{{"jsonrpc":"2.0","id":5,"method":"{method}","params":{{"name":"{name}","arguments":{arguments}}}}}"#
        ))
    };
    let modern = |method: &str, name: &str, arguments: &str| {
        Dialogue::new(Mode::Stateless).says(&format!(
            r#"{{"jsonrpc":"2.0","id":5,"method":"{method}","params":{{"name":"{name}","arguments":{arguments},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        ))
    };
    for (method, name) in [("tools/call", "one"), ("prompts/get", "hello")] {
        for bad in [r#""{\"amount\":5000}""#, r#"[{"amount":5000}]"#, "5", "true", r#""""#] {
            for said in [legacy(method, name, bad), modern(method, name, bad)] {
                let refused = said.len() == 1
                    && said[0].starts_with(
                        r#"< {"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"`arguments` must be an object""#,
                    );
                assert!(refused, "{method} {bad}: {said:?}");
            }
        }
        for fine in ["{}", "null"] {
            for said in [legacy(method, name, fine), modern(method, name, fine)] {
                assert!(said[0].starts_with("a> "), "{method} {fine}: {said:?}");
            }
        }
    }
}

/// A backend that leads back to its own gateway showed the gateway's tools again, without end.
#[test]
fn the_gateway_refuses_a_connection_to_itself() {
    let initialize = |instance: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}},"_meta":{{"io.signalbox/instance":"{instance}"}}}}}}"#
        )
    };
    let discover = |instance: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}},"io.signalbox/instance":"{instance}"}}}}}}"#
        )
    };
    for (mode, asks) in [(Mode::Session, &initialize as &dyn Fn(&str) -> String), (Mode::Stateless, &discover)] {
        let answer = Dialogue::new(mode).says(&asks("1"));
        assert!(answer[0].contains("-32600") && answer[0].contains("leads back"), "{mode:?} {answer:?}");
        let other = Dialogue::new(mode).says(&asks("2"));
        assert!(other[0].contains(r#""result""#), "{mode:?} {other:?}");
    }
}

/// Proves S-52 and N-21.
#[test]
fn a_call_reaches_the_backend_under_its_own_name_and_every_other_byte_stays() {
    let mut dialogue = Dialogue::operational();
    assert_eq!(
        dialogue.says(r#"{"jsonrpc":"2.0", "id" : "1" ,"method":"tools/call","params":{ "name":"b__echo" ,"arguments":{"n":1.0,"u":"\u0041"},"x":[] }}"#),
        [r#"b> {"jsonrpc":"2.0", "id" : "1" ,"method":"tools/call","params":{ "name":"echo" ,"arguments":{"n":1.0,"u":"\u0041"},"x":[] }}"#]
    );
    assert_eq!(
        dialogue.answers(r#"{"id":77,"jsonrpc":"2.0","result":{"content":[], "odd":1e3}}"#),
        [r#"< {"id":"1","jsonrpc":"2.0","result":{"content":[], "odd":1e3}}"#]
    );
    assert_eq!(dialogue.machine.in_flight(), 0);
}

/// Proves N-25.
#[test]
fn unknown_names_bad_params_and_unknown_methods_are_clear_errors() {
    let mut dialogue = Dialogue::operational();
    for (request, part) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nope"}}"#,
            r#""code":-32602,"message":"Unknown tool: nope""#,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}"#, "params.name is required"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, "params.name is required"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"nope"}}"#, "Unknown prompt"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"zz://1"}}"#, r#""code":-32002"#),
        (r#"{"jsonrpc":"2.0","id":1,"method":"made/up"}"#, r#""code":-32601"#),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"bogus"}}"#, "not a cursor"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}"#, "log levels"),
    ] {
        let said = dialogue.says(request);
        assert!(said[0].contains(part), "{request} gave {said:?}");
    }
}

/// Returns what the operator is told of the absence of an entry that a completion is about, and what the client is.
fn absence_of_completed(visibility: Option<Arc<dyn crate::catalog::Visibility>>, reference: &str) -> (Absence, String) {
    let mut dialogue = Dialogue::operational();
    dialogue.visibility = visibility;
    let message = envelope(&format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{{"ref":{reference},"argument":{{"name":"a","value":""}}}}}}"#
    ));
    let (mut absence, mut told) = (Absence::NotSought, String::new());
    for command in dialogue.commands(Event::Received { stream: STREAM, message }) {
        match &command {
            Command::Fact(Fact::Finished(finished)) => absence = finished.unreached.as_ref().unwrap().absence,
            _ => told.extend(dialogue.tell(command)),
        }
    }
    (absence, told)
}

#[test]
fn an_entry_is_hidden_only_if_there_is_one_of_the_kind_that_a_completion_names() {
    /// Shows nothing, to a caller limited to one backend.
    struct Nothing;
    impl crate::catalog::Visibility for Nothing {
        fn audience(&self, _: &Caller) -> crate::catalog::Audience {
            crate::catalog::Audience::default()
        }
        fn sole_backend(&self, _: &Caller) -> Option<&str> {
            Some("a")
        }
        fn shows_backend(&self, _: &Caller, _: &str) -> bool {
            false
        }
    }
    let prompt = |name: &str| format!(r#"{{"type":"ref/prompt","name":"{name}"}}"#);
    let limited = || Some(Arc::new(Nothing) as Arc<dyn crate::catalog::Visibility>);
    assert_eq!(absence_of_completed(None, &prompt("x://1")).0, Absence::Unknown, "the name of a resource");
    let (absence, hidden) = absence_of_completed(limited(), &prompt("hello"));
    assert_eq!(absence, Absence::Hidden);
    for unknown in ["nope!", "x://1"] {
        let (absence, told) = absence_of_completed(limited(), &prompt(unknown));
        assert_eq!(absence, Absence::UnknownToLimited, "{unknown}");
        assert_eq!(told.replace(unknown, "hello"), hidden, "the client cannot tell them apart");
    }
    assert_eq!(absence_of_completed(limited(), r#"{"type":"ref/resource","uri":"x://1"}"#).0, Absence::Hidden);
    assert_eq!(absence_of_completed(None, r#"{"type":"ref/other","name":"hello"}"#).0, Absence::NotSought);
}

#[test]
fn ids_keep_their_type_and_a_second_use_in_flight_is_refused() {
    let mut dialogue = Dialogue::operational();
    for id in ["1", "\"1\"", "1.0"] {
        let said =
            dialogue.says(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"one"}}}}"#));
        assert!(said[0].starts_with("a> "));
    }
    let again = dialogue.says(r#"{"jsonrpc":"2.0","id":1.0,"method":"tools/call","params":{"name":"one"}}"#);
    assert!(again[0].contains("duplicate_id"), "{again:?}");
    for id in ["1.0", "\"1\"", "1"] {
        assert_eq!(
            dialogue.answers(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#),
            [format!(r#"< {{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)]
        );
    }
}

#[test]
fn requests_in_flight_are_bounded() {
    let mut dialogue = Dialogue::operational();
    for id in 0..4 {
        dialogue.says(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"one"}}}}"#));
    }
    let said = dialogue.says(r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"one"}}"#);
    assert_eq!(said[0], "refused in_flight");
    assert!(said[1].contains("overloaded"), "{said:?}");
}

#[test]
fn progress_comes_back_under_the_clients_own_token() {
    let mut dialogue = Dialogue::operational();
    dialogue.says(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one","_meta":{"progressToken":"p"}}}"#,
    );
    let exchange = dialogue.calls[0].0;
    let message =
        envelope(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":55}}"#);
    let told = dialogue.event(Event::Notified {
        backend: "a".into(),
        peer: PeerId(1),
        message: message.clone(),
        about: Some(exchange),
    });
    assert_eq!(
        told,
        [r#"~ {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":"p"}}"#]
    );
    dialogue.answers(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    let late = dialogue.event(Event::Notified { backend: "a".into(), peer: PeerId(1), message, about: Some(exchange) });
    assert_eq!(late, ["dropped stray_progress"]);
}

#[test]
fn a_cancelled_call_is_stopped_and_never_answered() {
    let mut dialogue = Dialogue::operational();
    dialogue.says(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one"}}"#);
    assert_eq!(
        dialogue.says(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"x"}}"#),
        ["cancel at a"]
    );
    assert_eq!(dialogue.answers(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), ["dropped late_answer"]);
    assert_eq!(
        dialogue.says(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#),
        ["dropped stray_cancel"]
    );
}

#[test]
fn a_backends_question_travels_to_the_client_and_back() {
    let mut dialogue = Dialogue::operational();
    let ask = envelope(
        r#"{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{"_meta":{"progressToken":"t"}}}"#,
    );
    let asked = dialogue.event(Event::Asked { backend: Arc::from("a"), peer: PeerId(7), message: ask, about: None });
    assert_eq!(
        asked,
        [
            r#"- {"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"_meta":{"progressToken":1,"io.signalbox/backend":"a"}}}"#
        ]
    );
    assert_eq!(
        dialogue
            .says(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":5}}"#),
        [r#"peer7> {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":5}}"#]
    );
    assert_eq!(
        dialogue.says(r#"{"jsonrpc":"2.0","id":1,"result":{"role":"assistant"}}"#),
        [r#"peer7> {"jsonrpc":"2.0","id":"q","result":{"role":"assistant"}}"#]
    );
    assert_eq!(dialogue.says(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), ["dropped orphan_client_answer"]);
}

#[test]
fn a_question_without_a_way_to_the_client_is_refused() {
    let mut dialogue = Dialogue::new(Mode::Session);
    let message = envelope(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
    assert_eq!(
        dialogue.event(Event::Asked { backend: Arc::from("a"), peer: PeerId(1), message, about: None }),
        [
            "dropped no_stream",
            r#"peer1> {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"the client has no stream open on which it could be asked"}}"#
        ]
    );
}

fn modern(id: &str, method: &str, params: &str) -> String {
    let comma = if params.is_empty() { "" } else { "," };
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{comma}"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
}

/// Proves N-11.
#[test]
fn on_a_pipe_the_era_is_told_before_the_gate() {
    let mut dialogue = Dialogue::new(Mode::Pipe);
    let said = dialogue.says(&modern("1", "server/discover", ""));
    assert!(said[0].contains(r#""supportedVersions":["2026-07-28","2025-11-25""#), "{said:?}");
    assert!(dialogue.says(&modern("2", "tools/list", ""))[0].contains(r#""resultType":"complete","ttlMs":0"#));
    assert!(dialogue.says(&modern("3", "ping", ""))[0].contains("-32601"));
    assert!(dialogue.says(r#"{"jsonrpc":"2.0","id":4,"method":"tools/list"}"#)[0].contains("-32002"));
}

#[test]
fn the_new_era_wants_its_meta_and_a_version_we_serve() {
    let mut dialogue = Dialogue::new(Mode::Stateless);
    let bare = dialogue.says(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert!(bare[0].contains("-32602"), "{bare:?}");
    let old = dialogue.says(&modern("1", "tools/list", "").replace("2026-07-28", "2031-01-01"));
    assert!(old[0].contains("-32022") && old[0].contains(r#""requested":"2031-01-01""#), "{old:?}");
    let caps =
        dialogue.says(&modern("1", "tools/list", "").replace("clientCapabilities\":{}", "clientCapabilities\":7"));
    assert!(caps[0].contains("-32602"));
}

#[test]
fn a_lost_stream_ends_a_new_request_and_not_an_old_one() {
    let mut dialogue = Dialogue::new(Mode::Stateless);
    dialogue.says(&modern("1", "tools/call", r#""name":"one""#));
    assert_eq!(dialogue.event(Event::Gone { stream: STREAM }), ["cancel at a"]);
    assert_eq!(dialogue.machine.in_flight(), 0);

    let mut dialogue = Dialogue::operational();
    dialogue.says(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one"}}"#);
    assert!(dialogue.event(Event::Gone { stream: STREAM }).is_empty());
    assert_eq!(dialogue.machine.in_flight(), 1);
    assert_eq!(dialogue.answers(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), ["dropped client_gone"]);
}

#[test]
fn a_stream_of_a_call_with_fewer_rights_gets_nothing_of_the_session() {
    use crate::standing::Standing;
    let caller = |role: &str| {
        let standing = Standing { roles: vec![role.into()], ..Standing::default() };
        Caller::new(Identity {
            principal: Principal::named("ada"),
            proof: Proof::ApiKey,
            claims: Vec::new(),
            address: None,
            transport: "http",
            standing: Some(Arc::new(standing)),
        })
    };
    for (role, told) in [("root", 1), ("editor", 0)] {
        let mut dialogue = Dialogue::operational();
        (dialogue.machine.caller, dialogue.machine.general) = (caller("root"), None);
        dialogue.says(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one"}}"#);
        let exchange = dialogue.calls[0].0;
        dialogue.machine.exchanges.get_mut(&exchange).unwrap().caller = caller(role);
        let message =
            envelope(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"alert","data":1}}"#);
        let event = Event::Notified { backend: "a".into(), peer: PeerId(1), message, about: None };
        let sent = dialogue.event(event).iter().filter(|line| line.contains("notifications/message")).count();
        assert_eq!(sent, told, "{role}");
    }
}

#[test]
fn log_messages_below_the_level_of_the_session_stay_behind() {
    let mut dialogue = Dialogue::operational();
    let said = dialogue.says(r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"warning"}}"#);
    assert_eq!(said, ["level", r#"< {"jsonrpc":"2.0","id":1,"result":{}}"#]);
    let mut log = |level: &str| {
        let message = envelope(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","data":1}}}}"#
        ));
        dialogue.event(Event::Notified { backend: "a".into(), peer: PeerId(1), message, about: None }).len()
    };
    assert_eq!((log("info"), log("warning"), log("alert")), (0, 1, 1));
}

/// Proves S-58.
#[test]
fn ten_thousand_pending_calls_fit() {
    let mut dialogue = Dialogue::operational();
    let snapshot = dialogue.catalog.snapshot();
    let chain = Chain::default();
    let ctx = Context {
        now: Instant::now(),
        unix_ms: &|| 0,
        task_home: &|_| None,
        catalog: &snapshot,
        caller: None,
        user: &crate::Principal::anonymous().into(),
        refusal: None,
        operations: &Operations::default(),
        task_calls: &crate::TaskCalls::default(),
        numbers: &Numbers::default(),
        chain: &chain,
        session: None,
        session_started: Instant::now(),
        face: None,
        server_info: "{}",
        instance: "1",
        instructions: "",
        max_in_flight: 20_000,
        round_timeout: Duration::from_secs(300),
        changes: &|_, _| Generation::default(),
        dialect: None,
        error_detail: crate::fault::ErrorDetail::Full,
        message_facts: false,
        trace: None,
        clock: &Instant::now,
        sight: None,
        lists_ready: &|_| true,
        sign_ins: &Vec::new,
    };
    let mut out = Vec::new();
    let before = resident();
    for id in 0..10_000 {
        let json = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"one"}}}}"#);
        dialogue.machine.handle(Event::Received { stream: STREAM, message: envelope(&json) }, &ctx, &mut out);
    }
    assert_eq!(dialogue.machine.in_flight(), 10_000);
    let grown = resident().saturating_sub(before);
    assert!(grown < 100 << 20, "10,000 pending calls take {grown} bytes");
    for exchange in (1..=10_001).rev() {
        let message = envelope(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        let event = Event::Answered { exchange: ExchangeId(exchange), message, edits: Edits::new(), status: None };
        dialogue.machine.handle(event, &ctx, &mut out);
    }
    assert_eq!(dialogue.machine.in_flight(), 0);
}

/// The memory of this process in bytes, where the system tells; the commands that wait for their backends are in it.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

#[test]
fn a_cancelled_call_of_a_batch_on_a_pipe_ends_its_own_stream_and_never_the_pipe() {
    let mut dialogue = Dialogue::operational();
    let call = |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"one"}}}}"#);
    let cancel =
        |id: u32| format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#);
    dialogue.says(&call(1));
    assert_eq!(dialogue.says(&cancel(1)), ["cancel at a"]);
    let (stream, message) = (StreamId(9), envelope(&call(2)));
    dialogue.event(Event::Received { stream, message });
    assert_eq!(dialogue.says(&cancel(2)), ["cancel at a", "end"]);
}

/// What a client says of itself is kept for each session, so it has a bound.
#[test]
fn a_client_that_says_too_much_of_itself_is_refused() {
    let long = "x".repeat(crate::profile::MAX_CLAIMED);
    let mut dialogue = Dialogue::new(Mode::Pipe);
    let hello = |info: &str, caps: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"2025-06-18","capabilities":{{"x":"{caps}"}},"clientInfo":{{"name":"{info}","version":"1"}}}}}}"#
        )
    };
    assert!(dialogue.says(&hello(&long, ""))[0].contains("clientInfo has 65561 bytes; 65536 are allowed"));
    assert!(dialogue.says(&hello("", &long))[0].contains("capabilities has"));
    let modern = modern("1", "tools/list", "").replace(
        r#"clientCapabilities":{}"#,
        &format!(r#"clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"{long}","version":"1"}}"#),
    );
    assert!(dialogue.says(&modern)[0].contains("clientInfo has"));
    assert!(dialogue.says(&hello("c", ""))[0].contains("serverInfo"));
}

/// What the gateway answers itself takes time too.
#[test]
fn what_the_gateway_answers_itself_is_timed() {
    let mut dialogue = Dialogue::operational();
    let message = envelope(r#"{"jsonrpc":"2.0","id":5,"method":"tools/list"}"#);
    let commands = dialogue.commands(Event::Received { stream: STREAM, message });
    let took = commands.iter().find_map(|command| match command {
        Command::Fact(crate::Fact::Finished(finished)) => Some(finished.took),
        _ => None,
    });
    assert_eq!(took, Some(PACE));
}
