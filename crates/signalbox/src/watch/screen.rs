//! Takes over the terminal, and restores it on every exit.

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::{Frame, Terminal};
use std::io::{self, Stdout, stdout};

/// The terminal on its alternate screen. Restored on drop, and before a panic message is printed.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes over the terminal.
    ///
    /// # Errors
    /// If the terminal cannot be set up.
    pub fn open() -> io::Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
        enter()?;
        Ok(Self { terminal: Terminal::new(CrosstermBackend::new(stdout()))? })
    }

    /// Draws a frame.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }

    /// Restores the terminal while `doing` runs.
    ///
    /// # Errors
    /// If the terminal cannot be taken over again.
    pub fn leave_for<T>(&mut self, doing: impl FnOnce() -> T) -> io::Result<T> {
        restore();
        let done = doing();
        enter()?;
        // A new terminal redraws everything. Clearing the old one would query the cursor position, and the reply would
        // arrive as typed input.
        self.terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        Ok(done)
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen)
}

/// Restores the terminal. Errors are ignored: there is no place left to report them.
fn restore() {
    let _ = disable_raw_mode();
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}
