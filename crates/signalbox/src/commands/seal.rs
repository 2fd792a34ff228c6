//! `signalbox seal`: manages keys, signs and verifies files.

mod input;
mod keys;
mod seal_failure;
mod sign;
mod verify;

pub use seal_failure::SealFailure;

use crate::cli::{Global, SealCommand};
use crate::commands::data_dir;
use crate::failure::Failure;
use signalbox_assembly::seal_folder::SealFolder;
use std::process::ExitCode;

pub(super) fn run(global: &Global, command: SealCommand) -> Result<ExitCode, Failure> {
    let folder = SealFolder::of(&data_dir(global)?);
    match command {
        SealCommand::Keys { command } => keys::run(global, &folder, command),
        SealCommand::Sign(args) => sign::run(global, &folder, &args),
        SealCommand::Verify(args) => verify::run(global, &folder, &args),
    }
}
