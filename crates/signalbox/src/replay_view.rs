//! `signalbox replay run --interactive`: a run of a tape on a terminal, under control.
//!
//! [`View`] is a machine: it takes keys and what can be seen of the run, and says what is to be done. [`draw`] draws it. Both
//! know no terminal and no clock; those are in [`crate::watch`] and in the command.

pub mod draw;
pub mod view;

pub use view::{Action, View};
