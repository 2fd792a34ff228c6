//! Parse, run, say what failed, exit.

use clap::Parser as _;
use signalbox::cli::Cli;
use signalbox::{commands, output};
use std::process::ExitCode;

fn main() -> ExitCode {
    match commands::run(Cli::parse()) {
        Ok(code) => code,
        Err(failure) => {
            output::complain(&failure);
            failure.exit_code()
        }
    }
}
