//! `signalbox replay run`: sends the calls of a tape to a live server.

use super::super::tape::read_tape;
use super::trial::{Tape, Trial};
use super::{absolute, controlled};
use crate::cli::{Global, ReplayRunArgs};
use crate::failure::Failure;
use crate::output;
use signalbox_replay::run::{RunReport, Volatility};
use std::io::{IsTerminal as _, Write as _, stderr, stdin};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Pause between two runs of `--learn`. Timestamps in whole seconds differ after it.
const APART: Duration = Duration::from_millis(1100);

/// Runs the tape, reports, and returns the exit code: success if everything was the same.
pub(super) async fn run(global: &Global, args: &ReplayRunArgs) -> Result<ExitCode, Failure> {
    controlled::check(args)?;
    let tape = Tape::read(&mut read_tape(global, &args.tape, "replay run")?, args.trial.session)?;
    let update = args.update.as_deref().map(absolute).transpose()?;
    let mut trial = Trial::new(global, &args.trial, &args.command, &tape, update)?;
    tape.holes.to_string().lines().for_each(|hole| output::say(format_args!("signalbox: {hole}")));
    if args.control || args.interactive {
        return ended(global, args, &controlled::run(args, &tape, &trial).await?);
    }
    let times = args.learn.unwrap_or(1);
    trial.settings.keep_answers = times > 1;
    let (mut reports, mut answers) = (Vec::new(), Vec::new());
    for round in 0..times {
        if round > 0 {
            tokio::time::sleep(APART).await;
        }
        let (report, heard) = trial.run(&tape.calls).await?;
        reports.push(report);
        answers.push(heard);
    }
    if args.learn.is_some() {
        propose(args, &Volatility::of(&answers, &trial.settings.comparison))?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(report) = reports.pop() else { return Ok(ExitCode::SUCCESS) };
    ended(global, args, &report)
}

/// Prints the proposed patterns, and writes them to the file if the user wants it.
fn propose(args: &ReplayRunArgs, found: &Volatility) -> Result<(), Failure> {
    let lines = found.to_string();
    output::exact(&lines)?;
    for line in found.unexplained() {
        output::say(format_args!("signalbox: not learned, since more than ids, numbers and times differ: {line}"));
    }
    let Some(file) = &args.save else { return Ok(()) };
    if !args.yes && !stdin().is_terminal() {
        output::say(format_args!("signalbox: nothing was written to {}; --yes writes it", file.display()));
        return Ok(());
    }
    if args.yes || agrees(&format!("Write {} to {}?", patterns(found.count()), file.display()))? {
        write(file, &lines)?;
    }
    Ok(())
}

fn patterns(count: usize) -> String {
    if count == 1 { "1 pattern".to_owned() } else { format!("{count} patterns") }
}

/// Asks a yes-or-no question at the terminal.
fn agrees(question: &str) -> Result<bool, Failure> {
    // Read the answer even if the question cannot be shown.
    let _ = write!(stderr(), "{question} [y/N] ").and_then(|()| stderr().flush());
    let mut answer = String::new();
    stdin().read_line(&mut answer).map_err(Failure::Start)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Reports, and returns the exit code: success if everything was the same.
fn ended(global: &Global, args: &ReplayRunArgs, report: &RunReport) -> Result<ExitCode, Failure> {
    show(global, args, report)?;
    if report.is_silence() {
        let within = args.trial.timeout;
        return Err(Failure::NoServer(format!("the server answered none of the calls within {within:?}")));
    }
    Ok(if report.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn show(global: &Global, args: &ReplayRunArgs, report: &RunReport) -> Result<(), Failure> {
    match global.json {
        true => output::json(&report.to_json())?,
        false => output::result(&report.to_text())?,
    }
    if args.explain && !global.json {
        output::result(&report.explain())?;
    }
    if args.github || std::env::var_os("GITHUB_ACTIONS").is_some() {
        output::result(&report.to_github(&args.tape))?;
    }
    if let Some(file) = &args.junit {
        write(file, &report.to_junit(&args.tape))?;
    }
    if let Some(file) = &args.sarif {
        write(file, &format!("{:#}\n", report.to_sarif(&args.tape)))?;
    }
    Ok(())
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(file, text).map_err(|error| Failure::File { path: file.to_owned(), error })
}
