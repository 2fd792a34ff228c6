//! What clients see of the catalog, and the names by which they reach it.

use super::*;
use crate::catalog::{Audience, Visibility};

#[test]
fn a_list_waits_for_backends_that_are_still_starting() {
    let mut dialogue = Dialogue::operational();
    dialogue.ready = false;
    assert_eq!(dialogue.says(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#), ["wait for lists"]);
    assert_eq!(
        dialogue.says(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"later"}}"#),
        ["wait for lists"]
    );
    assert!(
        dialogue.says(r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"one"}}"#)[0].starts_with("a>")
    );
    dialogue.ready = true;
    assert!(dialogue.event(Event::ListsReady { exchange: ExchangeId(2) })[0].contains("b__echo"));
    assert!(dialogue.event(Event::ListsReady { exchange: ExchangeId(3) })[0].contains("Unknown tool: later"));
}

#[test]
fn a_listen_request_waits_for_the_lists_that_name_its_resources() {
    let mut dialogue = Dialogue::new(Mode::Stateless);
    dialogue.ready = false;
    let listen = modern("1", "subscriptions/listen", r#""notifications":{"resourceSubscriptions":["b+x://1"]}"#);
    assert_eq!(dialogue.says(&listen), ["wait for lists"]);
    dialogue.ready = true;
    let said = dialogue.event(Event::ListsReady { exchange: ExchangeId(1) });
    assert!(said.len() == 1 && said[0].contains("x://1"), "it is followed, and not acknowledged yet: {said:?}");
}

#[test]
fn list_changes_are_told_in_the_way_of_each_era() {
    let mut dialogue = Dialogue::operational();
    let changed = ListChanges { tools: true, prompts: false, resources: false };
    let note = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    assert_eq!(dialogue.event(Event::ListsChanged { changed }), [format!("- {note}")]);

    let mut dialogue = Dialogue::new(Mode::Stateless);
    let said = dialogue.says(&modern("\"L\"", "subscriptions/listen", r#""notifications":{"toolsListChanged":true,"promptsListChanged":false,"resourceSubscriptions":["b+x://1","q://"]}"#));
    assert!(said[0].contains("Open") && said.len() == 1, "{said:?}");
    let all = ListChanges { tools: true, prompts: true, resources: true };
    assert!(dialogue.event(Event::ListsChanged { changed: all }).is_empty(), "the acknowledgement comes first");
    let message = envelope(
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x://1","_meta":{"io.modelcontextprotocol/subscriptionId":4}}}"#,
    );
    let (peer, about) = (PeerId(1), Some(ExchangeId(1)));
    let update = Event::Notified { backend: "b".into(), peer, message, about };
    for _ in 0..2 {
        assert!(dialogue.event(update.clone()).is_empty(), "the acknowledgement comes first");
    }
    let updated = r#"~ {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"b+x://1","_meta":{"io.modelcontextprotocol/subscriptionId":"L"}}}"#;
    let said = dialogue.event(Event::Listening { exchange: ExchangeId(1) });
    assert_eq!((said.len(), &*said[1]), (3, updated), "what changed meanwhile is told once");
    assert!(said[2].contains("tools/list_changed"), "{said:?}");
    assert_eq!(
        said[0],
        r#"- {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["b+x://1"]},"_meta":{"io.modelcontextprotocol/subscriptionId":"L"}}}"#
    );
    let told = dialogue.event(Event::ListsChanged { changed: all });
    assert_eq!(told.len(), 1);
    assert!(told[0].contains(r#""io.modelcontextprotocol/subscriptionId":"L""#), "{told:?}");
    assert_eq!(dialogue.event(update), [updated]);
}

#[test]
fn a_renamed_resource_is_spliced_both_ways() {
    let mut dialogue = Dialogue::operational();
    assert_eq!(
        dialogue.says(r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"b+x://1"}}"#),
        [r#"b> {"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x://1"}}"#]
    );
    assert_eq!(
        dialogue.answers(
            r#"{"jsonrpc":"2.0","id":4,"result":{"contents":[{"uri":"x://1","text":"x://1"},{"uri":"x://2"}]}}"#
        ),
        [r#"< {"jsonrpc":"2.0","id":1,"result":{"contents":[{"uri":"b+x://1","text":"x://1"},{"uri":"b+x://2"}]}}"#]
    );
    let update = envelope(r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x://1"}}"#);
    let told = dialogue.event(Event::Notified { backend: "b".into(), peer: PeerId(1), message: update, about: None });
    assert_eq!(told, [r#"~ {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"b+x://1"}}"#]);
}

/// The qualified name is always taken, and the plain one is the first owner's.
#[test]
fn every_way_to_name_a_tool_reaches_the_same_one() {
    let mut dialogue = Dialogue::operational();
    for (name, said) in [("echo", "a>"), ("a__echo", "a>"), ("b__echo", "b>"), ("a__one", "a>")] {
        let call = format!(r#"{{"jsonrpc":"2.0","id":"{name}","method":"tools/call","params":{{"name":"{name}"}}}}"#);
        let own = name.split_once("__").map_or(name, |(_, own)| own);
        let [sent] = &dialogue.says(&call)[..] else { panic!("{name} was not forwarded") };
        assert!(sent.starts_with(said) && sent.contains(&format!(r#""name":"{own}""#)), "{name}: {sent}");
    }
}

/// Shows nothing of backend `a`.
struct OnlyB;

impl Visibility for OnlyB {
    fn audience(&self, _: &Caller) -> Audience {
        Audience::default()
    }

    fn shows_backend(&self, _: &Caller, backend: &str) -> bool {
        backend == "b"
    }
}

/// Lists, capabilities, calls, prompts, resources and completion agree on what a caller may see.
#[test]
fn what_a_caller_does_not_see_it_cannot_reach_either() {
    let mut dialogue = Dialogue::new(Mode::Pipe);
    dialogue.visibility = Some(Arc::new(OnlyB));
    dialogue.says(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#);
    dialogue.says(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let listed = dialogue.says(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert!(listed[0].contains(r#"[{"name":"b__echo"}]"#), "{listed:?}");
    for (request, part) in [
        (r#""tools/call","params":{"name":"one"}"#, "Unknown tool: one"),
        (r#""tools/call","params":{"name":"a__echo"}"#, "Unknown tool: a__echo"),
        // The plain name is that of a tool which is not seen; the one that is seen is named.
        (r#""tools/call","params":{"name":"echo"}"#, "Unknown tool: echo; call it as b__echo"),
        (r#""prompts/get","params":{"name":"hello"}"#, "Unknown prompt"),
        (r#""resources/read","params":{"uri":"a+x://1"}"#, "Resource not found"),
        (r#""completion/complete","params":{"ref":{"type":"ref/prompt","name":"hello"}}"#, "Unknown prompt"),
    ] {
        let said = dialogue.says(&format!(r#"{{"jsonrpc":"2.0","id":2,"method":{request}}}"#));
        assert!(said[0].contains(part), "{request} gave {said:?}");
    }
    let reached = dialogue.says(r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"b__echo"}}"#);
    assert!(reached[0].starts_with("b>"), "{reached:?}");
    let message =
        envelope(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"alert","data":"secret"}}"#);
    let told = dialogue.event(Event::Notified { backend: "a".into(), peer: PeerId(1), message, about: None });
    assert!(told.is_empty(), "{told:?}");
}

/// The gateway's own instructions, and several backends' joined.
/// Proves N-18.
#[test]
fn instructions_of_the_gateway_and_of_all_backends_are_joined() {
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let told = |own: &'static str, texts: [Option<&str>; 2]| {
        let mut dialogue = Dialogue::new(Mode::Pipe);
        dialogue.instructions = own;
        for (name, text) in ["a", "b"].into_iter().zip(texts) {
            let mut lists = view(ListKind::Tools, &[]);
            Arc::make_mut(&mut lists.profile).instructions = text.map(str::to_owned);
            dialogue.catalog.set_view(name, bare(Era::Legacy), lists);
        }
        let said = dialogue.says(hello).remove(0);
        let answer: serde_json::Value = serde_json::from_str(&said[2..]).unwrap();
        answer["result"]["instructions"].as_str().map(str::to_owned)
    };
    assert_eq!(told("", [None, None]), None);
    assert_eq!(told("", [Some("A"), None]).as_deref(), Some("A"));
    assert_eq!(told("", [Some("A"), Some("B")]).as_deref(), Some("## a\n\nA\n\n## b\n\nB"));
    assert_eq!(told("Own.", [Some("A"), None]).as_deref(), Some("Own.\n\n## a\n\nA"));
    assert_eq!(told("Own.", [None, None]).as_deref(), Some("Own."));
}
