//! `signalbox wrap`: runs one server unchanged, and records all messages on a tape.

use crate::cli::{Global, WrapArgs};
use crate::failure::Failure;
use crate::output;
use crate::own_pipes::{OwnInput, OwnOutput};
use crate::transparent_tape::{MAX_MESSAGE, TransparentTape};
use rustix::process::Signal;
use signalbox_control::control_socket::Control;
use signalbox_engine::record::TapeKind;
use signalbox_engine::{Caller, SessionKey};
use signalbox_transport::tap::{Chunk, StdioTap, Who};
use signalbox_transport::transparent_stdio::{self, WrapSpec};
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Maximum number of signals that wait to be forwarded.
const MAX_SIGNALS: usize = 16;

/// Runs the server until it ends, and returns its exit code.
pub(super) async fn run(global: &Global, args: WrapArgs) -> Result<ExitCode, Failure> {
    let signals = signals().map_err(Failure::Start)?;
    let target = args.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let tapped = tap(global, &args, &target)?;
    if std::io::stderr().is_terminal() {
        // A client that started us does not need this line, and may show it as output of the server.
        output::say(format_args!("signalbox: tape: {}", tapped.shown()));
    }
    let control = tapped.control("wrap", None, target);
    let mut words = args.command.into_iter();
    let program = words.next().unwrap_or_default();
    let spec = WrapSpec { program, args: words.collect(), grace: args.grace };
    let running = transparent_stdio::run(&spec, OwnInput, OwnOutput, Some(tapped.feed.clone()), signals);
    let ended = Control::beside(control.as_ref(), running).await;
    tapped.end();
    Ok(ExitCode::from(ended?.exit_code()))
}

fn tap(global: &Global, args: &WrapArgs, target: &str) -> Result<TransparentTape<Chunk>, Failure> {
    let who = Who {
        session: SessionKey(1),
        caller: Caller::local(&super::stdio::user(), "stdio"),
        backend: name(&args.command).into(),
        transport: "stdio",
    };
    TransparentTape::begin(global, &args.to, TapeKind::Wrap, target.to_owned(), || StdioTap::new(who, MAX_MESSAGE))
}

/// Returns the name of the server on the tape: the file name of its program.
fn name(command: &[OsString]) -> String {
    let program = command.first().map(Path::new);
    let last = program.and_then(Path::file_name).or(program.map(Path::as_os_str));
    last.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Intercepts the signals to forward to the server.
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
                // If the queue is full, enough signals are waiting already.
                let _ = sender.try_send(number);
            }
        });
    }
    Ok(receiver)
}
