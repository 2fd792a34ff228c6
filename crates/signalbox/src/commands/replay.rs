//! `signalbox replay`: serves tapes, and runs them against servers.

mod branch;
mod control;
mod controlled;
mod interactive;
mod run;
mod serve;
mod shrink;
mod trial;

use super::{block_on, quiet_logs};
use crate::cli::{Global, ReplayCommand};
use crate::failure::Failure;
use signalbox_assembly::logging;
use signalbox_config::LogVerbosity;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) fn run(global: &Global, command: ReplayCommand) -> Result<ExitCode, Failure> {
    match command {
        ReplayCommand::Serve(args) => serve::run(global, &args),
        ReplayCommand::Run(args) => {
            // Log lines would corrupt the full-screen view.
            let usual = if args.interactive { LogVerbosity::Error } else { LogVerbosity::Warn };
            let _logs = logging::start(global.log_level.unwrap_or(usual), global.json);
            block_on(run::run(global, &args))
        }
        ReplayCommand::Branch(args) => branch::run(global, &args),
        ReplayCommand::Shrink(args) => {
            let _logs = logging::start(global.log_level.unwrap_or(LogVerbosity::Error), global.json);
            block_on(shrink::run(global, &args))
        }
        ReplayCommand::Control(args) => {
            let _logs = quiet_logs(global);
            block_on(control::run(global, &args))
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::File { path: path.to_owned(), error })
}
