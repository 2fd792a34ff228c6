//! Runs calls through the sans-IO core, or scans clean text, a given number of times: `script/instructions` counts the
//! instructions of both.
//!
//! The program opens no socket and reads the clock at most once, so two runs of one build differ only in the number of
//! calls.

mod case;
mod clean;
mod gateway;
mod messages;

use case::CallCase;
use clean::Clean;
use gateway::PathGateway;
use std::process::ExitCode;

const USAGE: &str = "\
usage: signalbox-path CASE CALLS   brings CALLS calls of this kind to their answers
       signalbox-path cases        the names of all cases, one a line";

/// Error of a run.
#[derive(Debug, thiserror::Error)]
pub enum CountError {
    /// The arguments do not match the usage.
    #[error("{USAGE}")]
    Usage,
    /// A message of the bench itself was refused.
    #[error("a message of the bench was refused: {0}")]
    Refused(String),
    /// The machines did not bring the call to its answer.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// Outcome that the bench relies on.
        expected: &'static str,
        /// Outcome that the machines produced.
        found: String,
    },
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[allow(clippy::print_stdout, reason = "the list of cases is the output")]
fn run() -> Result<(), CountError> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words[..] {
        [word] if word == "cases" => {
            for case in CallCase::all() {
                println!("{case}");
            }
            for clean in Clean::all() {
                println!("{clean}");
            }
            Ok(())
        }
        [name, calls] => {
            let calls: u32 = calls.parse().map_err(|_| CountError::Usage)?;
            if let Some(clean) = Clean::all().into_iter().find(|clean| clean.to_string() == *name) {
                return clean.look(calls);
            }
            let case = CallCase::all().into_iter().find(|case| case.to_string() == *name).ok_or(CountError::Usage)?;
            let mut gateway = PathGateway::open(case)?;
            for _ in 0..calls {
                gateway.call()?;
            }
            Ok(())
        }
        _ => Err(CountError::Usage),
    }
}
