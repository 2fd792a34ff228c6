//! Dialogues with a bridged_call: an old backend asks, a new client comes back.

use super::*;

const STAY: Duration = Duration::from_secs(60);

struct Dialogue {
    bridged_call: BridgedCall<&'static str>,
    now: Instant,
}

impl Dialogue {
    fn new(capabilities: &'static str) -> Self {
        let backend = Revision::V2025_11_25;
        Self { bridged_call: BridgedCall::new("first", capabilities.into(), backend, STAY), now: Instant::now() }
    }

    fn run(
        &mut self,
        with: impl FnOnce(&mut BridgedCall<&'static str>, Instant, &mut Vec<BridgedCallCommand<&'static str>>),
    ) -> Vec<String> {
        let mut out = Vec::new();
        with(&mut self.bridged_call, self.now, &mut out);
        out.into_iter().map(tell).collect()
    }

    fn asks(&mut self, json: &str) -> Vec<String> {
        let message = envelope(json);
        self.run(|bridged_call, _, out| bridged_call.asked(&message, out))
    }

    fn settles(&mut self) -> Vec<String> {
        self.run(|bridged_call, now, out| bridged_call.settled(now, out))
    }

    fn comes_back(&mut self, who: &'static str, round: u32, responses: &str) -> Result<Vec<String>, Fault> {
        let mut out = Vec::new();
        self.bridged_call.resumed(who, round, responses.as_bytes(), &mut out)?;
        Ok(out.into_iter().map(tell).collect())
    }

    fn answers(&mut self, json: &str) -> Vec<String> {
        let ended = Ended::Answer { message: envelope(json), edits: Edits::new(), status: None };
        self.run(|bridged_call, _, out| bridged_call.ended(ended, out))
    }
}

fn envelope(json: &str) -> Envelope {
    Envelope::parse(Bytes::copy_from_slice(json.as_bytes())).unwrap()
}

fn tell(command: BridgedCallCommand<&'static str>) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    match command {
        BridgedCallCommand::Settle => "settle".to_owned(),
        BridgedCallCommand::Show { to, requests, round } => {
            format!("{to} is shown {} in round {round}", text(&requests))
        }
        BridgedCallCommand::Upstream(draft) => format!("> {}", text(&draft.bytes)),
        BridgedCallCommand::Notify { to, message } => format!("{to} hears {}", message.method().unwrap()),
        BridgedCallCommand::Deliver { to, ended } => match *ended {
            Ended::Answer { message, .. } => format!("{to} gets {}", text(message.bytes())),
            Ended::Fault(fault) => format!("{to} gets {}", fault.reason()),
        },
        BridgedCallCommand::Hold(_) => "hold".to_owned(),
        BridgedCallCommand::Release => "release".to_owned(),
        BridgedCallCommand::Abandon => "abandon".to_owned(),
        BridgedCallCommand::Dropped => "dropped".to_owned(),
    }
}

const ELICIT: &str = r#"{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"name?","requestedSchema":{"type":"object","properties":{}}}}"#;
const SAMPLE: &str =
    r#"{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{"messages":[],"maxTokens":9}}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
const BOTH: &str = r#"{"elicitation":{},"sampling":{}}"#;

#[test]
fn two_questions_are_shown_together_and_the_call_goes_on_with_both_answers() {
    let mut dialogue = Dialogue::new(BOTH);
    assert_eq!(dialogue.asks(ELICIT), ["settle"]);
    assert!(dialogue.asks(SAMPLE).is_empty(), "the moment for further questions runs already");
    let shown = dialogue.settles();
    assert_eq!(shown[0], "hold");
    assert_eq!(
        shown[1],
        r#"first is shown {"q1":{"method":"elicitation/create","params":{"message":"name?","requestedSchema":{"type":"object","properties":{}},"mode":"form"}},"q2":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":9}}} in round 1"#
    );
    assert!(dialogue.bridged_call.is_parked());
    let back = dialogue.comes_back("second", 1, r#"{"q2":{"role":"assistant"},"q1":{"action":"accept","content":{}}}"#);
    assert_eq!(
        back.unwrap(),
        [
            r#"> {"jsonrpc":"2.0","id":7,"result":{"action":"accept","content":{}}}"#,
            r#"> {"jsonrpc":"2.0","id":"s","result":{"role":"assistant"}}"#,
            "release"
        ]
    );
    assert_eq!(dialogue.answers(ANSWER), [format!("second gets {ANSWER}")]);
}

#[test]
fn a_missing_answer_is_asked_for_again_under_its_own_key() {
    let mut dialogue = Dialogue::new(BOTH);
    dialogue.asks(ELICIT);
    dialogue.asks(SAMPLE);
    dialogue.settles();
    let back = dialogue.comes_back("second", 1, r#"{"q1":{"action":"decline"}}"#).unwrap();
    assert_eq!(back[1..], ["release", "settle"]);
    let again = dialogue.settles();
    assert!(again[1].starts_with(r#"second is shown {"q2":"#) && again[1].ends_with("in round 2"), "{again:?}");
}

#[test]
fn the_same_round_is_answered_once() {
    let mut dialogue = Dialogue::new(BOTH);
    dialogue.asks(ELICIT);
    dialogue.settles();
    dialogue.comes_back("second", 1, r#"{"q1":{"action":"accept"}}"#).unwrap();
    let twice = dialogue.comes_back("third", 1, r#"{"q1":{"action":"accept"}}"#).unwrap_err();
    assert!(twice.message.contains("not run a second time"), "{twice}");
    dialogue.asks(SAMPLE);
    dialogue.settles();
    let old = dialogue.comes_back("fourth", 1, "{}").unwrap_err();
    assert_eq!(old.kind, FaultKind::InvalidParams);
    assert!(dialogue.comes_back("fifth", 2, r#"{"q2":{}}"#).is_ok());
}

#[test]
fn an_answer_that_is_no_object_leaves_the_call_parked() {
    let mut dialogue = Dialogue::new(BOTH);
    dialogue.asks(ELICIT);
    dialogue.settles();
    assert!(dialogue.comes_back("second", 1, r#"{"q1":"yes"}"#).unwrap_err().message.contains("q1"));
    assert!(dialogue.bridged_call.is_parked());
    assert!(dialogue.comes_back("second", 1, r#"{"q1":{"action":"cancel"}}"#).is_ok());
}

#[test]
fn what_the_client_did_not_declare_is_refused_to_the_backend() {
    let mut dialogue = Dialogue::new(r#"{"elicitation":{}}"#);
    let refused = dialogue.asks(SAMPLE);
    assert!(refused[0].contains(r#""id":"s","error":{"code":-32601"#), "{refused:?}");
    assert_eq!(refused[1..], ["first gets missing_capability", "abandon"]);
    let mut dialogue = Dialogue::new(r#"{"elicitation":{}}"#);
    assert_eq!(dialogue.asks(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#).len(), 1, "the call goes on without");
    let url = ELICIT.replace(r#""message""#, r#""mode":"url","url":"https://x","elicitationId":"e","message""#);
    assert!(dialogue.asks(&url)[0].contains("-32601"), "no url mode was declared");
}

#[test]
fn what_happens_while_nobody_waits_is_kept_and_bounded() {
    let mut dialogue = Dialogue::new(BOTH);
    dialogue.asks(ELICIT);
    dialogue.settles();
    let note = envelope(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#);
    for _ in 0..MAX_HEARD {
        assert!(dialogue.run(|bridged_call, _, out| bridged_call.notified(note.clone(), out)).is_empty());
    }
    assert_eq!(dialogue.run(|bridged_call, _, out| bridged_call.notified(note.clone(), out)), ["dropped"]);
    assert!(dialogue.answers(ANSWER).is_empty(), "the backend gave up waiting");
    let back = dialogue.comes_back("second", 1, r#"{"q1":{"action":"accept"}}"#).unwrap();
    assert_eq!(back.len(), MAX_HEARD + 1, "the question is withdrawn with the call");
    assert_eq!(back[MAX_HEARD], format!("second gets {ANSWER}"));
}

#[test]
fn a_call_that_nobody_comes_back_for_is_abandoned_once() {
    let mut dialogue = Dialogue::new(BOTH);
    dialogue.asks(ELICIT);
    dialogue.settles();
    dialogue.now += STAY / 2;
    assert!(dialogue.run(|bridged_call, now, out| bridged_call.tick(now, out)).is_empty());
    dialogue.now += STAY / 2;
    assert_eq!(dialogue.run(|bridged_call, now, out| bridged_call.tick(now, out)), ["abandon"]);
    assert!(dialogue.run(|bridged_call, now, out| bridged_call.tick(now, out)).is_empty());
}

#[test]
fn rounds_and_questions_are_bounded() {
    let mut dialogue = Dialogue::new(BOTH);
    for round in 1..=MAX_ROUNDS {
        assert_eq!(dialogue.asks(ELICIT), ["settle"], "round {round}");
        dialogue.settles();
        dialogue.comes_back("again", round, &format!(r#"{{"q{round}":{{"action":"accept"}}}}"#)).unwrap();
    }
    assert!(dialogue.asks(ELICIT)[0].contains("asked too often"));
    let mut dialogue = Dialogue::new(BOTH);
    for _ in 0..MAX_QUESTIONS {
        dialogue.asks(ELICIT);
    }
    assert!(dialogue.asks(ELICIT)[0].contains("asked too often"));
}
