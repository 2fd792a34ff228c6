//! `signalbox completions`: a script that completes the command line in a shell.

use crate::cli::Cli;
use crate::failure::Failure;
use crate::output;
use clap::CommandFactory as _;
use clap_complete::Shell;
use std::process::ExitCode;

pub(super) fn run(shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "signalbox", &mut script);
    output::result(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
