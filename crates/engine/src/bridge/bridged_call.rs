//! A call of the new era at an old backend, which may ask the client something during the call.
//!
//! The old backend asks in the middle of the call and waits. The client gets the question as the answer to its request,
//! and continues with a new request. In between the call is *parked*: the backend still works on it, but no exchange
//! waits for it.
//!
//! ```text
//! asked ─► settled (questions gathered) ─► shown, parked ─► resumed by another exchange ─► ... ─► ended
//! ```
//! `H` identifies the exchange that waits; the machine only carries it.

use super::{capabilities, questions};
use crate::back::Draft;
use crate::fault::{Fault, FaultKind};
use crate::question_origin;
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, RawId, Revision, builder, codes, json};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Maximum number of question rounds per call.
pub const MAX_ROUNDS: u32 = 16;
/// Maximum number of open questions per call.
pub const MAX_QUESTIONS: usize = 32;
/// Maximum number of notifications buffered while the call is parked.
pub const MAX_HEARD: usize = 64;
/// Maximum number of bytes of those notifications.
pub const MAX_HEARD_BYTES: usize = 256 * 1024;

/// End of a call.
#[derive(Clone, Debug)]
pub enum BridgedCallEnd {
    /// The backend answered with a result or an error.
    Answer {
        /// The backend's answer, unmodified.
        message: Envelope,
        /// Changes made by the bridge.
        edits: Edits,
        /// HTTP status of the answer.
        status: Option<u16>,
    },
    /// The call failed without an answer.
    Fault(Fault),
}

/// Command of the machine to its driver.
#[derive(Clone, Debug)]
pub enum BridgedCallCommand<H> {
    /// Call [`BridgedCall::settled`] after a moment in which more questions may arrive.
    Settle,
    /// Answer this exchange with the questions. The call is parked.
    Show {
        /// Exchange that waits for the call.
        to: H,
        /// The `inputRequests` object with the questions.
        requests: Bytes,
        /// Round to name in the ticket.
        round: u32,
    },
    /// Send this message to the backend.
    Upstream(Draft),
    /// Pass a notification on to the client.
    Notify {
        /// Exchange that waits for the call.
        to: H,
        /// The notification to pass on.
        message: Envelope,
    },
    /// Deliver the end of the call.
    Deliver {
        /// Exchange that waits for the call.
        to: H,
        /// Answer or failure of the call.
        ended: Box<BridgedCallEnd>,
    },
    /// Suspend the time-out of the call until then, because the backend waits for the client.
    Hold(Instant),
    /// Resume the time-out: the backend has its answers.
    Release,
    /// Cancel the call at the backend: the client did not resume it.
    Abandon,
    /// Count a dropped notification.
    Dropped,
}

#[derive(Clone, Debug)]
struct Question {
    key: String,
    id: RawId,
    method: String,
    /// Params in the form of the new era.
    params: Bytes,
    shown: bool,
}

/// State machine of one call. See the [module documentation](self).
#[derive(Debug)]
pub struct BridgedCall<H> {
    capabilities: Bytes,
    backend: Revision,
    park_timeout: Duration,
    waiting: Option<H>,
    questions: Vec<Question>,
    next_key: u32,
    rounds: u32,
    settling: bool,
    notifications: VecDeque<Envelope>,
    end: Option<Box<BridgedCallEnd>>,
    deadline: Option<Instant>,
}

impl<H: Clone> BridgedCall<H> {
    /// Creates the machine for a call that was just sent. `capabilities` are the client's, `stay` is the time limit for
    /// a parked call.
    pub fn new(to: H, capabilities: Bytes, backend: Revision, stay: Duration) -> Self {
        Self {
            capabilities,
            backend,
            park_timeout: stay,
            waiting: Some(to),
            questions: Vec::new(),
            next_key: 1,
            rounds: 0,
            settling: false,
            notifications: VecDeque::new(),
            end: None,
            deadline: None,
        }
    }

    /// Returns the exchange that waits for the call now.
    pub fn bound(&self) -> Option<&H> {
        self.waiting.as_ref()
    }

    /// Returns true while no exchange waits for the call.
    pub fn is_parked(&self) -> bool {
        self.waiting.is_none()
    }

    /// Handles a request of the backend for the client.
    pub fn asked(&mut self, message: &Envelope, out: &mut Vec<BridgedCallCommand<H>>) {
        let (Some(id), Some(method)) = (message.id(), message.method()) else { return };
        let params = message.params().unwrap_or(b"{}");
        if !capabilities::allows(&self.capabilities, method, params) {
            out.push(refusal(&id, codes::METHOD_NOT_FOUND, "the client declared no capability for this request"));
            return self.fail_undeclared(method, params, out);
        }
        if let Err(no) = question_origin::check(method, params) {
            return out.push(BridgedCallCommand::Upstream(Draft::word("", no.reply(&id))));
        }
        if self.rounds >= MAX_ROUNDS || self.questions.len() >= MAX_QUESTIONS {
            return out.push(refusal(&id, codes::INTERNAL_ERROR, "this call has asked too often"));
        }
        let question = Question {
            key: format!("q{}", self.next_key),
            id,
            method: method.to_owned(),
            params: questions::to_modern(method, params),
            shown: false,
        };
        self.next_key += 1;
        self.questions.push(question);
        self.settle(out);
    }

    /// Fails the call because the client did not declare the capability that the question needs.
    fn fail_undeclared(&mut self, method: &str, params: &[u8], out: &mut Vec<BridgedCallCommand<H>>) {
        let Some((fault, to)) = super::undeclared(method, params).zip(self.waiting.clone()) else { return };
        self.over();
        out.push(BridgedCallCommand::Deliver { to, ended: Box::new(BridgedCallEnd::Fault(fault)) });
        out.push(BridgedCallCommand::Abandon);
    }

    /// Ends the call without an answer: it was cancelled, or answered in another way.
    pub fn over(&mut self) {
        self.waiting = None;
        self.deadline = None;
        self.questions.clear();
        self.notifications.clear();
    }

    /// Removes a question that the backend cancelled.
    pub fn withdrawn(&mut self, id: &RawId) {
        self.questions.retain(|question| question.id != *id);
    }

    fn settle(&mut self, out: &mut Vec<BridgedCallCommand<H>>) {
        if self.waiting.is_some() && !self.settling {
            self.settling = true;
            out.push(BridgedCallCommand::Settle);
        }
    }

    /// Shows the gathered questions to the client.
    pub fn settled(&mut self, now: Instant, out: &mut Vec<BridgedCallCommand<H>>) {
        self.settling = false;
        if self.questions.is_empty() {
            return;
        }
        let Some(to) = self.waiting.take() else { return };
        let mut requests = b"{".to_vec();
        for (index, question) in self.questions.iter_mut().enumerate() {
            question.shown = true;
            if index > 0 {
                requests.push(b',');
            }
            json::write_quoted(&mut requests, &question.key);
            requests.extend_from_slice(b":{\"method\":");
            json::write_quoted(&mut requests, &question.method);
            requests.extend_from_slice(b",\"params\":");
            requests.extend_from_slice(&question.params);
            requests.push(b'}');
        }
        requests.push(b'}');
        self.rounds += 1;
        let until = now + self.park_timeout;
        self.deadline = Some(until);
        out.push(BridgedCallCommand::Hold(until));
        out.push(BridgedCallCommand::Show { to, requests: requests.into(), round: self.rounds });
    }

    /// Resumes the call with the client's answers.
    ///
    /// # Errors
    /// Returns a fault if this round was answered before, or an answer is not an object. The call is then unchanged.
    pub fn resumed(
        &mut self,
        to: H,
        round: u32,
        responses: &[u8],
        out: &mut Vec<BridgedCallCommand<H>>,
    ) -> Result<(), Fault> {
        if self.waiting.is_some() || round != self.rounds {
            let text = "this input was already given and the call continues with it; it is not run a second time";
            return Err(Fault::new(FaultKind::InvalidParams, text));
        }
        let given = |key: &str| json::member(responses, key).map(|span| span.of(responses));
        for question in self.questions.iter().filter(|question| question.shown) {
            if given(&question.key).is_some_and(|answer| !answer.starts_with(b"{")) {
                let text = format!("params.inputResponses.{} must be an object", question.key);
                return Err(Fault::new(FaultKind::InvalidParams, text));
            }
        }
        self.questions.retain(|question| match given(&question.key).filter(|_| question.shown) {
            Some(answer) => {
                let reply = questions::reply(&question.id, &question.method, answer, self.backend);
                out.push(BridgedCallCommand::Upstream(Draft::word("", reply)));
                false
            }
            None => true,
        });
        self.deadline = None;
        self.waiting = Some(to.clone());
        for message in self.notifications.drain(..) {
            out.push(BridgedCallCommand::Notify { to: to.clone(), message });
        }
        match self.end.take() {
            Some(ended) => out.push(BridgedCallCommand::Deliver { to, ended }),
            None => {
                out.push(BridgedCallCommand::Release);
                if !self.questions.is_empty() {
                    self.settle(out);
                }
            }
        }
        Ok(())
    }

    /// Handles a notification of the backend about the call.
    pub fn notified(&mut self, message: Envelope, out: &mut Vec<BridgedCallCommand<H>>) {
        match &self.waiting {
            Some(to) => out.push(BridgedCallCommand::Notify { to: to.clone(), message }),
            None if self.has_room_for(&message) => self.notifications.push_back(message),
            None => out.push(BridgedCallCommand::Dropped),
        }
    }

    fn has_room_for(&self, message: &Envelope) -> bool {
        let bytes: usize = self.notifications.iter().map(|one| one.bytes().len()).sum();
        self.notifications.len() < MAX_HEARD && bytes + message.bytes().len() <= MAX_HEARD_BYTES
    }

    /// Ends the call. If it is parked, the end is stored until the client resumes it.
    pub fn ended(&mut self, ended: BridgedCallEnd, out: &mut Vec<BridgedCallCommand<H>>) {
        self.questions.clear();
        match &self.waiting {
            Some(to) => out.push(BridgedCallCommand::Deliver { to: to.clone(), ended: Box::new(ended) }),
            None => self.end = Some(Box::new(ended)),
        }
    }

    /// Gives up a parked call that the client did not resume in time.
    pub fn tick(&mut self, now: Instant, out: &mut Vec<BridgedCallCommand<H>>) {
        if self.waiting.is_none() && self.deadline.is_some_and(|until| until <= now) {
            self.deadline = None;
            // A client that resumes the call right now gets this fault at once.
            let text = "the call waited too long for this input and was given up; it is not run a second time";
            self.end = Some(Box::new(BridgedCallEnd::Fault(Fault::new(FaultKind::InvalidParams, text))));
            out.push(BridgedCallCommand::Abandon);
        }
    }
}

fn refusal<H>(id: &RawId, code: i64, text: &str) -> BridgedCallCommand<H> {
    BridgedCallCommand::Upstream(Draft::word("", builder::error(Some(id), code, text, None)))
}

#[cfg(test)]
mod tests {
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
            let ended = BridgedCallEnd::Answer { message: envelope(json), edits: Edits::new(), status: None };
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
                BridgedCallEnd::Answer { message, .. } => format!("{to} gets {}", text(message.bytes())),
                BridgedCallEnd::Fault(fault) => format!("{to} gets {}", fault.reason()),
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
        let back =
            dialogue.comes_back("second", 1, r#"{"q2":{"role":"assistant"},"q1":{"action":"accept","content":{}}}"#);
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
        assert_eq!(
            dialogue.asks(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#).len(),
            1,
            "the call goes on without"
        );
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
}
