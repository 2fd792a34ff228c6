//! Where a result is shown again and again: in place on a terminal, one after the other elsewhere.

use crate::failure::Failure;
use crate::output;
use signalbox_control::terminal;
use std::io::{IsTerminal as _, stdout};

/// The other screen, so that what stood there before comes back at the end; no cursor; long lines are cut.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l";
const LEAVE: &str = "\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l";

/// The screen. What was shown last stays on the terminal when it is dropped.
#[derive(Debug)]
pub struct Screen {
    in_place: bool,
    frames: u64,
    separated: bool,
    last: String,
}

impl Screen {
    /// Takes the terminal over, if there is one. JSON is never drawn in place: programs read it line by line.
    #[must_use]
    pub fn open(json: bool) -> Self {
        let in_place = !json && stdout().is_terminal();
        if in_place {
            // If this cannot be written, nothing else can, and that is told then.
            let _ = output::frame(ENTER);
        }
        Self { in_place, frames: 0, separated: !json, last: String::new() }
    }

    /// Shows the next frame. False if nobody reads any more.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn show(&mut self, frame: &str) -> Result<bool, Failure> {
        self.frames += 1;
        if !self.in_place {
            let gap = if self.separated && self.frames > 1 { "\n" } else { "" };
            return output::frame(&format!("{gap}{frame}"));
        }
        frame.clone_into(&mut self.last);
        output::frame(&drawn(frame, terminal::size().1))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.in_place {
            let _ = output::frame(&format!("{LEAVE}{}", self.last));
        }
    }
}

/// The frame over what stood there, without flicker: each line is cleared behind its text, and what is below at the end.
fn drawn(frame: &str, height: usize) -> String {
    let lines: Vec<String> = frame.lines().take(height).map(|line| format!("{line}\u{1b}[K")).collect();
    format!("\u{1b}[H{}\u{1b}[J", lines.join("\r\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_drawn_over_the_one_before_and_never_scrolls() {
        assert_eq!(drawn("a\nb\n", 9), "\u{1b}[Ha\u{1b}[K\r\nb\u{1b}[K\u{1b}[J");
        assert_eq!(drawn("a\nb\nc\n", 2).matches("\r\n").count(), 1);
    }
}
