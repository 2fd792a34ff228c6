//! Command line and commands of the `signalbox` program. `main` is a thin wrapper around this library.

pub mod ad_hoc;
pub mod banner;
pub mod cli;
pub mod commands;
pub mod failure;
pub mod front_tls;
pub mod intent;

pub mod output;
pub mod own_pipes;
pub mod replay_view;
pub mod transparent_tape;
pub mod watch;
pub mod watch_screen;
