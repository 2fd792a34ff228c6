//! State machine of the view of a run.

use crate::watch::Key;
use signalbox_replay::run::ReplayControl;
use signalbox_replay::run::control::{FASTEST, SLOWEST, State, When};

/// Speeds that `+` and `-` select; after the last there are no pauses.
const SPEEDS: [f64; 7] = [SLOWEST, 0.25, 0.5, 1.0, 2.0, 5.0, FASTEST];
/// Number of lines per page.
const PAGE: usize = 8;

/// Action requested by a key.
#[derive(Clone, PartialEq, Debug)]
pub enum ReplayViewAction {
    /// End the run and leave.
    Quit,
    /// Send calls until something stops it.
    Play,
    /// Send nothing more for now.
    Pause,
    /// Send one call, then pause.
    Step,
    /// Go to this call, counted from 1.
    Seek(usize),
    /// Stop before this call, counted from 1.
    Break(usize),
    /// Remove the breakpoint with this id.
    Clear(u64),
    /// Play at this speed; `None` has no pauses.
    Speed(Option<f64>),
    /// Open the next request in an editor.
    Edit,
    /// Write a request in an editor and send it.
    Inject,
}

/// State of the view.
#[derive(Debug)]
pub struct ReplayView {
    pub(super) title: String,
    pub(super) colour: bool,
    /// Call that the cursor was moved to; `None` follows the run.
    selected: Option<usize>,
    /// First line of the details that is shown.
    pub(super) from: usize,
    pub(super) said: Option<String>,
    /// Shows the last injected request instead of the selected call.
    pub(super) injected: bool,
}

impl ReplayView {
    /// Creates a view with this title.
    #[must_use]
    pub fn new(title: &str, colour: bool) -> Self {
        Self { title: crate::watch::text::clean(title), colour, selected: None, from: 0, said: None, injected: false }
    }

    /// Shows a message until the next key.
    pub fn say(&mut self, text: &str) {
        self.said = Some(crate::watch::text::clean(text));
    }

    /// Shows the answer to the last injected request.
    pub fn show_injected(&mut self) {
        (self.injected, self.from) = (true, 0);
    }

    /// Returns the index of the call under the cursor: the selected one, else the one in flight or next.
    #[must_use]
    pub fn cursor(&self, run: &ReplayControl) -> usize {
        let follows = run.in_flight().unwrap_or(run.position());
        self.selected.unwrap_or(follows).min(run.calls().len().saturating_sub(1))
    }

    /// Handles a key, and returns the action it requests.
    pub fn key(&mut self, key: Key, run: &ReplayControl) -> Option<ReplayViewAction> {
        self.said = None;
        let place = self.cursor(run) + 1;
        match key {
            Key::Interrupt | Key::Char('q') => return Some(ReplayViewAction::Quit),
            Key::Up | Key::Left | Key::Char('[' | 'k') => self.select(place.saturating_sub(2)),
            Key::Down | Key::Right | Key::Char(']' | 'j') => {
                self.select(place.min(run.calls().len().saturating_sub(1)))
            }
            Key::Home => self.select(0),
            Key::End => self.select(run.calls().len().saturating_sub(1)),
            Key::Esc => self.follow(),
            Key::PageUp => self.from = self.from.saturating_sub(PAGE),
            Key::PageDown => self.from = (self.from + PAGE).min(super::draw::detail(self, run).len().saturating_sub(1)),
            Key::Char(char) => return self.command(char, place, run),
            _ => {}
        }
        None
    }

    fn command(&mut self, char: char, place: usize, run: &ReplayControl) -> Option<ReplayViewAction> {
        let action = match char {
            ' ' if matches!(run.state(), State::Playing | State::Stepping) => ReplayViewAction::Pause,
            ' ' => ReplayViewAction::Play,
            'n' => ReplayViewAction::Step,
            'g' => ReplayViewAction::Seek(place),
            'b' => {
                let set = run.breakpoints().iter().find(|set| set.when == When::Call(place));
                return Some(set.map_or(ReplayViewAction::Break(place), |set| ReplayViewAction::Clear(set.id)));
            }
            '+' | '=' => return Some(ReplayViewAction::Speed(faster(run.speed()))),
            '-' => return Some(ReplayViewAction::Speed(slower(run.speed()))),
            'e' => ReplayViewAction::Edit,
            'i' => ReplayViewAction::Inject,
            _ => return None,
        };
        self.follow();
        Some(action)
    }

    fn select(&mut self, index: usize) {
        self.follow();
        self.selected = Some(index);
    }

    /// Lets the cursor follow the run.
    fn follow(&mut self) {
        (self.selected, self.from, self.injected) = (None, 0, false);
    }
}

fn faster(speed: Option<f64>) -> Option<f64> {
    let speed = speed?;
    SPEEDS.into_iter().find(|other| *other > speed)
}

fn slower(speed: Option<f64>) -> Option<f64> {
    let Some(speed) = speed else { return Some(FASTEST) };
    Some(SPEEDS.into_iter().rev().find(|other| *other < speed).unwrap_or(SLOWEST))
}
