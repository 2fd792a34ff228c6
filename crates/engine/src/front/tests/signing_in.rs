//! Callers who have to sign in at a backend first: what each revision is told, and what happens when they have.

use super::*;
use crate::catalog::ViewKey;

const URL: &str = "https://gate.example/auth/connect/1";

fn wanted() -> Fault {
    Fault::new(FaultKind::SignInNeeded, format!("backend `a` wants you to sign in: open {URL}"))
        .with_str("backend", "a")
        .with_str("url", URL)
}

/// A dialogue with a client of this revision that declares this.
fn client(version: &str, capabilities: &str) -> Dialogue {
    let mut dialogue = Dialogue::new(Mode::Pipe);
    dialogue.says(&format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{capabilities},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
    ));
    dialogue.says(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    dialogue
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one"}}"#;

/// The backend gives the call back, because its caller has to sign in.
fn given_back(dialogue: &mut Dialogue) -> Vec<String> {
    let (exchange, call) = dialogue.calls.pop().unwrap();
    dialogue.event(Event::SignIn { exchange, fault: wanted(), call })
}

#[test]
fn a_client_that_takes_urls_is_asked_in_the_middle_of_its_call_which_then_goes_on() {
    let mut dialogue = client("2025-11-25", r#"{"elicitation":{"url":{}}}"#);
    assert_eq!(dialogue.says(CALL), [format!("a> {CALL}")]);
    let asked = given_back(&mut dialogue);
    assert!(asked[0].contains(r#""method":"elicitation/create""#) && asked[0].contains(URL), "{asked:?}");
    let again = dialogue.says(r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}"#);
    assert_eq!(again, [format!("a> {CALL}")], "the same call goes on");
}

#[test]
fn who_declines_gets_an_error_and_nothing_is_sent() {
    for answer in [r#""result":{"action":"decline"}"#, r#""result":{"action":"cancel"}"#] {
        let mut dialogue = client("2025-11-25", r#"{"elicitation":{"url":{}}}"#);
        dialogue.says(CALL);
        given_back(&mut dialogue);
        let told = dialogue.says(&format!(r#"{{"jsonrpc":"2.0","id":1,{answer}}}"#));
        assert!(told[0].starts_with("< ") && told[0].contains("declined"), "{told:?}");
        assert!(dialogue.calls.is_empty());
    }
}

#[test]
fn a_client_that_cannot_be_asked_gets_the_address_in_the_form_of_its_revision() {
    for (version, code) in [("2025-11-25", "-32042"), ("2025-06-18", "-32000"), ("2024-11-05", "-32000")] {
        let mut dialogue = client(version, "{}");
        dialogue.says(CALL);
        let told = given_back(&mut dialogue);
        assert!(told[0].contains(&format!(r#""code":{code}"#)) && told[0].contains(URL), "{version}: {told:?}");
        assert_eq!(told[0].contains(r#""elicitations":[{"elicitationId""#), version == "2025-11-25", "{told:?}");
    }
}

#[test]
fn lists_with_nothing_to_show_and_entries_that_no_list_has_lead_to_the_sign_in() {
    let mut dialogue = client("2025-06-18", "{}");
    dialogue.sign_ins = vec![("a".into(), wanted())];
    // Whatever others show is shown.
    let shown = dialogue.says(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert!(shown.last().unwrap().contains(r#""tools":[{"#), "{shown:?}");
    let empty = dialogue.says(r#"{"jsonrpc":"2.0","id":2,"method":"resources/templates/list"}"#);
    assert!(empty[0].contains("sign_in_needed") && empty[0].contains(URL), "{empty:?}");
    let calls = [
        r#""method":"tools/call","params":{"name":"hidden"}"#,
        r#""method":"prompts/get","params":{"name":"a__hidden"}"#,
        r#""method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"hidden"},"argument":{"name":"x","value":""}}"#,
    ];
    for (id, call) in calls.into_iter().enumerate() {
        let sent = dialogue.says(&format!(r#"{{"jsonrpc":"2.0","id":{},{call}}}"#, id + 10));
        assert!(sent[0].starts_with("a> ") && sent[0].contains(r#""name":"hidden""#), "{sent:?}");
        assert!(given_back(&mut dialogue)[0].contains("sign_in_needed"));
    }
    dialogue.sign_ins.clear();
    let unknown = dialogue.says(r#"{"jsonrpc":"2.0","id":20,"method":"tools/call","params":{"name":"hidden"}}"#);
    assert!(unknown[0].contains("Unknown tool: hidden"), "{unknown:?}");
}

#[test]
fn what_only_another_principal_is_shown_cannot_be_called() {
    let mut dialogue = client("2025-06-18", "{}");
    dialogue.catalog = Catalog::new(["a"].map(Arc::from));
    dialogue.catalog.set_private("a", true);
    let of = |whose: &str| ViewKey { whose: Some(crate::Principal::named(whose).into()), ..bare(Era::Legacy) };
    dialogue.catalog.set_view("a", of("anonymous"), view(ListKind::Tools, &[r#"{"name":"mine"}"#]));
    dialogue.catalog.set_view("a", of("corp:eve"), view(ListKind::Tools, &[r#"{"name":"hers"}"#]));
    let list = dialogue.says(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert_eq!(list, [r#"< {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"mine"}]}}"#]);
    assert!(
        dialogue.says(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"mine"}}"#)[0]
            .starts_with("a> ")
    );
    for name in ["hers", "a__hers"] {
        let told =
            dialogue.says(&format!(r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"{name}"}}}}"#));
        assert!(told[0].contains(&format!("Unknown tool: {name}\"")), "{told:?}");
    }
}

#[test]
fn lists_and_instructions_name_the_backends_behind_a_sign_in_and_a_log_message_warns_once() {
    const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let mut dialogue = client("2025-06-18", "{}");
    dialogue.sign_ins = vec![("a".into(), wanted())];
    let told = dialogue.says(LIST);
    let (warning, list) = (&told[0], &told[1]);
    assert!(warning.contains(r#""method":"notifications/message","params":{"level":"warning""#), "{told:?}");
    assert!(warning.contains(URL), "{told:?}");
    let named = format!(r#""_meta":{{"io.signalbox/sign_in":[{{"backend":"a","url":"{URL}"}}]}}"#);
    assert!(list.contains(&named), "{told:?}");
    let again = dialogue.says(LIST);
    assert!(again.len() == 1 && again[0].contains(&named), "{again:?}");
    let mut quiet = client("2025-06-18", "{}");
    quiet.sign_ins = vec![("a".into(), wanted())];
    quiet.says(r#"{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"error"}}"#);
    assert_eq!(quiet.says(LIST).len(), 1, "it wants no warnings");
    let mut new = Dialogue::new(Mode::Pipe);
    new.sign_ins = vec![("a".into(), wanted())];
    let greeted = new.says(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    );
    assert!(greeted[0].contains(r###""instructions":"## a\n\nbackend `a` wants you to sign in"###), "{greeted:?}");
}

#[test]
fn a_call_whose_client_agreed_awaits_the_sign_in_and_no_other_does() {
    let mut dialogue = client("2025-11-25", r#"{"elicitation":{"url":{}}}"#);
    dialogue.says(CALL);
    assert!(!dialogue.calls[0].1.awaits_sign_in);
    given_back(&mut dialogue);
    dialogue.says(r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}"#);
    assert!(dialogue.calls.pop().unwrap().1.awaits_sign_in);
}
