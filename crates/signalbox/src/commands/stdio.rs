//! `signalbox stdio`: all backends as one server on standard input and output.

mod token;

use super::serve::FORCED;
use crate::failure::Failure;
use signalbox_assembly::assemble::{App, StateFiles, assemble};
use signalbox_assembly::data_dir::DataDir;
use signalbox_assembly::logging::log_warnings;
use signalbox_assembly::recording::Recording;
use signalbox_assembly::reload::Reloader;
use signalbox_assembly::signals::{Hangups, Signals};
use signalbox_config::CheckedConfig;
use signalbox_config::loader::Loader;
use signalbox_control::api::{ApiState, routes};
use signalbox_control::control_socket::Control;
use signalbox_control::open_files;
use signalbox_control::status::ProcessInfo;
use signalbox_engine::Caller;
use signalbox_engine::record::TapeKind;
use signalbox_oauth_client::page_host::PageHost;
use signalbox_transport::stdio_front::{self, StdioError};
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use token::PipeProof;

/// Serves until the client closes its end or a signal arrives.
pub(super) async fn run(loaded: CheckedConfig, loader: Loader) -> Result<ExitCode, Failure> {
    let config = loaded.config;
    open_files::raise_limit(0);
    let _ = open_files::divide(0);
    let data_dir = DataDir::prepare(&config.data_dir)?;
    let mut signals = Signals::listen().map_err(Failure::Start)?;
    let hangups = Hangups::listen().map_err(Failure::Start)?;
    let caller = Caller::local(&user(), "stdio");
    let recording = Recording::start(&config, TapeKind::Stdio, &data_dir)?;
    let state = StateFiles { catalog: Some(data_dir.catalog()), sessions: None };
    let app = assemble(&config, caller.principal().clone(), state, recording, PageHost::Person)?;
    let pipe = PipeProof::load(&config, &data_dir, &app, &caller)?;
    let reloader = Reloader::new(app.clone(), loader, config.clone(), false, vec![pipe.follower(&app)]);
    let served = ApiState::new(&reloader, ProcessInfo { command: "stdio", url: None, tls: None });
    let control = Control::open(&data_dir, &app.gateway, &routes::router(&served, None)?);
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        data = %config.data_dir.display(),
        backends = app.gateway.backends().len(),
        "serving MCP on standard input and output"
    );
    if std::io::stdin().is_terminal() {
        tracing::info!(
            "this command speaks JSON to a program; people will want `signalbox serve` or `signalbox tools`"
        );
    }
    log_warnings(&loaded.warnings);
    app.gateway.start();
    let proved = pipe.prove(&app, caller).await?;
    tokio::select! {
        ended = until_done(&app, proved.caller.clone(), &reloader, &mut signals) => ended,
        () = Arc::clone(&reloader).follow(hangups) => Ok(ExitCode::SUCCESS),
        () = Control::serve(control.as_ref()) => Ok(ExitCode::SUCCESS),
    }
}

async fn until_done(
    app: &App,
    caller: Caller,
    reloader: &Reloader,
    signals: &mut Signals,
) -> Result<ExitCode, Failure> {
    let drain = || reloader.current().gateway.drain;
    let mut serving = std::pin::pin!(serve(app, caller, drain()));
    tokio::select! {
        ended = &mut serving => return ended,
        signal = signals.next() => tracing::info!(signal, "stopping; a second signal stops at once"),
    }
    let ending = async {
        app.shut_down(drain()).await;
        // The session is closed now, which writes the last responses.
        let _ = tokio::time::timeout(LAST_WORDS, serving).await;
    };
    tokio::select! {
        () = ending => Ok(ExitCode::SUCCESS),
        signal = signals.next() => {
            tracing::warn!(signal, "stopping at once");
            app.abandon().await;
            Ok(ExitCode::from(FORCED))
        }
    }
}

/// Maximum time that a client may take to read the last responses.
const LAST_WORDS: Duration = Duration::from_secs(1);

async fn serve(app: &App, caller: Caller, drain: Duration) -> Result<ExitCode, Failure> {
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    let served = stdio_front::serve(input, output, Arc::clone(&app.gateway), caller, drain).await;
    app.shut_down(Duration::ZERO).await;
    match served {
        Err(error @ (StdioError::Session(_) | StdioError::Stuck)) => Err(error.into()),
        Err(StdioError::Output(error)) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(StdioError::Output(error).into())
        }
        // A client that disconnected is no failure.
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Returns the owner of the pipe: the user's name, or else the user id.
pub(super) fn user() -> String {
    std::env::var("USER")
        .ok()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| rustix::process::getuid().as_raw().to_string())
}
