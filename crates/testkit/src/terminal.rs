//! A pseudo terminal, and what a person would see on it.

use crate::scene::eventually;
use anyhow::Context as _;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::process::{Child, Command};

/// A terminal, with what was written to it.
#[derive(Debug)]
pub struct Terminal {
    outside: File,
    inside: File,
    seen: Arc<Mutex<String>>,
}

impl Terminal {
    /// Opens a terminal of 80 columns and 24 lines.
    ///
    /// # Errors
    /// When the system has none.
    pub fn open() -> anyhow::Result<Self> {
        let outside = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&outside)?;
        unlockpt(&outside)?;
        let name = ptsname(&outside, Vec::new())?;
        let inside = OpenOptions::new().read(true).write(true).open(name.to_str()?)?;
        let terminal = Self { outside: File::from(outside), inside, seen: Arc::default() };
        terminal.resize(80, 24)?;
        let (mut reader, seen) = (terminal.outside.try_clone()?, Arc::clone(&terminal.seen));
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            let mut partial = Vec::new();
            while let Ok(read @ 1..) = reader.read(&mut chunk) {
                partial.extend_from_slice(&chunk[..read]);
                // A character may come in two pieces.
                let whole = match std::str::from_utf8(&partial) {
                    Err(error) if error.error_len().is_none() => error.valid_up_to(),
                    _ => partial.len(),
                };
                let text: Vec<u8> = partial.drain(..whole).collect();
                seen.lock().unwrap_or_else(PoisonError::into_inner).push_str(&String::from_utf8_lossy(&text));
            }
        });
        Ok(terminal)
    }

    /// Changes its size.
    ///
    /// # Errors
    /// When the system does not let us.
    pub fn resize(&self, width: u16, height: u16) -> anyhow::Result<()> {
        let size = Winsize { ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(tcsetwinsize(&self.inside, size)?)
    }

    /// Starts a command on it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&self, mut command: Command) -> anyhow::Result<Child> {
        let end = || self.inside.try_clone().map(Stdio::from);
        command.env("TERM", "xterm").stdin(end()?).stdout(end()?).stderr(end()?).kill_on_drop(true);
        command.spawn().context("cannot start a command on the terminal")
    }

    /// Types.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn press(&self, keys: &str) -> anyhow::Result<()> {
        Ok((&self.outside).write_all(keys.as_bytes())?)
    }

    /// Everything that was written to it.
    #[must_use]
    pub fn seen(&self) -> String {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What stands on the screen.
    #[must_use]
    pub fn screen(&self) -> String {
        screen(&self.seen())
    }

    /// Waits until this stands on the screen.
    ///
    /// # Errors
    /// When it never does; the error has the screen.
    pub async fn shows(&self, text: &str) -> anyhow::Result<()> {
        let shown = eventually(text, async || self.screen().contains(text).then_some(())).await;
        shown.with_context(|| format!("no {text:?} in\n{}", self.screen()))
    }

    /// How it treats what is typed.
    ///
    /// # Errors
    /// When it is gone.
    pub fn mode(&self) -> anyhow::Result<(String, String)> {
        let Termios { input_modes, local_modes, .. } = tcgetattr(&self.inside)?;
        Ok((format!("{input_modes:?}"), format!("{local_modes:?}")))
    }
}

/// What a terminal shows after all of this: as much of one as is needed here.
fn screen(seen: &str) -> String {
    let mut cells = vec![vec![' '; 200]; 60];
    let (mut row, mut column) = (0, 0);
    let mut rest = seen;
    while let Some(char) = rest.chars().next() {
        if let Some(sequence) = rest.strip_prefix("\u{1b}[") {
            let Some(end) = sequence.find(|char: char| char.is_ascii_alphabetic()) else { break };
            let (parameters, command) = (&sequence[..end], &sequence[end..=end]);
            let mut numbers = parameters.split(';').map(|number| number.parse::<usize>().unwrap_or(1));
            match command {
                "H" => (row, column) = (numbers.next().unwrap_or(1) - 1, numbers.next().unwrap_or(1) - 1),
                "J" => cells.iter_mut().for_each(|line| line.fill(' ')),
                "h" if parameters == "?1049" => cells.iter_mut().for_each(|line| line.fill(' ')),
                _ => {}
            }
            rest = &sequence[end + 1..];
            continue;
        }
        match char {
            '\n' => row += 1,
            '\r' => column = 0,
            _ => {
                if let Some(cell) = cells.get_mut(row).and_then(|line| line.get_mut(column)) {
                    *cell = char;
                }
                column += 1;
            }
        }
        rest = &rest[char.len_utf8()..];
    }
    cells.into_iter().map(|line| line.into_iter().collect::<String>().trim_end().to_owned() + "\n").collect()
}
