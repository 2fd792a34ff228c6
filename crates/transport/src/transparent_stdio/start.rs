//! Starting the server that is wrapped.

use super::WrapSpec;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

/// Why a server could not be wrapped.
#[derive(Debug, thiserror::Error)]
pub enum WrapError {
    /// There is no such program.
    #[error("there is no program `{0}`; give the path of a program, or the name of one on PATH")]
    Missing(String),
    /// It may not be run.
    #[error("`{0}` may not be run; make it executable (chmod +x), or name the program that runs it, as in `node {0}`")]
    Permission(String),
    /// The system could not start it.
    #[error("`{program}` could not be started: {error}")]
    Start {
        /// The program.
        program: String,
        /// What the system said.
        error: io::Error,
    },
    /// The system gives no thread.
    #[error("no thread could be started: {0}")]
    Thread(io::Error),
    /// It cannot be told how it ended.
    #[error("the end of the server could not be waited for: {0}")]
    Wait(io::Error),
}

impl WrapError {
    /// The exit code that shells and `env` have for it.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Missing(_) => 127,
            Self::Permission(_) | Self::Start { .. } => 126,
            Self::Thread(_) | Self::Wait(_) => 1,
        }
    }
}

/// Starts it with our environment, folder and standard error. It leads a process group of its own, so that a Ctrl-C at a
/// terminal reaches it once, from us, and so that its descendants can be ended with it.
pub(super) fn start(spec: &WrapSpec) -> Result<Child, WrapError> {
    let mut command = Command::new(&spec.program);
    command.args(&spec.args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).process_group(0);
    command.spawn().map_err(|error| {
        let program = spec.program.to_string_lossy().into_owned();
        match error.kind() {
            io::ErrorKind::NotFound => WrapError::Missing(program),
            io::ErrorKind::PermissionDenied => WrapError::Permission(program),
            _ => WrapError::Start { program, error },
        }
    })
}
