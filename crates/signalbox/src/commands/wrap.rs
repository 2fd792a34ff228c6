//! `signalbox wrap`: one server, untouched, and everything that passes on a tape.

use crate::cli::{Global, WrapArgs};
use crate::failure::Failure;
use crate::own_pipes::{OwnInput, OwnOutput};
use rustix::process::Signal;
use signalbox_transport::transparent_stdio::{self, WrapSpec};
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Signals that wait to be passed on.
const MAX_SIGNALS: usize = 16;

/// Runs the server until it ends, with its exit code.
pub(super) async fn run(_global: &Global, args: WrapArgs) -> Result<ExitCode, Failure> {
    let signals = signals().map_err(Failure::Start)?;
    let mut words = args.command.into_iter();
    let program = words.next().unwrap_or_default();
    let spec = WrapSpec { program, args: words.collect(), grace: args.grace };
    let ended = transparent_stdio::run(&spec, OwnInput, OwnOutput, None, signals).await?;
    Ok(ExitCode::from(ended.exit_code()))
}

/// Takes the signals that are meant for the server.
fn signals() -> std::io::Result<mpsc::Receiver<Signal>> {
    let (sender, receiver) = mpsc::channel(MAX_SIGNALS);
    for (kind, number) in [
        (SignalKind::interrupt(), Signal::INT),
        (SignalKind::terminate(), Signal::TERM),
        (SignalKind::hangup(), Signal::HUP),
        (SignalKind::quit(), Signal::QUIT),
    ] {
        let (mut signals, sender) = (signal(kind)?, sender.clone());
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                // A full queue has enough of them to pass on.
                let _ = sender.try_send(number);
            }
        });
    }
    Ok(receiver)
}
