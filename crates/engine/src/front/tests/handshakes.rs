//! Handshakes: `initialize`, versions, and the client's description of itself.

use super::*;

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

/// Each session keeps the client's description of itself, so it has a bound.
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
