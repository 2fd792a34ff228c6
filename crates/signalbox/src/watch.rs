//! `signalbox watch`: live traffic on a terminal.
//!
//! [`WatchView`] is a state machine: it takes events and keys, returns actions, and draws itself into a buffer. It must
//! not use a terminal, a socket or a clock; those are in [`screen`] and [`keyboard`], and in the command.

pub mod calls;
mod detail;
pub mod draw;
mod held;
pub mod keyboard;
pub mod screen;
pub(crate) mod text;
pub mod view;

pub use keyboard::Key;
pub use view::{WatchAction, WatchEvent, WatchView};
