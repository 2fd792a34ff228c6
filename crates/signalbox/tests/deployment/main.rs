//! What is written down about deploying Signalbox is true: the files named exist, and the command lines can be run.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod container;
mod pages;
mod service;

use clap::Parser as _;
use signalbox::cli::Cli;
use signalbox_config::layers::VARIABLES;
use std::path::{Path, PathBuf};

/// The folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Fails unless these words, the program first, are a command line of ours.
fn assert_command_line<'a>(words: impl IntoIterator<Item = &'a str>, place: &str) {
    let words: Vec<&str> = words.into_iter().collect();
    let program = words.first().copied().unwrap_or_default();
    assert_eq!(Path::new(program).file_name().unwrap(), "signalbox", "{place}: {words:?}");
    match Cli::try_parse_from(&words) {
        Ok(_) => {}
        // Asking for help is a command line too.
        Err(error) if !error.use_stderr() => {}
        Err(error) => panic!("{place}: {words:?}: {error}"),
    }
}

/// Fails if a variable looks like one of ours but is not read.
fn assert_variable(name: &str, place: &str) {
    assert!(!name.starts_with("SIGNALBOX_") || VARIABLES.contains(&name), "{place}: nobody reads {name}");
}
