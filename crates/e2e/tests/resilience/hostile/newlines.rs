//! Line breaks in a body on its way to a backend that speaks in lines.

use super::raw::Raw;
use super::{gateway, session, works};

#[tokio::test(flavor = "multi_thread")]
async fn a_pretty_printed_body_reaches_a_stdio_backend_as_one_line() {
    let gateway = gateway().await;
    let mut client = Raw::connect(gateway.address()).await.unwrap();
    let lines = session(&mut client).await;
    for end in ["\n", "\r\n", "\r", "\n\n\t "] {
        let body = r#"{|"jsonrpc": "2.0",|"id": 7,|"method": "tools/call",|"params": {|"name": "greet",|"arguments": {|"name": "Ada \n of two lines"|}|}|}|"#
            .replace('|', end);
        let reply = client.post(&lines, body.as_bytes()).await.unwrap();
        let message = reply.messages().unwrap().pop().unwrap();
        assert_eq!((reply.status, &message["id"]), (200, &7.into()), "{end:?}: {message}");
        let text = message["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains("Ada \n of two lines"), "{end:?}: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_raw_line_break_inside_a_string_is_refused() {
    let gateway = gateway().await;
    let mut client = Raw::connect(gateway.address()).await.unwrap();
    let lines = session(&mut client).await;
    let injected = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"crash"}}"#;
    for end in ["\n", "\r", "\r\n"] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"greet","arguments":{{"name":"a{end}{}{end}"}}}}}}"#,
            injected.replace('"', "\\\"")
        );
        let reply = client.post(&lines, body.as_bytes()).await.unwrap();
        assert_eq!((reply.status, reply.code()), (400, -32700), "{end:?}: {reply:?}");
        works(&mut client, &lines).await;
    }
}
