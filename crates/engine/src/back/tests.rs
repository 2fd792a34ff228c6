//! Dialogues with a back machine: what a backend says, and what the machine does about it.

use super::*;
use crate::exchange::Call;
use crate::front::AuthorizedCall;
use crate::operation_metrics::OperationMetrics;
use crate::profile::ClientProfile;

struct Dialogue {
    machine: BackMachine<&'static str>,
    now: Instant,
}

impl Dialogue {
    fn new(wish: Wish, headers: bool) -> Self {
        let offer = ClientOffer {
            revision: Revision::LATEST_LEGACY,
            capabilities: Bytes::from_static(b"{}"),
            info: Arc::from(r#"{"name":"g","version":"0"}"#),
            instance: Arc::from("0"),
            start_timeout: Duration::from_secs(30),
            probe_timeout: Duration::from_secs(5),
            question_timeout: Duration::from_secs(300),
        };
        Self { machine: BackMachine::new(Arc::from("a"), wish, offer, headers), now: Instant::now() }
    }

    fn run(
        &mut self,
        with: impl FnOnce(&mut BackMachine<&'static str>, Instant, &mut Vec<BackCommand<&'static str>>),
    ) -> Vec<String> {
        let mut out = Vec::new();
        with(&mut self.machine, self.now, &mut out);
        told(out)
    }

    fn opened(&mut self) -> Vec<String> {
        self.run(|machine, now, out| machine.opened(now, out))
    }

    fn says(&mut self, json: &str, about: Option<u64>) -> Vec<String> {
        let message = Envelope::parse(Bytes::copy_from_slice(json.as_bytes())).unwrap();
        self.run(|machine, now, out| machine.received(message, about, None, now, out))
    }

    fn calls(&mut self, who: &'static str, era: Era, json: &str) -> Result<String, Fault> {
        let envelope = Envelope::parse(Bytes::copy_from_slice(json.as_bytes())).unwrap();
        let params = envelope.params().unwrap_or_default();
        let progress = json::path(params, &["_meta", "progressToken"])
            .map(|span| span.shift(envelope.params_span().unwrap().start));
        let revision = if era == Era::Modern { Revision::LATEST } else { Revision::V2025_06_18 };
        let client = ClientProfile::new(revision, Bytes::from_static(b"{}"), None);
        let call = Call {
            method: envelope.method().unwrap().to_owned().into(),
            envelope,
            edits: Edits::new(),
            client: Arc::new(client),
            name: Some("t".into()),
            progress,
            param_headers: None,
            era,
            log_level: None,
            round: None,
            trace: None,
            tries: 0,
            awaits_sign_in: false,
        };
        let sent = self.machine.call(who, AuthorizedCall::unjudged(call), Duration::from_secs(60), self.now)?;
        Ok(String::from_utf8(sent.bytes().to_vec()).unwrap())
    }

    fn legacy() -> Self {
        let mut dialogue = Self::new(Wish::Legacy, false);
        dialogue.opened();
        dialogue.says(INITIALIZED.replace("ID", "1").as_str(), None);
        dialogue
    }

    fn modern() -> Self {
        let mut dialogue = Self::new(Wish::Modern, true);
        dialogue.opened();
        dialogue.says(DISCOVERED, None);
        dialogue
    }
}

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"},"instructions":"hi"}}"#;
const DISCOVERED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}"#;

/// All but what the connection deals with itself.
fn told(out: Vec<BackCommand<&'static str>>) -> Vec<String> {
    out.into_iter().filter(|command| !matches!(command, BackCommand::Own(_))).map(tell).collect()
}

fn tell(command: BackCommand<&'static str>) -> String {
    let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    match command {
        BackCommand::Transmit(message) => format!("> {}", text(message.bytes())),
        BackCommand::Abort(key) => format!("abort {key}"),
        BackCommand::Answer { to, message, edits, .. } => format!("{to}: {}", text(&edits.apply(message.bytes()))),
        BackCommand::Fail { to, fault, .. } => format!("{to}! {}: {}", fault.reason(), fault.message),
        BackCommand::SignIn { to, fault, call } => format!("{to} signs in for {}: {}", call.method, fault.message),
        BackCommand::Notify { about, message } => format!("note {about:?}: {}", message.method().unwrap()),
        BackCommand::Ask { about, message } => format!("ask {about:?}: {}", message.method().unwrap()),
        BackCommand::Ready(profile) => format!("ready {}", profile.revision.as_str()),
        BackCommand::Unusable(fault) => format!("unusable: {}", fault.message),
        BackCommand::Stray { what, .. } => format!("stray {what}"),
        BackCommand::Own(_) => unreachable!("it is left out"),
        BackCommand::Unfinished { to, reach, call, .. } => {
            let call = String::from_utf8(call.edits.apply(call.envelope.bytes()).to_vec()).unwrap();
            format!("{to} unfinished {reach:?} {call}")
        }
        BackCommand::TaskMade { to, message, edits, .. } => {
            format!("{to} is given a task {}", String::from_utf8(edits.apply(message.bytes()).to_vec()).unwrap())
        }
        BackCommand::Rewritten(parts) => format!("rewritten {parts:?}"),
    }
}

#[test]
fn a_server_of_the_new_era_is_found_by_the_probe() {
    let mut dialogue = Dialogue::new(Wish::Auto, false);
    assert!(dialogue.opened()[0].contains(r#""method":"server/discover""#));
    assert_eq!(dialogue.says(DISCOVERED, None), ["ready 2026-07-28"]);
}

#[test]
fn any_other_error_to_the_probe_means_the_old_era() {
    for code in [-32601, -32602, -32000, -1] {
        let mut dialogue = Dialogue::new(Wish::Auto, false);
        dialogue.opened();
        let next =
            dialogue.says(&format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"no"}}}}"#), None);
        assert!(next[0].contains(r#""method":"initialize""#), "{code}: {next:?}");
        let ready = dialogue.says(&INITIALIZED.replace("ID", "2"), None);
        assert_eq!(ready, [r#"> {"jsonrpc":"2.0","method":"notifications/initialized"}"#, "ready 2025-06-18"]);
        assert_eq!(dialogue.machine.profile().unwrap().instructions.as_deref(), Some("hi"));
    }
}

#[test]
fn the_handshake_of_both_eras_names_the_gateway() {
    for wish in [Wish::Legacy, Wish::Modern] {
        let hello = Dialogue::new(wish, false).opened();
        assert!(hello[0].contains(r#""io.signalbox/instance":"0""#), "{hello:?}");
    }
}

#[test]
fn a_refusal_that_offers_the_version_we_asked_for_is_asked_once_more() {
    let refusal = |id| {
        let data = r#"{"supported":["2026-07-28"],"requested":"2026-07-28"}"#;
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32022,"message":"no","data":{data}}}}}"#)
    };
    let mut dialogue = Dialogue::new(Wish::Auto, true);
    assert!(dialogue.opened()[0].contains(r#""id":1,"method":"server/discover""#));
    assert!(dialogue.says(&refusal(1), Some(1))[0].contains(r#""id":2,"method":"server/discover""#));
    assert!(dialogue.says(&refusal(2), Some(2))[0].contains(r#""method":"initialize""#));
}

#[test]
fn silence_after_the_probe_means_the_old_era_and_silence_after_that_the_end() {
    let mut dialogue = Dialogue::new(Wish::Auto, false);
    dialogue.opened();
    dialogue.now += Duration::from_secs(6);
    assert!(dialogue.run(|machine, now, out| machine.tick(now, out))[0].contains("initialize"));
    dialogue.now += Duration::from_secs(31);
    let end = dialogue.run(|machine, now, out| machine.tick(now, out));
    assert_eq!(end, ["unusable: backend `a` did not answer the handshake in time"]);
}

/// A server that starts slowly answers the probe after `initialize` was sent, and is of the new era.
#[test]
fn a_late_answer_to_the_probe_still_tells_the_era() {
    for refused_first in [false, true] {
        let mut dialogue = Dialogue::new(Wish::Auto, false);
        dialogue.opened();
        dialogue.now += Duration::from_secs(6);
        assert!(dialogue.run(|machine, now, out| machine.tick(now, out))[0].contains("initialize"));
        dialogue.now += Duration::from_secs(20);
        let refusal = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"no"}}"#;
        if refused_first {
            assert_eq!(dialogue.says(refusal, None), [""; 0]);
        }
        let ready = dialogue.says(DISCOVERED, None);
        assert_eq!(ready.last().unwrap(), "ready 2026-07-28", "{ready:?}");
        if !refused_first {
            assert_eq!(dialogue.says(refusal, None), ["stray answer"]);
        }
        assert!(dialogue.machine.is_ready());
    }
}

/// An old server that starts slowly refuses the probe late, and is greeted once.
#[test]
fn a_late_refusal_of_the_probe_leaves_initialize_to_be_answered() {
    let no = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#;
    let mut dialogue = Dialogue::new(Wish::Auto, false);
    dialogue.opened();
    dialogue.now += Duration::from_secs(6);
    assert_eq!(dialogue.run(|machine, now, out| machine.tick(now, out)).len(), 1);
    assert_eq!(dialogue.says(no, None), [""; 0]);
    assert_eq!(dialogue.says(&INITIALIZED.replace("ID", "2"), None).last().unwrap(), "ready 2025-06-18");

    let mut dialogue = Dialogue::new(Wish::Auto, false);
    dialogue.opened();
    dialogue.now += Duration::from_secs(6);
    dialogue.run(|machine, now, out| machine.tick(now, out));
    let refusal = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"never"}}"#;
    assert_eq!(dialogue.says(refusal, None), [""; 0]);
    assert_eq!(dialogue.says(no, None), ["unusable: backend `a` refused `initialize`: never"]);
}

#[test]
fn an_unreachable_backend_is_not_asked_twice() {
    let mut dialogue = Dialogue::new(Wish::Auto, true);
    dialogue.opened();
    let fault = Fault::new(FaultKind::BackendDown, "refused");
    assert_eq!(dialogue.run(|machine, now, out| machine.failed(1, fault, now, out)), ["unusable: refused"]);
}

/// Proves S-14 and NO-6.
#[test]
fn calls_get_ids_and_tokens_of_the_gateway_and_find_their_way_back() {
    let mut dialogue = Dialogue::legacy();
    let one = dialogue.calls(
        "x",
        Era::Legacy,
        r#"{"jsonrpc":"2.0","id":"same","method":"tools/call","params":{"name":"t","_meta":{"progressToken":"p"}}}"#,
    );
    assert_eq!(
        one.unwrap(),
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":2}}}"#
    );
    dialogue
        .calls("y", Era::Legacy, r#"{"jsonrpc":"2.0","id":"same","method":"tools/call","params":{"name":"t"}}"#)
        .unwrap();
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}"#;
    assert_eq!(dialogue.says(progress, None), [r#"note Some("x"): notifications/progress"#]);
    assert_eq!(
        dialogue.says(r#"{"jsonrpc":"2.0","id":3,"result":{"b":1}}"#, None),
        [r#"y: {"jsonrpc":"2.0","id":3,"result":{"b":1}}"#]
    );
    assert_eq!(dialogue.says(r#"{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":""}}"#, None).len(), 1);
    assert_eq!(dialogue.says(progress, None), ["stray progress"]);
}

#[test]
fn answers_that_fit_nothing_reach_nobody() {
    let mut dialogue = Dialogue::legacy();
    dialogue
        .calls("x", Era::Legacy, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#)
        .unwrap();
    for stray in [r#""2""#, "2.0", "99", "-2"] {
        let said = dialogue.says(&format!(r#"{{"jsonrpc":"2.0","id":{stray},"result":{{}}}}"#), None);
        assert_eq!(said, ["stray answer"], "{stray}");
    }
    // On the stream of another request an answer under our id is none.
    assert_eq!(dialogue.says(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#, Some(7)), ["stray answer"]);
    assert_eq!(dialogue.says(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#, Some(2)).len(), 1);
    assert_eq!(dialogue.says(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#, Some(2)), ["stray answer"]);
    assert_eq!(dialogue.machine.strays().duplicates, 1);
}

#[test]
fn an_error_that_could_not_read_our_id_still_answers_its_stream() {
    let mut dialogue = Dialogue::legacy();
    dialogue
        .calls("x", Era::Legacy, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#)
        .unwrap();
    let said = dialogue.says(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#, Some(2));
    assert!(said[0].starts_with("x: "), "{said:?}");
}

#[test]
fn how_long_the_backend_takes_is_counted_however_a_request_ends() {
    let call = |id: u64| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#);
    let mut dialogue = Dialogue::legacy();
    let timed = Arc::new(OperationMetrics::default());
    dialogue.machine.timed = OperationTimer::new(Some(Arc::clone(&timed)));
    for (client, id) in [("x", 1), ("y", 2), ("z", 3)] {
        dialogue.calls(client, Era::Legacy, &call(id)).unwrap();
    }
    dialogue.now += Duration::from_millis(15);
    dialogue.says(r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#, None);
    dialogue.says(r#"{"jsonrpc":"2.0","id":3,"result":{"content":[],"isError":true}}"#, None);
    dialogue.run(|machine, now, out| machine.lost("was killed by signal 9", now, out));
    let read = timed.read();
    let told: Vec<_> = read.iter().map(|(key, took)| (*key, took.count, took.total_us)).collect();
    let one = |error| (("tools/call", error), 1, 15_000);
    assert_eq!(told, [one(""), one("tool_error"), one("backend_died")]);
}

#[test]
fn a_dead_backend_ends_its_calls_with_the_reason() {
    let mut dialogue = Dialogue::legacy();
    dialogue
        .calls("x", Era::Legacy, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#)
        .unwrap();
    let said = dialogue.run(|machine, now, out| machine.lost("was killed by signal 9", now, out));
    assert_eq!(said, ["x! backend_died: backend `a` ended while it worked on this call: was killed by signal 9"]);
}

#[test]
fn a_call_that_times_out_is_cancelled_at_the_backend() {
    let mut dialogue = Dialogue::legacy();
    dialogue
        .calls("x", Era::Legacy, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#)
        .unwrap();
    dialogue.now += Duration::from_secs(61);
    let said = dialogue.run(|machine, now, out| machine.tick(now, out));
    assert_eq!(
        said,
        [
            "x! timed_out: backend `a` did not answer within 60 s",
            r#"> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"timed out"}}"#,
            "abort 2"
        ]
    );
    assert_eq!(dialogue.says(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#, None), ["stray answer"]);
    assert_eq!(dialogue.machine.strays().late, 1);
}

#[test]
fn ping_is_answered_here_and_other_questions_go_on() {
    let mut dialogue = Dialogue::legacy();
    assert_eq!(
        dialogue.says(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#, None),
        [r#"> {"jsonrpc":"2.0","id":"p","result":{}}"#]
    );
    assert_eq!(dialogue.says(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#, None), ["ask None: roots/list"]);
}

#[test]
fn an_old_client_reaches_a_new_server_with_plain_methods() {
    let mut dialogue = Dialogue::modern();
    let sent = dialogue
        .calls("x", Era::Legacy, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#)
        .unwrap();
    assert_eq!(
        sent,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"g","version":"0"}},"name":"t"}}"#
    );
    let answer = r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{}}}"#;
    let said = dialogue.says(answer, Some(2));
    let as_it_came = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#;
    assert_eq!(said, [format!("x unfinished Input {as_it_came}")]);
    let fault = dialogue
        .calls("x", Era::Legacy, r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"t"}}"#)
        .unwrap_err();
    assert_eq!(fault.message, "resources/subscribe cannot be carried between revisions 2025-06-18 and 2026-07-28");
}

#[test]
fn a_new_client_reaches_an_old_server_with_plain_methods() {
    let mut dialogue = Dialogue::legacy();
    dialogue
        .calls("x", Era::Modern, r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"t"}}"#)
        .unwrap();
    assert_eq!(
        dialogue.says(r#"{"jsonrpc":"2.0","id":2,"result":{"contents":[]}}"#, None),
        [
            r#"x: {"jsonrpc":"2.0","id":2,"result":{"contents":[],"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}"#
        ]
    );
    let own =
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","_meta":{{"x/y":1,{own}}}}}}}"#
    );
    assert_eq!(
        dialogue.calls("x", Era::Modern, &call).unwrap(),
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t","_meta":{"x/y":1}}}"#
    );
}

#[test]
fn a_task_that_an_old_server_makes_of_a_new_call_can_be_waited_for_in_its_place() {
    let mut dialogue = Dialogue::legacy();
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","task":{}}}"#;
    dialogue.calls("ann", Era::Modern, call).unwrap();
    let made =
        r#"{"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"x","status":"working","createdAt":"c","ttl":5}}}"#;
    let said = dialogue.says(made, None);
    assert!(said[0].starts_with("ann is given a task") && said[0].contains(r#""resultType":"task""#), "{said:?}");
    let (now, hour) = (dialogue.now, Duration::from_secs(3600));
    let sent = dialogue.machine.await_task("ann", "x", Revision::LATEST, hour, now).unwrap();
    assert_eq!(sent.bytes(), r#"{"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"x"}}"#);
    assert_eq!(dialogue.machine.task_of(|who| *who == "ann").as_deref(), Some("x"));
    let done = dialogue.says(r#"{"jsonrpc":"2.0","id":3,"result":{"content":[]}}"#, None);
    assert_eq!(
        done,
        [
            r#"ann: {"jsonrpc":"2.0","id":3,"result":{"content":[],"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}"#
        ]
    );
}

/// An old server's question extends the silence time-out of its call, until it is answered.
#[test]
fn a_call_may_be_silent_while_the_client_is_asked() {
    let call = r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"t"}}"#;
    let question = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}"#;
    // On a pipe the question does not say which call it is about; over HTTP it comes on the call's stream.
    for about in [None, Some(2)] {
        let mut dialogue = Dialogue::legacy();
        dialogue.calls("x", Era::Legacy, call).unwrap();
        assert_eq!(dialogue.says(question, about).len(), 1);
        dialogue.now += Duration::from_secs(61);
        assert_eq!(dialogue.run(|machine, now, out| machine.tick(now, out)), [""; 0], "{about:?}");
        let reply = Draft::word("", builder::response(&RawId::from_token(Bytes::from_static(b"\"q\"")), b"{}"));
        assert!(dialogue.machine.replies(&reply, dialogue.now));
        dialogue.now += Duration::from_secs(59);
        assert_eq!(dialogue.run(|machine, now, out| machine.tick(now, out)), [""; 0]);
        dialogue.now += Duration::from_secs(2);
        assert!(dialogue.run(|machine, now, out| machine.tick(now, out))[0].contains("did not answer within 60"));
    }
}

/// Nor does a question that is never answered keep its call for ever, or one that was taken back.
#[test]
fn a_question_holds_its_call_for_a_bounded_time() {
    let call = r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"t"}}"#;
    let question = r#"{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{}}"#;
    let withdrawn = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    for taken_back in [false, true] {
        let mut dialogue = Dialogue::legacy();
        dialogue.calls("x", Era::Legacy, call).unwrap();
        dialogue.says(question, None);
        if taken_back {
            dialogue.says(withdrawn, None);
        }
        dialogue.now += Duration::from_secs(if taken_back { 61 } else { 361 });
        assert!(dialogue.run(|machine, now, out| machine.tick(now, out))[0].contains("did not answer within 60"));
    }
}

#[test]
fn the_gateway_uses_no_entry_by_itself() {
    let mut dialogue = Dialogue::legacy();
    let mut sends = |name| dialogue.machine.own_request("own", name, "", Duration::from_secs(1), dialogue.now).is_ok();
    assert!([method::TOOLS_LIST, method::PING, method::RESOURCES_SUBSCRIBE].into_iter().all(&mut sends));
    for name in [method::TOOLS_CALL, method::PROMPTS_GET, method::RESOURCES_READ, method::COMPLETION_COMPLETE] {
        assert!(!sends(name), "{name}");
    }
}
