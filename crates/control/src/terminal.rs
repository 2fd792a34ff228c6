//! What the terminal at standard output can show, if there is one.

use rustix::termios::tcgetwinsize;
use std::io::{IsTerminal as _, stdout};

/// How a result is to look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Style {
    /// The width to keep to; none if there is no terminal.
    pub width: Option<usize>,
    /// Whether colours may be used.
    pub colour: bool,
}

/// What a word means to its reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tone {
    /// As it should be.
    Good,
    /// Worth a look.
    Odd,
    /// Wrong.
    Bad,
}

/// The width of a terminal that does not tell.
const USUAL_WIDTH: usize = 80;
const USUAL_HEIGHT: usize = 24;

impl Style {
    /// What suits standard output: plain if it is not a terminal, and without colours if `NO_COLOR` is set or the terminal is
    /// a dumb one.
    #[must_use]
    pub fn of_stdout() -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
        Self::new(stdout().is_terminal(), set("NO_COLOR") || dumb)
    }

    fn new(terminal: bool, plain: bool) -> Self {
        Self { width: terminal.then(|| size().0), colour: terminal && !plain }
    }

    /// The text in the colour of its tone.
    #[must_use]
    pub fn paint(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Good => 32,
            Tone::Odd => 33,
            Tone::Bad => 31,
        };
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Columns and lines of the terminal.
#[must_use]
pub fn size() -> (usize, usize) {
    let told = |number: u16, usual| if number == 0 { usual } else { usize::from(number) };
    tcgetwinsize(stdout())
        .map_or((USUAL_WIDTH, USUAL_HEIGHT), |size| (told(size.ws_col, USUAL_WIDTH), told(size.ws_row, USUAL_HEIGHT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_need_a_terminal_and_nobody_who_objects() {
        assert!(Style::new(true, false).colour && !Style::new(true, true).colour);
        assert_eq!(Style::new(false, false), Style { width: None, colour: false });
    }
}
