//! Capabilities of the terminal at standard output.

use rustix::termios::tcgetwinsize;
use std::io::{IsTerminal as _, stdout};

/// Appearance of a command's output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutputStyle {
    /// Maximum width in columns. `None` without a terminal.
    pub width: Option<usize>,
    /// True if colours may be used.
    pub colour: bool,
}

/// Meaning of a word, shown by its colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tone {
    Good,
    /// Unusual and worth a look.
    Odd,
    Bad,
}

/// Width of a terminal that does not report its size.
const USUAL_WIDTH: usize = 80;
const USUAL_HEIGHT: usize = 24;

impl OutputStyle {
    /// Returns the style of standard output: plain if it is not a terminal, without colours if `NO_COLOR` is set or the
    /// terminal is dumb.
    #[must_use]
    pub fn of_stdout() -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
        Self::new(stdout().is_terminal(), set("NO_COLOR") || dumb)
    }

    fn new(terminal: bool, plain: bool) -> Self {
        Self { width: terminal.then(|| size().0), colour: terminal && !plain }
    }

    /// Returns the text in the colour of its tone.
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

/// Returns the columns and lines of the terminal.
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
        assert!(OutputStyle::new(true, false).colour && !OutputStyle::new(true, true).colour);
        assert_eq!(OutputStyle::new(false, false), OutputStyle { width: None, colour: false });
    }
}
