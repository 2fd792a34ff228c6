//! `signalbox status`: the running processes and the state of their backends.

use crate::cli::{Global, StatusArgs};
use crate::failure::Failure;
use crate::output;
use crate::watch_screen::Screen;
use serde_json::Value;
use signalbox_assembly::signals::Signals;
use signalbox_control::api::routes;
use signalbox_control::control_socket::{AskError, ProcessAddress, ask};
use signalbox_control::status::rate_sampler::RateSampler;
use signalbox_control::status::show::show;
use signalbox_control::terminal::OutputStyle;
use signalbox_wire::printable;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Queries every process of this data folder, once or at an interval.
pub(super) async fn run(global: &Global, args: &StatusArgs) -> Result<ExitCode, Failure> {
    match args.watch {
        None => once(global).await,
        Some(every) => watch(global, every).await,
    }
}

async fn once(global: &Global) -> Result<ExitCode, Failure> {
    let (data_dir, all) = ask_all(global).await?;
    if global.json {
        output::json(&Value::from(all.clone()))?;
    } else {
        output::styled(&shown(&all, OutputStyle::of_stdout()))?;
    }
    if all.is_empty() { Err(Failure::NothingRuns(data_dir)) } else { Ok(ExitCode::SUCCESS) }
}

/// Shows the state until a signal arrives or the reader closes the pipe.
async fn watch(global: &Global, every: Duration) -> Result<ExitCode, Failure> {
    let mut signals = Signals::listen().map_err(Failure::Start)?;
    let mut screen = Screen::open(global.json);
    let mut rates = RateSampler::default();
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = signals.next() => return Ok(ExitCode::SUCCESS),
        }
        let (data_dir, mut all) = ask_all(global).await?;
        rates.annotate(Instant::now(), &mut all);
        let frame = match (global.json, all.is_empty()) {
            (true, _) => printable::json(&format!("{}\n", Value::from(all))),
            (false, true) => printable::lines(&format!("{}\n", Failure::NothingRuns(data_dir))),
            (false, false) => shown(&all, OutputStyle::of_stdout()),
        };
        if !screen.show(&frame)? {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

fn shown(all: &[Value], style: OutputStyle) -> String {
    let one = |status: &Value| match serde_json::from_value(status.clone()) {
        Ok(view) => show(&view, style),
        Err(error) => {
            printable::lines(&format!("pid {}: its state cannot be read by this version: {error}\n", status["pid"]))
        }
    };
    all.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// Returns the state of every process that answers. Reports the reason for each of the others.
async fn ask_all(global: &Global) -> Result<(PathBuf, Vec<Value>), Failure> {
    let (data_dir, sockets) = super::running(global)?;
    let mut all = Vec::new();
    for socket in sockets {
        match read(&socket).await {
            Ok(status) => all.push(status),
            Err(why) => output::complain(format_args!("{socket}: {why}")),
        }
    }
    Ok((data_dir, all))
}

/// Reason that the state of a process could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error("its answer is not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
}

/// Requests the state of a process.
pub(super) async fn read(process: &ProcessAddress) -> Result<Value, ReadError> {
    Ok(serde_json::from_slice(&ask(process, routes::STATUS).await?)?)
}
