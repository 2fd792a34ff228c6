//! Parse, run, say what failed, exit.

use clap::Parser as _;
use signalbox::cli::Cli;
use signalbox::{commands, output};
use std::process::ExitCode;

/// A call makes and frees some forty small pieces of memory, which this allocator does in a third of the time; see
/// `docs/performance.md`.
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
