//! Dialogues with the view: what happens, which keys are pressed, and what is to be seen then.

use super::*;
use crate::watch::{Key, WatchAction, WatchEvent};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};
use std::path::Path;

struct Dialogue {
    view: WatchView,
    exchange: u64,
}

impl Dialogue {
    fn new() -> Self {
        Self { view: WatchView::new("signalbox watch  pid 7", false), exchange: 0 }
    }

    fn press(&mut self, keys: &str) -> Option<WatchAction> {
        let mut last = None;
        for char in keys.chars() {
            last = self.view.apply(WatchEvent::Key(if char == '\n' { Key::Enter } else { Key::Char(char) }));
        }
        last
    }

    fn key(&mut self, key: Key) -> Option<WatchAction> {
        self.view.apply(WatchEvent::Key(key))
    }

    fn fact(&mut self, mut fact: Value) {
        fact["session"] = json!(1);
        fact["principal"] = json!("anonymous");
        self.view.apply(WatchEvent::Fact(fact));
    }

    fn begins(&mut self, tool: &str) {
        self.exchange += 1;
        let at_ms = 1_700_000_000_000_u64 + 1000 * self.exchange;
        let body = json!({"jsonrpc": "2.0", "id": self.exchange, "method": "tools/call", "params": {"name": tool}});
        self.fact(json!({"type": "message", "at_ms": at_ms, "exchange": self.exchange, "point": "client to gateway",
            "kind": "request", "method": "tools/call", "subject": tool, "length": 70, "body": body}));
    }

    fn ends(&mut self, outcome: &str) {
        let result = json!({"jsonrpc": "2.0", "id": self.exchange, "result": {"content": []}});
        for point in ["backend to gateway", "gateway to client"] {
            self.fact(json!({"type": "message", "exchange": self.exchange, "point": point, "kind": "result",
                "backend": "files", "body": result}));
        }
        self.fact(json!({"type": "finished", "exchange": self.exchange, "method": "tools/call", "backend": "files",
            "outcome": outcome, "took_us": 12_345}));
    }

    fn holds(&mut self, ids: &[u64]) {
        let held = |id: &u64| {
            json!({"id": id, "session": 1, "exchange": id + 100, "phase": "request", "method": "tools/call",
                "subject": "write_file", "principal": "anonymous", "reason": "breakpoint 1", "left_ms": 41_500,
                "text": "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":\"write_file\"}}"})
        };
        self.view.apply(WatchEvent::Holds(ids.iter().map(held).collect()));
    }

    fn shown(&self, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(&self.view, frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(|y| format!("{}\n", line(y))).collect()
    }
}

/// Compares with the picture that is kept; `MCP_TEST_BLESS` keeps this one instead.
fn is_like(name: &str, shown: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/watch/pictures").join(format!("{name}.txt"));
    if std::env::var_os("MCP_TEST_BLESS").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, shown).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap();
    assert_eq!(shown, kept, "{name}:\n{shown}");
}

fn busy() -> Dialogue {
    let mut dialogue = Dialogue::new();
    dialogue.begins("read_file");
    dialogue.ends("success");
    dialogue.begins("search");
    dialogue.fact(json!({"type": "decision", "exchange": 2, "by": "rules", "rule": "no-search", "phase": "request",
        "verdict": "refuse", "detail": "not at night", "inputs": [["clock", "23:00"]]}));
    dialogue.ends("refused");
    dialogue.begins("a_tool_with_a_very_long_name_that_does_not_fit_into_its_column");
    dialogue
}

#[test]
fn calls_are_listed_as_they_come_the_newest_on_top() {
    let mut dialogue = Dialogue::new();
    is_like("empty", &dialogue.shown(80, 8));
    dialogue = busy();
    is_like("list", &dialogue.shown(80, 10));
    dialogue.holds(&[3, 4]);
    is_like("held", &dialogue.shown(80, 24));
    is_like("narrow", &dialogue.shown(40, 10));
    is_like("wide", &dialogue.shown(120, 10));
}

#[test]
fn the_detail_shows_decisions_and_the_four_images() {
    let mut dialogue = busy();
    dialogue.key(Key::Down);
    dialogue.press("\n");
    is_like("detail", &dialogue.shown(80, 24));
    dialogue.key(Key::PageDown);
    is_like("detail-below", &dialogue.shown(80, 10));
    for _ in 0..100 {
        dialogue.key(Key::PageDown);
    }
    assert!(dialogue.shown(80, 10).lines().nth(1).is_some_and(|line| !line.is_empty()), "its last line stays in sight");
    dialogue.key(Key::Esc);
    is_like("list-second", &dialogue.shown(80, 10));
}

#[test]
fn a_filter_is_typed_and_cleared() {
    let mut dialogue = busy();
    dialogue.press("/REFUSED");
    is_like("filter", &dialogue.shown(80, 10));
    dialogue.press("\n");
    assert_eq!(dialogue.press("q"), Some(WatchAction::Quit), "q is a command again");
    dialogue.press("/zzz\n");
    assert!(dialogue.shown(80, 10).contains("No call matches the filter."));
    dialogue.key(Key::Esc);
    assert!(dialogue.shown(80, 10).contains("read_file"));
}

#[test]
fn held_messages_are_released_edited_answered_and_refused() {
    let mut dialogue = busy();
    assert_eq!(dialogue.press("r"), None);
    assert!(dialogue.shown(80, 10).contains("nothing is held"));
    dialogue.holds(&[3, 4]);
    assert_eq!(dialogue.press("r"), Some(WatchAction::Release(3)), "the oldest, while the cursor is elsewhere");
    dialogue.key(Key::Up);
    assert_eq!(dialogue.press("e"), Some(WatchAction::Edit(4)));
    dialogue.press("\n");
    assert!(dialogue.shown(80, 24).contains("\"name\": \"write_file\""));
    assert_eq!(dialogue.press("anot today"), None);
    is_like("answer", &dialogue.shown(80, 10));
    assert_eq!(dialogue.press("\n"), Some(WatchAction::Answer(4, "not today".to_owned())));
    dialogue.press("xbecaus");
    dialogue.key(Key::Backspace);
    assert_eq!(dialogue.press("se\n"), Some(WatchAction::Refuse(4, "because".to_owned())));
    dialogue.press("x");
    dialogue.holds(&[3]);
    assert!(dialogue.shown(80, 10).contains("4 is no longer held"), "somebody else was faster");
    assert_eq!(dialogue.press("n"), Some(WatchAction::HoldNext));
    assert_eq!(dialogue.key(Key::Interrupt), Some(WatchAction::Quit));
}

#[test]
fn a_paused_view_stands_still_and_then_takes_what_came() {
    let mut dialogue = busy();
    dialogue.press("p");
    dialogue.begins("later");
    let shown = dialogue.shown(80, 10);
    assert!(shown.contains("PAUSED") && !shown.contains("later"), "{shown}");
    dialogue.press("p");
    assert!(dialogue.shown(80, 10).contains("later"));
    dialogue.view.apply(WatchEvent::Fact(json!({"type": "dropped", "facts": 5})));
    assert!(dialogue.shown(80, 10).contains("5 lost"));
}

#[test]
fn a_call_that_is_not_as_on_the_baseline_is_marked_and_told() {
    let mut dialogue = busy();
    dialogue.begins("read_note");
    dialogue.ends("success");
    let exchange = dialogue.exchange;
    let detail = "tools/call read_note differs from call 4 at /result/\u{1b}x (changed)";
    dialogue.fact(json!({"type": "decision", "exchange": exchange, "by": "baseline", "phase": "response",
        "verdict": "unknown", "detail": "tools/call read_note is not on the baseline"}));
    assert!(!dialogue.shown(80, 12).contains('≠'));
    dialogue.press("p");
    dialogue.fact(json!({"type": "decision", "exchange": exchange, "by": "baseline", "phase": "response",
        "verdict": "differs", "detail": detail}));
    assert!(!dialogue.shown(80, 12).contains('≠'), "a paused view stands still");
    dialogue.press("p");
    let shown = dialogue.shown(110, 12);
    assert!(shown.lines().any(|line| line.contains("read_note") && line.contains('≠')), "{shown}");
    assert!(
        shown.contains(&format!("call {exchange}: tools/call read_note differs from call 4 at /result/\\u{{1b}}x")),
        "{shown}"
    );
    dialogue.press("j");
    assert!(!dialogue.shown(110, 12).contains("differs from"), "the next key clears it");
}

#[test]
fn the_cursor_stays_with_its_call_and_the_list_scrolls_with_it() {
    let mut dialogue = Dialogue::new();
    for number in 0..50 {
        dialogue.begins(&format!("tool-{number}"));
    }
    for _ in 0..20 {
        dialogue.key(Key::Down);
    }
    let selected = |shown: &str| shown.lines().find(|line| line.starts_with('>')).unwrap_or_default().to_owned();
    assert!(selected(&dialogue.shown(80, 10)).contains("tool-29"), "{}", dialogue.shown(80, 10));
    dialogue.begins("newest");
    assert!(selected(&dialogue.shown(80, 10)).contains("tool-29"));
    dialogue.key(Key::Home);
    assert!(selected(&dialogue.shown(80, 10)).contains("newest"));
    dialogue.begins("newer");
    assert!(selected(&dialogue.shown(80, 10)).contains("newer"), "it follows");
    dialogue.key(Key::End);
    assert!(selected(&dialogue.shown(80, 10)).contains("tool-0"));
}

#[test]
fn nothing_of_others_reaches_the_terminal_as_a_command() {
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}\u{9b}31m\r\n\0\u{200b}";
    let mut dialogue = Dialogue::new();
    dialogue.begins(evil);
    dialogue
        .fact(json!({"type": "decision", "exchange": 1, "by": evil, "phase": evil, "verdict": evil, "detail": evil,
        "inputs": [[evil, evil]]}));
    let raw = format!("{{\"a\":\"{evil}\"}}");
    dialogue.fact(json!({"type": "message", "exchange": 1, "point": "gateway to client", "kind": "raw", "text": raw}));
    dialogue.fact(json!({"type": "finished", "exchange": 1, "method": evil, "subject": evil, "backend": evil,
        "outcome": evil}));
    let held = json!({"id": 1, "session": 1, "exchange": 1, "phase": evil, "method": evil, "subject": evil,
        "principal": evil, "reason": evil, "text": raw});
    dialogue.view.apply(WatchEvent::Holds(vec![held]));
    dialogue.view.apply(WatchEvent::Say(evil.to_owned()));
    let mut all = dialogue.shown(200, 24);
    dialogue.press("\n");
    all.push_str(&dialogue.shown(200, 60));
    dialogue.key(Key::Esc);
    dialogue.key(Key::Up);
    dialogue.press("\n");
    all.push_str(&dialogue.shown(200, 60));
    let bad = |char: char| {
        (char.is_control() && char != '\n') || matches!(char, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
    };
    assert!(!all.chars().any(bad), "{all:?}");
    assert!(all.contains("owned"), "it is shown, not obeyed");
}

#[test]
fn every_size_can_be_drawn() {
    let mut dialogue = busy();
    dialogue.holds(&[3, 4, 5]);
    for keys in ["", "\n", "a", "/"] {
        dialogue.press(keys);
        for (width, height) in (0..30).flat_map(|width| (0..8).map(move |height| (width * 5, height))) {
            dialogue.shown(width, height);
        }
        dialogue.key(Key::Esc);
    }
}
