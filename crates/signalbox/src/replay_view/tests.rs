//! Dialogues with the view: which keys are pressed, what is to be done, and what is to be seen then.

use super::*;
use crate::replay_view::ReplayViewAction;
use crate::watch::Key;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;
use signalbox_replay::RecordedCall;
use signalbox_replay::run::control::{Next, Preview};
use signalbox_wire::Era;
use std::sync::Arc;
use std::time::Duration;

struct Dialogue {
    view: ReplayView,
    run: ReplayControl,
}

fn call(number: u64, tool: &str) -> Arc<RecordedCall> {
    let request = json!({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool}});
    Arc::new(RecordedCall {
        number,
        session: Some(1),
        seq: number,
        last: number,
        began: number,
        era: Era::Legacy,
        method: "tools/call".into(),
        subject: Some(tool.into()),
        request: Some(request.to_string().into()),
        key: None,
        steps: Vec::new(),
        answer: None,
        afterwards: Vec::new(),
        redacted: false,
    })
}

impl Dialogue {
    fn new() -> Self {
        let calls = vec![call(1, "first"), call(2, "sec\u{1b}[2Jond"), call(3, "third")];
        Self { view: ReplayView::new("replay notes.tape", false), run: ReplayControl::new(vec![calls], None) }
    }

    fn press(&mut self, key: Key) -> Option<ReplayViewAction> {
        self.view.key(key, &self.run)
    }

    fn char(&mut self, char: char) -> Option<ReplayViewAction> {
        self.press(Key::Char(char))
    }

    /// Sends the next call; it is answered so.
    fn sends(&mut self, verdict: ReplayVerdict) {
        self.run.step().unwrap();
        let Next::Send { index, .. } = self.run.next(Duration::ZERO) else { panic!("nothing is sent") };
        let recorded = &self.run.calls()[index].recorded;
        let report = CallReport {
            number: recorded.number,
            seq: recorded.seq,
            session: recorded.session,
            method: recorded.method.to_string(),
            subject: recorded.subject.as_deref().map(ToOwned::to_owned),
            verdict,
            took: Some(Duration::from_millis(3)),
            edited: false,
        };
        let (request, answer) = (json!({"method": "tools/call"}), json!({"result": {"said": "\u{1b}]0;x\u{7}"}}));
        self.run.done(index, report, Some((&request, Some(&answer))));
    }

    fn picture(&self, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(&self.view, &self.run, frame)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let rows = buffer.content().chunks(usize::from(width.max(1)));
        rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned() + "\n").collect()
    }
}

#[test]
fn keys_say_what_is_to_be_done() {
    let mut dialogue = Dialogue::new();
    assert_eq!(dialogue.char(' '), Some(ReplayViewAction::Play));
    dialogue.run.play().unwrap();
    assert_eq!(dialogue.char(' '), Some(ReplayViewAction::Pause));
    assert_eq!(dialogue.char('n'), Some(ReplayViewAction::Step));
    assert_eq!(dialogue.char('e'), Some(ReplayViewAction::Edit));
    assert_eq!(dialogue.char('i'), Some(ReplayViewAction::Inject));
    assert_eq!(dialogue.char('z'), None);
    assert_eq!(dialogue.char('q'), Some(ReplayViewAction::Quit));
    assert_eq!(dialogue.press(Key::Interrupt), Some(ReplayViewAction::Quit));
}

#[test]
fn the_cursor_follows_the_run_until_it_is_moved() {
    let mut dialogue = Dialogue::new();
    dialogue.sends(ReplayVerdict::Same);
    assert_eq!(dialogue.view.cursor(&dialogue.run), 1);
    dialogue.char(']');
    dialogue.press(Key::Right);
    assert_eq!(dialogue.char('b'), Some(ReplayViewAction::Break(3)));
    dialogue.run.set_breakpoint(When::Call(3)).unwrap();
    assert_eq!(dialogue.char('b'), Some(ReplayViewAction::Clear(1)), "the same key takes it away");
    dialogue.press(Key::Left);
    dialogue.press(Key::Up);
    dialogue.char('[');
    assert_eq!(dialogue.char('g'), Some(ReplayViewAction::Seek(1)));
    assert_eq!(dialogue.view.cursor(&dialogue.run), 1, "it follows again");
    dialogue.press(Key::End);
    assert_eq!(dialogue.view.cursor(&dialogue.run), 2);
    dialogue.press(Key::Esc);
    assert_eq!(dialogue.view.cursor(&dialogue.run), 1);
}

#[test]
fn speeds_go_from_a_tenth_to_no_pauses() {
    let mut dialogue = Dialogue::new();
    assert_eq!(dialogue.char('+'), Some(ReplayViewAction::Speed(None)));
    assert_eq!(dialogue.char('-'), Some(ReplayViewAction::Speed(Some(10.0))));
    dialogue.run.set_speed(Some(1.0)).unwrap();
    assert_eq!(dialogue.char('+'), Some(ReplayViewAction::Speed(Some(2.0))));
    assert_eq!(dialogue.char('-'), Some(ReplayViewAction::Speed(Some(0.5))));
    dialogue.run.set_speed(Some(0.1)).unwrap();
    assert_eq!(dialogue.char('-'), Some(ReplayViewAction::Speed(Some(0.1))));
    dialogue.run.set_speed(Some(10.0)).unwrap();
    assert_eq!(dialogue.char('+'), Some(ReplayViewAction::Speed(None)));
}

#[test]
fn verdicts_breakpoints_the_position_and_the_next_request_are_shown() {
    let mut dialogue = Dialogue::new();
    dialogue.sends(ReplayVerdict::Unanswered);
    dialogue.run.set_breakpoint(When::Call(3)).unwrap();
    let preview =
        Preview { request: Some(json!({"method": "tools/call", "id": 2})), not_sent: Some(ReplayVerdict::FromTape) };
    dialogue.run.previewed(1, preview);
    let picture = dialogue.picture(80, 20);
    let rows: Vec<&str> = picture.lines().collect();
    assert!(rows[0].contains("replay notes.tape  PAUSED  call 2 of 3  speed max"), "{picture}");
    assert!(rows[1].starts_with("      1 tools/call first") && rows[1].ends_with("unanswered"), "{picture}");
    assert!(rows[2].starts_with(">▶    2 tools/call sec"), "{picture}");
    assert!(rows[3].starts_with("  ●   3 tools/call third"), "{picture}");
    assert!(picture.contains("Is not sent: from_tape") && picture.contains("\"id\": 2"), "{picture}");
    dialogue.char('[');
    let picture = dialogue.picture(80, 20);
    assert!(picture.contains("Verdict: unanswered after 3.0 ms") && picture.contains("no answer in time"), "{picture}");
    assert!(picture.contains("Answer") && picture.contains("said"), "{picture}");
}

#[test]
fn what_is_shown_cannot_steer_the_terminal_and_fits_every_size() {
    let mut dialogue = Dialogue::new();
    dialogue.sends(ReplayVerdict::Same);
    dialogue.sends(ReplayVerdict::Same);
    dialogue.char('[');
    dialogue.view.say("\u{1b}[2J");
    dialogue.run.inject(json!({"method": "\u{1b}[31m"})).unwrap();
    for (width, height) in [(0, 0), (1, 1), (5, 2), (20, 3), (80, 24), (200, 60)] {
        assert!(!dialogue.picture(width, height).contains('\u{1b}'));
    }
    dialogue.view.show_injected();
    assert!(dialogue.picture(80, 24).contains("Injected request 1"));
    assert!(!dialogue.picture(80, 24).contains('\u{1b}'));
}
