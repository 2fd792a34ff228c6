//! `signalbox status`: which processes run, and how their backends are.

use crate::cli::Global;
use crate::config::Overrides;
use crate::control::{self, AskError, ask};
use crate::data_dir::run_folder;
use crate::failure::Failure;
use crate::{output, status};
use serde_json::Value;
use std::path::Path;
use std::process::ExitCode;

/// Asks every process of this data folder.
pub(super) async fn run(global: &Global) -> Result<ExitCode, Failure> {
    let data_dir = super::load(global, Overrides::default())?.config.data_dir;
    let folder = run_folder(&data_dir);
    let sockets = control::sockets(&folder).map_err(|error| Failure::File { path: folder, error })?;
    let mut all = Vec::new();
    for socket in sockets {
        match read(&socket).await {
            Ok(status) => all.push(status),
            Err(why) => output::complain(format_args!("{}: {why}", socket.display())),
        }
    }
    if global.json {
        output::result(&format!("{}\n", Value::from(all.clone())))?;
    } else {
        let shown: Vec<String> = all.iter().map(status::show).collect();
        output::result(&shown.join("\n"))?;
    }
    if all.is_empty() { Err(Failure::NothingRuns(data_dir)) } else { Ok(ExitCode::SUCCESS) }
}

/// Why a process did not tell its state.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error("it answered something else than JSON: {0}")]
    NotJson(#[from] serde_json::Error),
}

async fn read(socket: &Path) -> Result<Value, ReadError> {
    Ok(serde_json::from_slice(&ask(socket, control::STATUS).await?)?)
}
