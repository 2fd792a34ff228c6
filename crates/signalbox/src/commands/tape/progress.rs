//! Shows the progress of long work, if standard error is a terminal.

use std::io::{IsTerminal as _, Write as _, stderr};

/// How many steps pass between two looks.
const EVERY: u64 = 10_000;

/// Counts steps, and shows the count on one line of a terminal.
pub struct Progress {
    word: &'static str,
    steps: u64,
    shows: bool,
}

impl Progress {
    /// A count under this word. Where nobody looks, nothing is shown.
    pub fn new(word: &'static str, json: bool) -> Self {
        Self { word, steps: 0, shows: !json && stderr().is_terminal() }
    }

    /// One more.
    pub fn step(&mut self) {
        self.steps += 1;
        if self.shows && self.steps.is_multiple_of(EVERY) {
            let _ = write!(stderr(), "\r{} entries {}", self.steps, self.word);
        }
    }

    /// That was all.
    pub fn done(&mut self) {
        if self.shows {
            let _ = writeln!(stderr(), "\r{} entries {}", self.steps, self.word);
        }
    }
}
