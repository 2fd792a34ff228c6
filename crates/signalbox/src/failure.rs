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
use signalbox_config::rules::RulesError;
use signalbox_config::sentinel::SentinelError;
use signalbox_control::control_socket::{AskError, ProcessAddress};
use signalbox_control::pipe::PipeError;
use signalbox_engine::record::StoreError;
use signalbox_oauth::OauthError;
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
    /// What was asked for makes no sense.
    #[error("{0}")]
    Usage(String),
    /// The backends cannot be put together.
    #[error(transparent)]
    Assemble(#[from] AssembleError),
    /// Callers cannot prove who they are as it is configured.
    #[error(transparent)]
    Authentication(#[from] AuthError),
    /// API keys cannot be read or written.
    #[error(transparent)]
    ApiKeys(#[from] KeyFileFault),
    /// Local users cannot be read or written.
    #[error(transparent)]
    Users(#[from] UserFileFault),
    /// What is switched off cannot be read or written.
    #[error(transparent)]
    Switches(#[from] SwitchFileFault),
    /// What was granted for a while cannot be read or written.
    #[error(transparent)]
    Grants(#[from] GrantFileFault),
    /// The file of another gateway cannot be imported.
    #[error(transparent)]
    Sentinel(#[from] SentinelError),
    /// A sign-in at a backend failed.
    #[error("backend `{backend}`: {error}")]
    SignIn {
        /// The backend.
        backend: String,
        /// Why.
        error: OauthError,
    },
    /// Nobody completed a sign-in.
    #[error("the sign-in was not completed in time")]
    SignInLate,
    /// What is served besides MCP cannot be.
    #[error(transparent)]
    Routes(#[from] RouteError),
    /// The data folder cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// Somebody else listens there.
    #[error(
        "{0} is already in use, perhaps by another signalbox (see `signalbox status`); \
         take any free port with `signalbox serve --listen 127.0.0.1:0`"
    )]
    PortTaken(SocketAddr),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {error}; choose another address with `--listen HOST:PORT`")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// TLS cannot be spoken with these files.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// There is no certificate to try TLS out with.
    #[error(transparent)]
    SelfSigned(#[from] SelfSignedError),
    /// There are no tapes.
    #[error("nothing was recorded in {} yet; `signalbox serve` and `signalbox stdio` record unless `record.enabled` is false", .0.display())]
    NothingRecorded(PathBuf),
    /// The store of tapes says no.
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
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: ImportError,
    },
    /// A file that can be imported is not a tape yet.
    #[error("{path} is not a tape file; import it first: signalbox tape import {path}", path = .0.display())]
    ImportFirst(PathBuf),
    /// The audit log cannot be read.
    #[error(transparent)]
    Audit(#[from] AuditReadError),
    /// Rules that cannot be used.
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
    /// The server of a run does not start or answer.
    #[error("{0}")]
    NoServer(String),
    /// The system gives no threads or signals.
    #[error("cannot start: {0}")]
    Start(io::Error),
    /// Standard output is closed or full.
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    /// The stdio front ended badly.
    #[error(transparent)]
    Stdio(#[from] StdioError),
    /// A server cannot be wrapped.
    #[error(transparent)]
    Wrap(#[from] WrapError),
    /// The gateway did not do what `tools` asked of it.
    #[error(transparent)]
    Pipe(#[from] PipeError),
    /// There is nobody to ask.
    #[error("no backend is up")]
    NoBackend,
    /// A running process said no.
    #[error("{0}")]
    Refused(String),
    /// A running process cannot be spoken to.
    #[error("{address}: {error}")]
    Process {
        /// Where it was asked.
        address: ProcessAddress,
        /// Why.
        error: AskError,
    },
    /// No message waits for a person.
    #[error("nothing is held")]
    NothingHeld,
    /// No process was found.
    #[error("no signalbox is running with the data folder {}", .0.display())]
    NothingRuns(PathBuf),
}

impl Failure {
    /// 2 for usage, configuration and servers that a tape cannot be run against, 1 for everything else.
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
