//! Output of a result that repeats: redrawn in place on a terminal, appended elsewhere.

use crate::failure::Failure;
use crate::output;
use signalbox_control::terminal;
use std::io::{IsTerminal as _, stdout};

/// Alternate screen, so that the previous content returns at the end; cursor hidden; long lines cut.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l";
const LEAVE: &str = "\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l";

/// Output for repeated frames. On drop, the last frame stays on the terminal.
#[derive(Debug)]
pub struct Screen {
    in_place: bool,
    frames: u64,
    separated: bool,
    last: String,
}

impl Screen {
    /// Takes over the terminal, if there is one. JSON is never drawn in place: programs read it line by line.
    #[must_use]
    pub fn open(json: bool) -> Self {
        let in_place = !json && stdout().is_terminal();
        if in_place {
            // If this write fails, so does the next one, which reports it.
            let _ = output::frame(ENTER);
        }
        Self { in_place, frames: 0, separated: !json, last: String::new() }
    }

    /// Shows the next frame. Returns `false` if the reader has closed the pipe.
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

/// Formats a frame that overwrites the previous one without flicker: each line clears its rest, and the end clears what
/// is below.
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
