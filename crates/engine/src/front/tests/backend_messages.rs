//! Progress, log messages and questions that a backend sends while calls run.

use super::*;

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
