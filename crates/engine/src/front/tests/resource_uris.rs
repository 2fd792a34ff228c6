//! URIs inside results and arguments where several backends have resources.

use super::*;

fn call(id: u32, tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

fn result(text: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":4,"result":{text}}}"#)
}

/// A link that a client would read from the other of two alike servers.
#[test]
fn links_in_results_are_exposed_as_they_are_read() {
    let mut dialogue = Dialogue::operational();
    dialogue.says(&call(1, "b__echo", "{}"));
    let content = r#"{"content":[{"type":"resource_link","uri":"x://1","name":"n"},{"type":"resource","resource":{"uri":"x://unlisted","text":"t"}},{"type":"resource_link","uri":"https://example.org/","name":"web"},{"type":"text","text":"x://1"}]}"#;
    let sent = dialogue.answers(&result(content));
    let ours = content.replace(r#""uri":"x://1""#, r#""uri":"b+x://1""#).replace("x://unlisted", "b+x://unlisted");
    assert_eq!(sent, [format!(r#"< {{"jsonrpc":"2.0","id":1,"result":{ours}}}"#)]);

    let read = r#"{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"b+x://unlisted"}}"#;
    assert!(dialogue.says(read)[0].starts_with("b>"));

    dialogue.says(&call(3, "echo", "{}"));
    let listed = r#"{"content":[{"type":"resource_link","uri":"x://1","name":"n"}]}"#;
    assert_eq!(dialogue.answers(&result(listed)), [format!(r#"< {{"jsonrpc":"2.0","id":3,"result":{listed}}}"#)]);
}

#[test]
fn prompts_name_resources_as_they_are_read() {
    let mut dialogue = Dialogue::operational();
    let hello = view(ListKind::Prompts, &[r#"{"name":"hello"}"#]).prompts;
    let mut second = view(ListKind::Resources, &[r#"{"uri":"x://1"}"#]);
    second.prompts = hello;
    dialogue.catalog.set_view("b", bare(Era::Legacy), second);
    dialogue.says(r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"b__hello"}}"#);
    let sent = dialogue.answers(&result(
        r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"x://1","text":"t"}}}]}"#,
    ));
    assert!(sent[0].contains(r#""uri":"b+x://1""#), "{sent:?}");
}

/// The signature covers the URIs, and the client that checks it would find it broken.
#[test]
fn signed_results_keep_their_uris() {
    let mut dialogue = Dialogue::operational();
    dialogue.says(&call(1, "b__echo", "{}"));
    let content =
        r#"{"content":[{"type":"resource_link","uri":"x://1","name":"n"}],"_meta":{"io.signalbox/signature":{}}}"#;
    assert_eq!(dialogue.answers(&result(content)), [format!(r#"< {{"jsonrpc":"2.0","id":1,"result":{content}}}"#)]);
}

#[test]
fn arguments_have_the_uris_of_their_backend() {
    let mut dialogue = Dialogue::operational();
    let arguments =
        r#"{"uri":"b+x:\/\/1","all":["b+x://unlisted","a+x://1","b+https://example.org/"],"text":"see b+x://1"}"#;
    let sent = dialogue.says(&call(1, "b__echo", arguments));
    let theirs = r#"{"uri":"x://1","all":["x://unlisted","a+x://1","b+https://example.org/"],"text":"see b+x://1"}"#;
    assert_eq!(sent, [format!("b> {}", call(1, "echo", theirs))]);
    let sent = dialogue.says(&call(2, "echo", r#"{"uri":"b+x://1"}"#));
    assert_eq!(sent, [format!("a> {}", call(2, "echo", r#"{"uri":"b+x://1"}"#))]);
}

/// A-7: a server may read `["secret"]` as `secret`, in a URI that nothing has judged.
#[test]
fn variables_of_a_template_that_are_no_strings_reach_no_backend() {
    let complete = |rest: &str| {
        Dialogue::operational().says(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{{"ref":{{"type":"ref/resource","uri":"x://1"}},{rest}}}}}"#
        ))
    };
    let argument = r#""argument":{"name":"n","value":"v"}"#;
    for bad in [
        r#""argument":["n","v"]"#.to_owned(),
        r#""argument":{"name":["n"],"value":"v"}"#.to_owned(),
        r#""argument":{"name":"n","value":["v"]}"#.to_owned(),
        r#""argument":{"name":"n","value":7}"#.to_owned(),
        format!(r#"{argument},"context":{{"arguments":{{"owner":["secret"]}}}}"#),
        format!(r#"{argument},"context":{{"arguments":{{"a":"b","owner":7}}}}"#),
        format!(r#"{argument},"context":{{"arguments":["secret"]}}"#),
        format!(r#"{argument},"context":["secret"]"#),
    ] {
        let said = complete(&bad);
        assert!(said.len() == 1 && said[0].contains(r#""code":-32602,"message":"params."#), "{bad}: {said:?}");
    }
    for fine in [
        argument.to_owned(),
        format!(r#"{argument},"context":null"#),
        format!(r#"{argument},"context":{{}}"#),
        format!(r#"{argument},"context":{{"arguments":null}}"#),
        format!(r#"{argument},"context":{{"arguments":{{"owner":"ada"}}}}"#),
    ] {
        assert!(complete(&fine)[0].starts_with("a> "), "{fine}");
    }
}
