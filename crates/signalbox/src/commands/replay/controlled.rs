//! `replay run --control` and `--interactive`: a run under the control of a user.

use super::interactive::Interactive;
use super::trial::{DRAIN, LiveServer, Tape, Trial, connect, sessions};
use crate::cli::{OnErrorMode, OrderMode, ReplayRunArgs};
use crate::failure::Failure;
use crate::output;
use crate::watch::keyboard::Keyboard;
use crate::watch::screen::Screen;
use signalbox_assembly::reload::Reloader;
use signalbox_assembly::signals::Signals;
use signalbox_control::api::{ApiState, routes};
use signalbox_control::control_socket::Control;
use signalbox_control::status::ProcessInfo;
use signalbox_control::terminal::OutputStyle;
use signalbox_replay::run::control::When;
use signalbox_replay::run::{ReplayControl, ReplayHandle, RunReport};
use std::io::{IsTerminal as _, stdin, stdout};
use std::sync::Arc;

/// Refuses arguments that cannot be combined with control.
pub(super) fn check(args: &ReplayRunArgs) -> Result<(), Failure> {
    let refuse = |what: &str| Err(Failure::Usage(what.to_owned()));
    if !args.control && !args.interactive {
        return match args.trial.on_error {
            OnErrorMode::Pause => {
                refuse("`--on-error pause` needs --control or --interactive, which can resume the run")
            }
            _ => Ok(()),
        };
    }
    if args.trial.order != OrderMode::Sequential {
        return refuse("a controlled run sends one call at a time, as recorded; leave --order out");
    }
    if args.learn.is_some() {
        return refuse("--learn runs several times by itself and cannot be controlled");
    }
    if args.interactive && !(stdin().is_terminal() && stdout().is_terminal()) {
        return refuse("--interactive needs a terminal; --control is driven by `signalbox replay control` and the API");
    }
    Ok(())
}

/// Runs the tape until it is stopped.
pub(super) async fn run(args: &ReplayRunArgs, tape: &Tape, trial: &Trial<'_>) -> Result<RunReport, Failure> {
    if tape.calls.is_empty() {
        return Err(Failure::Usage(format!("{} has no calls to replay", args.tape)));
    }
    let LiveServer { app, loader, config, data_dir, file } = trial.start()?;
    let mut control = ReplayControl::new(sessions(&tape.calls), trial.settings.speed);
    if args.trial.on_error == OnErrorMode::Pause {
        // The limit on breakpoints cannot be reached with the first one.
        let _ = control.set_breakpoint(When::Difference);
    }
    let handle = ReplayHandle::new(control);
    let reloader = Reloader::new(app.clone(), loader, config, false, Vec::new());
    let served = ApiState::new(&reloader, ProcessInfo { command: "replay", url: None, tls: None });
    let socket = Control::open(&data_dir, &app.gateway, &routes::replay_router(&served, &handle)?);
    let mut signals = Signals::listen().map_err(Failure::Start)?;
    let stopping = Arc::clone(&handle);
    let signals = tokio::spawn(async move {
        signals.next().await;
        stopping.act(ReplayControl::stop);
    });
    let view = match args.interactive {
        true => Some(view(args, &handle)?),
        false => {
            output::say(format_args!(
                "signalbox: the run is paused before its first call; `signalbox replay control --pid {}` drives it",
                std::process::id()
            ));
            None
        }
    };
    let shift = trial.shift();
    let mut runner = trial.runner(shift.as_ref());
    let mut open = || connect(&app);
    let outcome = match trial.is_up(&app).await {
        Ok(()) => Control::beside(socket.as_ref(), runner.controlled(&handle, &mut open)).await.map_err(Failure::Run),
        Err(failure) => Err(failure),
    };
    handle.act(ReplayControl::stop);
    signals.abort();
    let seen = match view {
        // A view that panicked has restored the terminal and printed why.
        Some(view) => view.await.unwrap_or(Ok(())),
        None => Ok(()),
    };
    app.shut_down(DRAIN).await;
    drop(file);
    outcome?;
    seen?;
    Ok(runner.finish().0)
}

/// Spawns the view as a task of its own, so that an open editor does not block the run.
fn view(
    args: &ReplayRunArgs,
    handle: &Arc<ReplayHandle>,
) -> Result<tokio::task::JoinHandle<Result<(), Failure>>, Failure> {
    let title = format!("replay {}", args.tape);
    let screen = Screen::open().map_err(Failure::Output)?;
    let keyboard = Keyboard::open().map_err(Failure::Start)?;
    let view = Interactive::new(&title, OutputStyle::of_stdout().colour, screen, keyboard, handle);
    let stopping = Arc::clone(handle);
    Ok(tokio::spawn(async move {
        let seen = view.until_left().await;
        // Whatever ended the view, without it the user cannot resume the run.
        stopping.act(ReplayControl::stop);
        seen
    }))
}
