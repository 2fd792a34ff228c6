//! Dialogues with the control: what people want, what the runner is told to do, and what became of it.

use super::*;
use crate::diff::Comparison;
use serde_json::json;

struct Dialogue {
    control: ReplayControl,
    now: Duration,
}

fn recorded(number: u64, method: &str, subject: Option<&str>) -> Arc<RecordedCall> {
    Arc::new(RecordedCall {
        number,
        session: Some(1),
        seq: number * 10,
        last: number * 10 + 1,
        began: number * 1_000_000_000,
        era: signalbox_wire::Era::Legacy,
        method: method.into(),
        subject: subject.map(Into::into),
        request: Some(json!({"jsonrpc": "2.0", "id": number, "method": method}).to_string().into()),
        key: None,
        steps: Vec::new(),
        answer: None,
        afterwards: Vec::new(),
        redacted: false,
    })
}

impl Dialogue {
    /// A handshake and four calls, a second apart; the last is of a second session.
    fn new(speed: Option<f64>) -> Self {
        let first = vec![
            recorded(1, "initialize", None),
            recorded(2, "tools/list", None),
            recorded(3, "tools/call", Some("read_note")),
            recorded(4, "tools/call", Some("write_note")),
        ];
        let second = vec![recorded(5, "tools/call", Some("read_note"))];
        Self { control: ReplayControl::new(vec![first, second], speed), now: Duration::ZERO }
    }

    fn next(&mut self) -> Next {
        self.control.next(self.now)
    }

    /// Sends the call at this place, which is to be next.
    fn sends(&mut self, place: usize) {
        let next = self.next();
        assert!(matches!(&next, Next::Send { index, .. } if *index + 1 == place), "{next:?}");
    }

    fn over(&mut self, place: usize, verdict: ReplayVerdict) {
        let report = CallReport::new(&self.control.calls()[place - 1].recorded, verdict, None);
        let (request, answer) = (json!({"place": place}), json!({"result": {}}));
        self.control.done(place - 1, report, Some((&request, Some(&answer))));
    }

    /// Sends the call at this place, which is answered as recorded.
    fn passes(&mut self, place: usize) {
        self.sends(place);
        self.over(place, ReplayVerdict::Same);
    }

    fn rests(&mut self, state: State) {
        assert_eq!((self.next(), self.control.state()), (Next::Wait(None), state));
    }

    fn word(&self, place: usize) -> Option<&'static str> {
        self.control.calls()[place - 1].report.as_ref().map(|report| report.verdict.word())
    }
}

fn different() -> ReplayVerdict {
    ReplayVerdict::Different(Comparison::default().compare(&json!({"a": 1}), &json!({"a": 2})))
}

#[test]
fn it_begins_paused_plays_to_the_end_and_ends_when_it_is_stopped() {
    let mut run = Dialogue::new(None);
    run.rests(State::Paused);
    run.control.play().unwrap();
    (1..=5).for_each(|place| run.passes(place));
    run.rests(State::Finished);
    assert_eq!(run.control.play(), Err(ControlError::AtEnd));
    assert_eq!(run.control.step(), Err(ControlError::AtEnd));
    run.control.stop();
    assert_eq!(run.next(), Next::End);
    assert_eq!(run.control.seek(1), Err(ControlError::Over));
    assert_eq!(run.control.pause(), Err(ControlError::Over));
}

#[test]
fn a_step_sends_one_call_and_a_pause_waits_for_the_call_that_is_with_the_server() {
    let mut run = Dialogue::new(None);
    run.control.step().unwrap();
    run.sends(1);
    assert_eq!((run.next(), run.control.state()), (Next::Wait(None), State::Stepping));
    run.over(1, ReplayVerdict::Handshake);
    run.rests(State::Paused);
    run.control.play().unwrap();
    run.sends(2);
    run.control.pause().unwrap();
    run.over(2, ReplayVerdict::Same);
    run.rests(State::Paused);
    assert_eq!((run.control.position(), run.control.last()), (2, Some(1)));
    // The last step ends it.
    run.control.seek(5).unwrap();
    run.control.step().unwrap();
    run.passes(5);
    run.rests(State::Finished);
}

#[test]
fn breakpoints_stop_before_a_call_and_once_only() {
    let mut run = Dialogue::new(None);
    assert_eq!(run.control.set_breakpoint(When::Call(2)), Ok(1));
    assert_eq!(run.control.set_breakpoint(When::Tool("read_*".into())), Ok(2));
    assert_eq!(run.control.set_breakpoint(When::Call(6)), Err(ControlError::NoCall { wanted: 6, count: 5 }));
    assert_eq!(run.control.set_breakpoint(When::Call(0)), Err(ControlError::NoCall { wanted: 0, count: 5 }));
    run.control.play().unwrap();
    run.passes(1);
    run.rests(State::Paused);
    assert_eq!(run.control.why(), Some("breakpoint 1: call 2"));
    run.control.play().unwrap();
    run.passes(2);
    run.rests(State::Paused);
    assert_eq!(run.control.why(), Some("breakpoint 2: tool read_*"));
    // A step passes it, too, and what is cleared stops nobody.
    run.control.step().unwrap();
    run.passes(3);
    assert_eq!(run.control.clear_breakpoint(2), Ok(()));
    assert_eq!(run.control.clear_breakpoint(2), Err(ControlError::NoBreakpoint(2)));
    run.control.play().unwrap();
    run.passes(4);
    run.passes(5);
    run.rests(State::Finished);
    assert_eq!(run.control.breakpoints()[0].hits, 1);
    assert_eq!(run.control.clear_breakpoints(), 1);
}

#[test]
fn methods_are_patterns_and_a_difference_stops_after_its_call() {
    let mut run = Dialogue::new(None);
    run.control.set_breakpoint(When::Method("tools/l*".into())).unwrap();
    run.control.set_breakpoint(When::Difference).unwrap();
    run.control.play().unwrap();
    run.passes(1);
    run.rests(State::Paused);
    run.control.play().unwrap();
    run.sends(2);
    run.over(2, different());
    run.rests(State::Paused);
    assert_eq!(run.control.why(), Some("breakpoint 2: a difference"));
    run.control.play().unwrap();
    run.passes(3);
}

#[test]
fn a_seek_forward_leaves_calls_out_and_a_seek_back_sends_them_again_on_a_new_connection() {
    let mut run = Dialogue::new(None);
    run.control.play().unwrap();
    run.passes(1);
    run.control.seek(4).unwrap();
    assert!(run.control.was_skipped(1) && run.control.was_skipped(2) && !run.control.was_skipped(3));
    assert_eq!(run.next(), Next::Send { index: 3, edited: None, reconnect: false });
    run.over(4, different());
    run.passes(5);
    run.rests(State::Finished);
    run.control.seek(3).unwrap();
    run.rests(State::Paused);
    assert_eq!(run.word(4), Some("different"), "it stands until the call is sent again");
    run.control.play().unwrap();
    assert_eq!(run.next(), Next::Send { index: 2, edited: None, reconnect: true });
    run.over(3, ReplayVerdict::Same);
    assert_eq!(run.next(), Next::Send { index: 3, edited: None, reconnect: false });
    run.over(4, ReplayVerdict::Same);
    assert_eq!((run.word(3), run.word(4), run.word(2)), (Some("same"), Some("same"), None));
    assert_eq!(run.control.seek(0), Err(ControlError::NoCall { wanted: 0, count: 5 }));
}

#[test]
fn a_seek_while_a_call_is_with_the_server_keeps_its_verdict() {
    let mut run = Dialogue::new(None);
    run.control.play().unwrap();
    run.sends(1);
    run.control.seek(1).unwrap();
    assert_eq!(run.next(), Next::Wait(None));
    run.over(1, ReplayVerdict::Handshake);
    assert_eq!(run.next(), Next::Send { index: 0, edited: None, reconnect: true });
}

#[test]
fn pauses_are_those_of_the_recording_and_follow_the_speed() {
    let mut run = Dialogue::new(Some(2.0));
    run.control.play().unwrap();
    run.passes(1);
    assert_eq!(run.next(), Next::Wait(Some(Duration::from_millis(500))));
    run.control.set_speed(Some(0.5)).unwrap();
    assert_eq!(run.next(), Next::Wait(Some(Duration::from_secs(2))));
    run.now = Duration::from_secs(2);
    run.passes(2);
    for wrong in [0.09, 10.1, f64::NAN, -1.0] {
        assert_eq!(run.control.set_speed(Some(wrong)), Err(ControlError::Speed));
    }
    // A step waits for nothing, and neither does a run without pauses.
    run.control.step().unwrap();
    run.passes(3);
    run.control.set_speed(None).unwrap();
    run.control.play().unwrap();
    run.passes(4);
    run.passes(5);
}

#[test]
fn an_edit_is_for_the_next_call_only() {
    let mut run = Dialogue::new(None);
    let edit = json!({"method": "tools/call", "params": {"name": "x"}});
    assert_eq!(run.control.modify_next(edit.clone()), Err(ControlError::Handshake(1)));
    run.control.seek(3).unwrap();
    for wrong in [json!(7), json!({"method": 7}), json!({"method": "a", "params": []})] {
        assert_eq!(run.control.modify_next(wrong), Err(ControlError::NoRequest));
    }
    run.control.modify_next(edit.clone()).unwrap();
    run.control.seek(4).unwrap();
    assert_eq!(run.control.edit(), None, "it was for call 3");
    run.control.modify_next(edit).unwrap();
    run.control.step().unwrap();
    let edited = json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "x"}});
    assert_eq!(run.next(), Next::Send { index: 3, edited: Some(edited), reconnect: false });
    run.over(4, ReplayVerdict::Same);
    run.control.step().unwrap();
    assert_eq!(run.next(), Next::Send { index: 4, edited: None, reconnect: false });
}

#[test]
fn an_injected_request_is_sent_even_while_paused_and_moves_nothing() {
    let mut run = Dialogue::new(None);
    let request = json!({"jsonrpc": "2.0", "method": "ping"});
    assert_eq!(run.control.inject(json!({"method": "ping"})), Ok(1));
    assert_eq!(run.next(), Next::Inject { id: 1, request: request.clone() });
    run.control.answered(1, Some(&json!({"result": {}})));
    run.rests(State::Paused);
    assert_eq!(run.control.position(), 0);
    let told = Injection { id: 1, request, over: true, answer: Some(json!({"result": {}})) };
    assert_eq!(run.control.injected().next_back(), Some(&told));
    assert_eq!(run.control.inject(json!([])), Err(ControlError::NoRequest));
    for _ in 0..MAX_INJECTIONS {
        run.control.inject(json!({"method": "ping"})).unwrap();
    }
    assert_eq!(run.control.inject(json!({"method": "ping"})), Err(ControlError::TooManyInjections));
}

#[test]
fn the_messages_of_the_latest_calls_are_kept_and_long_ones_only_by_their_length() {
    let mut run = Dialogue::new(None);
    run.control.play().unwrap();
    run.passes(1);
    assert_eq!(run.control.heard(0).unwrap().request, json!({"place": 1}));
    let long = json!("x".repeat(2 << 20));
    run.sends(2);
    let report = CallReport::new(&run.control.calls()[1].recorded, ReplayVerdict::Same, None);
    run.control.done(1, report, Some((&json!({}), Some(&long))));
    assert_eq!(run.control.heard(1).unwrap().answer, Some(json!("a message of 2097154 bytes, too long to keep")));
}
