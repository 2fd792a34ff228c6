//! Parse, run, say what failed, exit.

use clap::Parser as _;
use signalbox::cli::Cli;
use signalbox::{commands, output};
use std::process::ExitCode;

/// Small buffers come and go with every call; this allocator was measured to serve them with less CPU than the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match commands::run(Cli::parse()) {
        Ok(code) => code,
        Err(failure) => {
            output::complain(&failure);
            failure.exit_code()
        }
    }
}
