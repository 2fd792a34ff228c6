//! Why a command failed, and its exit code.

use crate::commands::seal::SealFailure;
use signalbox_assembly::assemble::AssembleError;
use signalbox_assembly::auditing::AuditReadError;
use signalbox_assembly::authentication::AuthError;
use signalbox_assembly::data_dir::DataDirError;
use signalbox_assembly::grants::GrantFileFault;
use signalbox_assembly::key_file::KeyFileFault;
use signalbox_assembly::permissions::SwitchFileFault;
use signalbox_assembly::recording::RecordingError;
use signalbox_assembly::user_file::UserFileFault;
use signalbox_config::ConfigError;
use signalbox_config::RulesError;
use signalbox_config::sentinel::SentinelError;
use signalbox_control::control_socket::{AskError, ProcessAddress};
use signalbox_control::in_process_session::PipeError;
use signalbox_engine::record::StoreError;
use signalbox_oauth_client::OauthError;
use signalbox_tape::TapeFileError;
use signalbox_tape::export::ExportError;
use signalbox_tape::import::ImportError;
use signalbox_transport::router::RouteError;
use signalbox_transport::stdio_front::StdioError;
use signalbox_transport::tls::{SelfSignedError, TlsError};
use signalbox_transport::transparent_stdio::WrapError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

/// A failure, in one sentence for the user.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The arguments or the input are invalid.
    #[error("{0}")]
    Usage(String),
    /// The backends cannot be assembled.
    #[error(transparent)]
    Assemble(#[from] AssembleError),
    /// Authentication is configured in a way that cannot work.
    #[error(transparent)]
    Authentication(#[from] AuthError),
    /// API keys cannot be read or written.
    #[error(transparent)]
    ApiKeys(#[from] KeyFileFault),
    /// Local users cannot be read or written.
    #[error(transparent)]
    Users(#[from] UserFileFault),
    /// The file of switches cannot be read or written.
    #[error(transparent)]
    Switches(#[from] SwitchFileFault),
    /// The file of grants cannot be read or written.
    #[error(transparent)]
    Grants(#[from] GrantFileFault),
    /// The file of another gateway cannot be imported.
    #[error(transparent)]
    Sentinel(#[from] SentinelError),
    /// A sign-in at a backend failed.
    #[error("backend `{backend}`: {error}")]
    SignIn {
        /// Name of the backend.
        backend: String,
        /// Reason that the sign-in failed.
        error: OauthError,
    },
    /// A sign-in was not completed in time.
    #[error("the sign-in was not completed in time")]
    SignInLate,
    /// The routes besides MCP cannot be set up.
    #[error(transparent)]
    Routes(#[from] RouteError),
    /// The data folder cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// Another process listens on the address.
    #[error(
        "{0} is already in use, perhaps by another signalbox (see `signalbox status`); \
         take any free port with `signalbox serve --listen 127.0.0.1:0`"
    )]
    PortTaken(SocketAddr),
    /// The listener cannot be bound.
    #[error("cannot listen on {address}: {error}; choose another address with `--listen HOST:PORT`")]
    Listen {
        /// Address of the listener.
        address: SocketAddr,
        /// Error of the system.
        error: io::Error,
    },
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// TLS cannot be set up with these files.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The self-signed certificate cannot be created.
    #[error(transparent)]
    SelfSigned(#[from] SelfSignedError),
    /// The data folder has no tapes.
    #[error("nothing was recorded in {} yet; `signalbox serve` and `signalbox stdio` record unless `record.enabled` is false", .0.display())]
    NothingRecorded(PathBuf),
    /// The store of tapes failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A tape file cannot be read or written.
    #[error(transparent)]
    TapeFile(#[from] TapeFileError),
    /// An export or import failed.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// A recording of another program cannot be read.
    #[error("{}: {error}", path.display())]
    Import {
        /// Path of the recording.
        path: PathBuf,
        /// Reason that it cannot be read.
        error: ImportError,
    },
    /// The file is a recording that must be imported first.
    #[error("{path} is not a tape file; import it first: signalbox tape import {path}", path = .0.display())]
    ImportFirst(PathBuf),
    /// The audit log cannot be read.
    #[error(transparent)]
    Audit(#[from] AuditReadError),
    /// The rules are invalid.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// Keys or signatures could not be handled.
    #[error(transparent)]
    Seal(#[from] SealFailure),
    /// Nothing can be recorded.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// A tape could not be run to its end.
    #[error(transparent)]
    Run(signalbox_replay::run::RunError),
    /// The server of a run does not start or respond.
    #[error("{0}")]
    NoServer(String),
    /// The system provides no threads or signals.
    #[error("cannot start: {0}")]
    Start(io::Error),
    /// Standard output is closed or full.
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    /// The stdio front ended with an error.
    #[error(transparent)]
    Stdio(#[from] StdioError),
    /// A server cannot be wrapped.
    #[error(transparent)]
    Wrap(#[from] WrapError),
    /// The gateway rejected a request of `tools`, or did not answer it.
    #[error(transparent)]
    Pipe(#[from] PipeError),
    /// No backend can answer.
    #[error("no backend is up")]
    NoBackend,
    /// A running process rejected the request.
    #[error("{0}")]
    Refused(String),
    /// A running process cannot be reached.
    #[error("{address}: {error}")]
    Process {
        /// Address of the process.
        address: ProcessAddress,
        /// Reason that the request failed.
        error: AskError,
    },
    /// No message is held.
    #[error("nothing is held")]
    NothingHeld,
    /// No running process was found.
    #[error("no signalbox is running with the data folder {}", .0.display())]
    NothingRuns(PathBuf),
}

impl Failure {
    /// Returns 2 for usage, configuration and servers that a tape cannot be run against, 1 otherwise.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(_) | Self::Usage(_) | Self::Assemble(_) | Self::Tls(_) => ExitCode::from(2),
            Self::Run(_) | Self::NoServer(_) => ExitCode::from(2),
            Self::Wrap(error) => ExitCode::from(error.exit_code()),
            _ => ExitCode::FAILURE,
        }
    }
}
