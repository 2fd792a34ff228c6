//! `signalbox replay run --interactive`: terminal view of a controlled run.
//!
//! [`ReplayView`] is a state machine: it takes keys and the state of the run, and returns actions. [`draw`] renders it.
//! Neither may use a terminal or a clock; those are in [`crate::watch`] and in the command.

pub mod draw;
pub mod view;

pub use view::{ReplayView, ReplayViewAction};
