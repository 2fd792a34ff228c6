//! `signalbox watch`: live traffic on a terminal.
//!
//! [`View`] is a machine: it takes what happens and which key was pressed, says what is to be done, and draws itself into a
//! buffer. It knows no terminal, no socket and no clock; those are in [`screen`] and [`keyboard`], and in the command.

pub mod calls;
mod detail;
pub mod draw;
mod held;
pub mod keyboard;
pub mod screen;
pub(crate) mod text;
pub mod view;

pub use keyboard::Key;
pub use view::{Action, Event, View};
