//! State machine of `signalbox watch`.

use super::calls::{Calls, WatchedCall, is_difference};
use super::held::HeldEntry;
use super::keyboard::Key;
use super::text::{clean, word};
use serde_json::Value;

/// Maximum length of a typed filter, answer or reason, in bytes.
const MAX_TYPED: usize = 1_000;
/// Number of lines per page.
const PAGE: usize = 10;
/// Maximum number of facts buffered while the view is paused.
const MAX_WAITING: usize = 10_000;

/// Input of the view.
#[derive(Clone, Debug)]
pub enum WatchEvent {
    /// A line of the live feed.
    Fact(Value),
    /// Messages that are held at the moment.
    Holds(Vec<Value>),
    /// Key that was pressed.
    Key(Key),
    /// Message for the user.
    Say(String),
    /// The feed has ended, with a message for the user.
    Ended(String),
}

/// Action requested by a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WatchAction {
    /// Leave the view and end the command.
    Quit,
    /// Release a held message.
    Release(u64),
    /// Open a held message in an editor.
    Edit(u64),
    /// Answer a held message with this text.
    Answer(u64, String),
    /// Refuse a held message.
    Refuse(u64, String),
    /// Hold the next tool call.
    HoldNext,
    /// Remove all breakpoints of the process.
    Clear,
}

/// Position of the cursor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Selection {
    /// The newest call, also when newer ones arrive.
    Newest,
    /// Held message with this id.
    Held(u64),
    /// Call with this sequence number.
    Call(u64),
}

/// Input mode, which decides what the keys do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// Moves in the list.
    List,
    /// Shows one call or held message, from this line on.
    Detail(usize),
    /// Edits the filter of the list.
    Filter,
    /// Edits the text of an answer.
    Answer(u64, String),
    /// Edits the reason of a refusal.
    Refuse(u64, String),
}

/// State of the view.
#[derive(Debug)]
pub struct WatchView {
    pub(super) title: String,
    pub(super) calls: Calls,
    pub(super) held: Vec<HeldEntry>,
    pub(super) selected: Selection,
    pub(super) mode: Mode,
    pub(super) filter: String,
    pub(super) paused: bool,
    pub(super) said: Option<String>,
    pub(super) lost: u64,
    pub(super) colour: bool,
    waiting: Vec<Value>,
}

impl WatchView {
    /// Creates a view with this title.
    #[must_use]
    pub fn new(title: &str, colour: bool) -> Self {
        Self {
            title: clean(title),
            calls: Calls::default(),
            held: Vec::new(),
            selected: Selection::Newest,
            mode: Mode::List,
            filter: String::new(),
            paused: false,
            said: None,
            lost: 0,
            colour,
            waiting: Vec::new(),
        }
    }

    /// Applies an event, and returns the action it requests.
    pub fn apply(&mut self, event: WatchEvent) -> Option<WatchAction> {
        match event {
            WatchEvent::Fact(fact) => self.fact(fact),
            WatchEvent::Holds(holds) => {
                self.held = holds.iter().filter_map(HeldEntry::read).collect();
                self.find_cursor();
            }
            WatchEvent::Say(text) | WatchEvent::Ended(text) => self.said = Some(clean(&text)),
            WatchEvent::Key(Key::Interrupt) => return Some(WatchAction::Quit),
            WatchEvent::Key(key) => return self.key(key),
        }
        None
    }

    /// Returns the calls that match the filter, newest first.
    pub(super) fn shown(&self) -> Vec<&WatchedCall> {
        self.calls.newest(&self.filter).collect()
    }

    /// Returns the index of the cursor in the list: held messages first, then the calls that match.
    pub(super) fn cursor(&self) -> Option<usize> {
        let calls = || self.shown();
        match self.selected {
            Selection::Newest if !self.calls_empty() => Some(self.held.len()),
            Selection::Newest => (!self.held.is_empty()).then_some(0),
            Selection::Held(id) => self.held.iter().position(|held| held.id == id),
            Selection::Call(seq) => Some(self.held.len() + calls().iter().position(|call| call.seq == seq)?),
        }
    }

    /// Returns the held message or the call under the cursor.
    pub(super) fn under_cursor(&self) -> (Option<&HeldEntry>, Option<&WatchedCall>) {
        match self.selected {
            Selection::Held(id) => (self.held.iter().find(|held| held.id == id), None),
            Selection::Call(seq) => (None, self.calls.get(seq)),
            Selection::Newest => (None, self.calls.newest(&self.filter).next()),
        }
    }

    /// Returns the held message that a key acts on: the one under the cursor, else that of the call under the cursor,
    /// else the oldest.
    pub(super) fn concerned(&self) -> Option<&HeldEntry> {
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

    /// Moves the cursor to the newest call if its item is gone.
    fn find_cursor(&mut self) {
        if self.cursor().is_none() {
            self.selected = Selection::Newest;
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

    fn key(&mut self, key: Key) -> Option<WatchAction> {
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
                Key::Enter => Some(WatchAction::Answer(id, text)),
                Key::Esc => None,
                _ => {
                    typed(&mut text, key);
                    self.mode = Mode::Answer(id, text);
                    None
                }
            },
            Mode::Refuse(id, mut text) => match key {
                Key::Enter => Some(WatchAction::Refuse(id, text)),
                Key::Esc => None,
                _ => {
                    typed(&mut text, key);
                    self.mode = Mode::Refuse(id, text);
                    None
                }
            },
        }
    }

    fn list_key(&mut self, key: Key) -> Option<WatchAction> {
        match key {
            Key::Up | Key::Char('k') => self.step(-1),
            Key::Down | Key::Char('j') => self.step(1),
            Key::PageUp => self.step(-(PAGE as i64)),
            Key::PageDown => self.step(PAGE as i64),
            Key::Home | Key::Char('g') => self.selected = Selection::Newest,
            Key::End | Key::Char('G') => self.step(i64::MAX),
            Key::Enter if self.under_cursor() != (None, None) => {
                // Pin the call, so that new calls do not move the selection.
                if let (None, Some(call)) = self.under_cursor() {
                    self.selected = Selection::Call(call.seq);
                }
                self.mode = Mode::Detail(0);
            }
            Key::Char('/') => self.mode = Mode::Filter,
            Key::Esc => self.filter.clear(),
            other => return self.common_key(other),
        }
        None
    }

    fn detail_key(&mut self, key: Key, from: usize) -> Option<WatchAction> {
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

    fn common_key(&mut self, key: Key) -> Option<WatchAction> {
        let Key::Char(char) = key else { return None };
        match char {
            'q' => return Some(WatchAction::Quit),
            'p' => self.pause(),
            'n' => return Some(WatchAction::HoldNext),
            'c' => return Some(WatchAction::Clear),
            'r' | 'e' | 'a' | 'x' => match self.concerned().map(|held| held.id) {
                None => self.said = Some("nothing is held; n holds the next tool call".to_owned()),
                Some(id) => match char {
                    'r' => return Some(WatchAction::Release(id)),
                    'e' => return Some(WatchAction::Edit(id)),
                    'a' => self.mode = Mode::Answer(id, String::new()),
                    _ => self.mode = Mode::Refuse(id, String::new()),
                },
            },
            _ => {}
        }
        None
    }

    /// Toggles the pause. Resuming applies the buffered facts.
    fn pause(&mut self) {
        self.paused = !self.paused;
        for fact in std::mem::take(&mut self.waiting) {
            self.take(&fact);
        }
    }

    fn step(&mut self, by: i64) {
        let shown: Vec<Selection> = {
            let held = self.held.iter().map(|held| Selection::Held(held.id));
            held.chain(self.shown().iter().map(|call| Selection::Call(call.seq))).collect()
        };
        let Some(last) = shown.len().checked_sub(1) else { return };
        let at = self.cursor().unwrap_or(0) as i64;
        let to = usize::try_from(at.saturating_add(by).max(0)).unwrap_or(0).min(last);
        // Moving up to the first call follows the newest call. Moving down to it from a held message does not.
        self.selected = if to == self.held.len() && by < 0 { Selection::Newest } else { shown[to] };
    }
}

impl PartialEq for WatchedCall {
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
