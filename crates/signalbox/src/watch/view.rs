//! The machine behind `signalbox watch`.

use super::calls::{Call, Calls, is_difference};
use super::held::Held;
use super::keyboard::Key;
use super::text::{clean, word};
use serde_json::Value;

/// The longest filter, answer or reason that can be typed.
const MAX_TYPED: usize = 1_000;
/// How many lines a page is.
const PAGE: usize = 10;
/// Most facts that wait while the view is paused.
const MAX_WAITING: usize = 10_000;

/// What the view hears of.
#[derive(Clone, Debug)]
pub enum Event {
    /// A line of the live feed.
    Fact(Value),
    /// What is held at the moment.
    Holds(Vec<Value>),
    /// A key.
    Key(Key),
    /// Something for the person to read.
    Say(String),
    /// Nothing more will come.
    Ended(String),
}

/// What is to be done because of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Leave.
    Quit,
    /// Let a held message go on.
    Release(u64),
    /// Open a held message in an editor.
    Edit(u64),
    /// Answer a held message with this text.
    Answer(u64, String),
    /// Refuse a held message.
    Refuse(u64, String),
    /// Hold the next tool call.
    HoldNext,
    /// Hold nothing more.
    Clear,
}

/// Where the cursor is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Selected {
    /// On the newest call, whichever that is.
    Newest,
    /// On a held message.
    Held(u64),
    /// On a call.
    Call(u64),
}

/// What the keys mean.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// Moving in the list.
    List,
    /// Reading one call or held message, from this line on.
    Detail(usize),
    /// Typing a filter.
    Filter,
    /// Typing the text of an answer.
    Answer(u64, String),
    /// Typing why a message is refused.
    Refuse(u64, String),
}

/// The view.
#[derive(Debug)]
pub struct View {
    pub(super) title: String,
    pub(super) calls: Calls,
    pub(super) held: Vec<Held>,
    pub(super) selected: Selected,
    pub(super) mode: Mode,
    pub(super) filter: String,
    pub(super) paused: bool,
    pub(super) said: Option<String>,
    pub(super) lost: u64,
    pub(super) colour: bool,
    waiting: Vec<Value>,
}

impl View {
    /// A view of the process with this title.
    #[must_use]
    pub fn new(title: &str, colour: bool) -> Self {
        Self {
            title: clean(title),
            calls: Calls::default(),
            held: Vec::new(),
            selected: Selected::Newest,
            mode: Mode::List,
            filter: String::new(),
            paused: false,
            said: None,
            lost: 0,
            colour,
            waiting: Vec::new(),
        }
    }

    /// Takes what happened, and says what is to be done about it.
    pub fn apply(&mut self, event: Event) -> Option<Action> {
        match event {
            Event::Fact(fact) => self.fact(fact),
            Event::Holds(holds) => {
                self.held = holds.iter().filter_map(Held::read).collect();
                self.find_cursor();
            }
            Event::Say(text) | Event::Ended(text) => self.said = Some(clean(&text)),
            Event::Key(Key::Interrupt) => return Some(Action::Quit),
            Event::Key(key) => return self.key(key),
        }
        None
    }

    /// The calls that are shown, the newest first.
    pub(super) fn shown(&self) -> Vec<&Call> {
        self.calls.newest(&self.filter).collect()
    }

    /// The place of the cursor in the list: what is held, then the calls that are shown.
    pub(super) fn cursor(&self) -> Option<usize> {
        let calls = || self.shown();
        match self.selected {
            Selected::Newest if !self.calls_empty() => Some(self.held.len()),
            Selected::Newest => (!self.held.is_empty()).then_some(0),
            Selected::Held(id) => self.held.iter().position(|held| held.id == id),
            Selected::Call(seq) => Some(self.held.len() + calls().iter().position(|call| call.seq == seq)?),
        }
    }

    /// The call or held message that the cursor is on.
    pub(super) fn under_cursor(&self) -> (Option<&Held>, Option<&Call>) {
        match self.selected {
            Selected::Held(id) => (self.held.iter().find(|held| held.id == id), None),
            Selected::Call(seq) => (None, self.calls.get(seq)),
            Selected::Newest => (None, self.calls.newest(&self.filter).next()),
        }
    }

    /// The held message that a key is about: that under the cursor, else that of the call under the cursor, else the oldest.
    pub(super) fn concerned(&self) -> Option<&Held> {
        let (held, call) = self.under_cursor();
        let of_call = || call.and_then(|call| self.held.iter().find(|held| held.key == call.key));
        held.or_else(of_call).or_else(|| self.held.first())
    }

    fn calls_empty(&self) -> bool {
        self.calls.newest(&self.filter).next().is_none()
    }

    fn fact(&mut self, fact: Value) {
        if let Some(lost) = fact["facts"].as_u64().filter(|_| fact["type"] == "dropped") {
            self.lost += lost;
        } else if !self.paused {
            self.take(&fact);
        } else if self.waiting.len() < MAX_WAITING {
            self.waiting.push(fact);
        } else {
            self.lost += 1;
        }
    }

    fn take(&mut self, fact: &Value) {
        self.calls.take(fact);
        if is_difference(fact)
            && let (Some(call), Some(detail)) = (fact["exchange"].as_u64(), word(fact, "detail"))
        {
            self.said = Some(format!("call {call}: {detail}"));
        }
    }

    /// A cursor on something that is gone goes to the newest.
    fn find_cursor(&mut self) {
        if self.cursor().is_none() {
            self.selected = Selected::Newest;
            if let Mode::Detail(_) = self.mode {
                self.mode = Mode::List;
            }
        }
        if let Mode::Answer(id, _) | Mode::Refuse(id, _) = &self.mode
            && !self.held.iter().any(|held| held.id == *id)
        {
            self.said = Some(format!("{id} is no longer held"));
            self.mode = Mode::List;
        }
    }

    fn key(&mut self, key: Key) -> Option<Action> {
        self.said = None;
        match std::mem::replace(&mut self.mode, Mode::List) {
            Mode::List => self.list_key(key),
            Mode::Detail(from) => self.detail_key(key, from),
            Mode::Filter => {
                match key {
                    Key::Enter => {}
                    Key::Esc => self.filter.clear(),
                    _ => {
                        typed(&mut self.filter, key);
                        self.filter = self.filter.to_lowercase();
                        self.mode = Mode::Filter;
                    }
                }
                self.find_cursor();
                None
            }
            Mode::Answer(id, mut text) => match key {
                Key::Enter => Some(Action::Answer(id, text)),
                Key::Esc => None,
                _ => {
                    typed(&mut text, key);
                    self.mode = Mode::Answer(id, text);
                    None
                }
            },
            Mode::Refuse(id, mut text) => match key {
                Key::Enter => Some(Action::Refuse(id, text)),
                Key::Esc => None,
                _ => {
                    typed(&mut text, key);
                    self.mode = Mode::Refuse(id, text);
                    None
                }
            },
        }
    }

    fn list_key(&mut self, key: Key) -> Option<Action> {
        match key {
            Key::Up | Key::Char('k') => self.step(-1),
            Key::Down | Key::Char('j') => self.step(1),
            Key::PageUp => self.step(-(PAGE as i64)),
            Key::PageDown => self.step(PAGE as i64),
            Key::Home | Key::Char('g') => self.selected = Selected::Newest,
            Key::End | Key::Char('G') => self.step(i64::MAX),
            Key::Enter if self.under_cursor() != (None, None) => {
                // It stays the same one while others come.
                if let (None, Some(call)) = self.under_cursor() {
                    self.selected = Selected::Call(call.seq);
                }
                self.mode = Mode::Detail(0);
            }
            Key::Char('/') => self.mode = Mode::Filter,
            Key::Esc => self.filter.clear(),
            other => return self.common_key(other),
        }
        None
    }

    fn detail_key(&mut self, key: Key, from: usize) -> Option<Action> {
        let to = match key {
            Key::Up | Key::Char('k') => from.saturating_sub(1),
            Key::Down | Key::Char('j') => from.saturating_add(1),
            Key::PageUp => from.saturating_sub(PAGE),
            Key::PageDown | Key::Char(' ') => from.saturating_add(PAGE),
            Key::Home | Key::Char('g') => 0,
            Key::Esc | Key::Enter | Key::Backspace => return None,
            other => {
                self.mode = Mode::Detail(from);
                return self.common_key(other);
            }
        };
        self.mode = Mode::Detail(to.min(super::detail::lines(self).len().saturating_sub(1)));
        None
    }

    fn common_key(&mut self, key: Key) -> Option<Action> {
        let Key::Char(char) = key else { return None };
        match char {
            'q' => return Some(Action::Quit),
            'p' => self.pause(),
            'n' => return Some(Action::HoldNext),
            'c' => return Some(Action::Clear),
            'r' | 'e' | 'a' | 'x' => match self.concerned().map(|held| held.id) {
                None => self.said = Some("nothing is held; n holds the next tool call".to_owned()),
                Some(id) => match char {
                    'r' => return Some(Action::Release(id)),
                    'e' => return Some(Action::Edit(id)),
                    'a' => self.mode = Mode::Answer(id, String::new()),
                    _ => self.mode = Mode::Refuse(id, String::new()),
                },
            },
            _ => {}
        }
        None
    }

    /// Stands still, or takes what came meanwhile.
    fn pause(&mut self) {
        self.paused = !self.paused;
        for fact in std::mem::take(&mut self.waiting) {
            self.take(&fact);
        }
    }

    fn step(&mut self, by: i64) {
        let shown: Vec<Selected> = {
            let held = self.held.iter().map(|held| Selected::Held(held.id));
            held.chain(self.shown().iter().map(|call| Selected::Call(call.seq))).collect()
        };
        let Some(last) = shown.len().checked_sub(1) else { return };
        let at = self.cursor().unwrap_or(0) as i64;
        let to = usize::try_from(at.saturating_add(by).max(0)).unwrap_or(0).min(last);
        // At the top of the calls the cursor stays with the newest, as long as it was not moved there from above.
        self.selected = if to == self.held.len() && by < 0 { Selected::Newest } else { shown[to] };
    }
}

impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        self.seq == other.seq
    }
}

fn typed(text: &mut String, key: Key) {
    match key {
        Key::Char(char) if text.len() < MAX_TYPED && !char.is_control() => text.push(char),
        Key::Backspace => drop(text.pop()),
        _ => {}
    }
}
