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

mod backend_messages;
mod calls_in_flight;
mod consent;
mod dialect;
mod dialogue;
mod handshakes;
mod holding;
mod judging;
mod lists;
mod refused_notifications;
mod resource_uris;
mod rounds;
mod signing_in;
mod tasks;

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

fn modern(id: &str, method: &str, params: &str) -> String {
    let comma = if params.is_empty() { "" } else { "," };
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{comma}"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
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
