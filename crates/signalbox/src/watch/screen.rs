//! The terminal: taken over, and given back as it was whatever happens.

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::{Frame, Terminal};
use std::io::{self, Stdout, stdout};

/// The terminal in our hands; it is given back when this is dropped, and before a panic is told.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// If it cannot be.
    pub fn open() -> io::Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
        enter()?;
        Ok(Self { terminal: Terminal::new(CrosstermBackend::new(stdout()))? })
    }

    /// Draws a view as it is now.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }

    /// Gives the terminal back for a while.
    ///
    /// # Errors
    /// If it cannot be taken over again.
    pub fn leave_for<T>(&mut self, doing: impl FnOnce() -> T) -> io::Result<T> {
        restore();
        let done = doing();
        enter()?;
        // One that knows nothing draws everything. To clear the old one it would ask where the cursor is, and the answer
        // would come as if it were typed.
        self.terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        Ok(done)
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen)
}

/// What cannot be restored cannot be told either.
fn restore() {
    let _ = disable_raw_mode();
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}
