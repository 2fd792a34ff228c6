//! Keyboard input, read on a thread of its own.

use ratatui::crossterm::event::{self, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use signalbox_engine::lock::LockResultExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::mpsc;

/// Maximum time that the thread blocks in one poll.
const LOOK: Duration = Duration::from_millis(50);
/// Maximum number of queued keys.
const MAX_KEYS: usize = 256;

/// A key that the view handles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key {
    /// Character typed without Control.
    Char(char),
    Enter,
    Esc,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    /// Control-C, which raw mode delivers as a key.
    Interrupt,
}

fn key(event: KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let control = event.modifiers.contains(KeyModifiers::CONTROL);
    Some(match event.code {
        KeyCode::Char('c') if control => Key::Interrupt,
        KeyCode::Char(_) if control => return None,
        KeyCode::Char(char) => Key::Char(char),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Esc,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        _ => return None,
    })
}

#[derive(Default)]
struct KeyboardState {
    stop: AtomicBool,
    wanted: AtomicBool,
    /// Held by the thread that reads from the terminal.
    reading: Mutex<()>,
}

/// Source of keys. Dropping it ends its thread.
pub struct Keyboard {
    keys: mpsc::Receiver<Option<Key>>,
    shared: Arc<KeyboardState>,
}

impl Keyboard {
    /// Starts to read keys. The terminal must be in raw mode.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn open() -> std::io::Result<Self> {
        let (sender, keys) = mpsc::channel(MAX_KEYS);
        let shared = Arc::<KeyboardState>::default();
        let own = Arc::clone(&shared);
        std::thread::Builder::new().name("keyboard".to_owned()).spawn(move || read(&own, &sender))?;
        Ok(Self { keys, shared })
    }

    /// Returns the next key. `Some(None)` is a resized terminal, `None` a closed one.
    pub async fn next(&mut self) -> Option<Option<Key>> {
        self.keys.recv().await
    }

    /// Stops reading until the guard is dropped, so that another program can use the terminal.
    #[must_use]
    pub fn aside(&self) -> Aside<'_> {
        self.shared.wanted.store(true, Ordering::Relaxed);
        Aside { shared: &self.shared, _reading: self.shared.reading.lock().unpoisoned() }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

/// Guard that keeps the keyboard thread from reading the terminal.
pub struct Aside<'a> {
    shared: &'a KeyboardState,
    _reading: MutexGuard<'a, ()>,
}

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        self.shared.wanted.store(false, Ordering::Relaxed);
    }
}

fn read(shared: &KeyboardState, keys: &mpsc::Sender<Option<Key>>) {
    while !shared.stop.load(Ordering::Relaxed) {
        if shared.wanted.load(Ordering::Relaxed) {
            std::thread::park_timeout(LOOK);
            continue;
        }
        let read = {
            let _reading = shared.reading.lock().unpoisoned();
            match event::poll(LOOK) {
                Ok(true) => event::read().map(Some),
                Ok(false) => Ok(None),
                Err(error) => Err(error),
            }
        };
        let told = match read {
            Ok(Some(event::Event::Key(event))) => key(event).map(Some),
            Ok(Some(event::Event::Resize(..))) => Some(None),
            Ok(_) => None,
            // The terminal is gone. Returning closes the channel.
            Err(_) => return,
        };
        if let Some(told) = told
            && keys.blocking_send(told).is_err()
        {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart() {
        let press = |code, modifiers| key(KeyEvent::new(code, modifiers));
        assert_eq!(press(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Interrupt));
        assert_eq!(press(KeyCode::Char('x'), KeyModifiers::CONTROL), None);
        assert_eq!(press(KeyCode::Char('c'), KeyModifiers::NONE), Some(Key::Char('c')));
        assert_eq!(press(KeyCode::F(1), KeyModifiers::NONE), None);
    }
}
