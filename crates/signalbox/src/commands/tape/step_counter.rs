//! Progress of long operations, shown if standard error is a terminal.

use std::io::{IsTerminal as _, Write as _, stderr};

/// Number of steps between two updates.
const EVERY: u64 = 10_000;

/// Counts steps, and shows the count on one line of a terminal.
pub struct StepCounter {
    word: &'static str,
    steps: u64,
    shows: bool,
}

impl StepCounter {
    /// Creates a counter with this label. Shows nothing unless standard error is a terminal.
    pub fn new(word: &'static str, json: bool) -> Self {
        Self { word, steps: 0, shows: !json && stderr().is_terminal() }
    }

    /// Counts one step. Updates the line every `EVERY` steps.
    pub fn step(&mut self) {
        self.steps += 1;
        if self.shows && self.steps.is_multiple_of(EVERY) {
            let _ = write!(stderr(), "\r{} entries {}", self.steps, self.word);
        }
    }

    /// Prints the final count.
    pub fn done(&mut self) {
        if self.shows {
            let _ = writeln!(stderr(), "\r{} entries {}", self.steps, self.word);
        }
    }
}
