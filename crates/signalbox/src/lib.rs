//! The `signalbox` program: configuration, wiring, command line. `main` is a few lines over this.

pub mod assemble;
pub mod banner;
pub mod cli;
pub mod commands;
pub mod config;
pub mod control;
pub mod data_dir;
pub mod demo;
pub mod failure;
pub mod front_tls;
pub mod import;
pub mod interceptors;
pub mod logging;
pub mod metrics;
pub mod open_files;
#[cfg(feature = "otel")]
pub mod otel;
pub mod output;
pub mod pipe;
pub mod probes;
pub mod reload;
pub mod signals;
pub mod status;
pub mod table;
pub mod terminal;
pub mod watch_screen;
