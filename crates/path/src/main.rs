//! The way of a call through the sans-IO core, as often as asked, and the look for credentials in text that has none:
//! `script/instructions` counts the instructions of both.
//!
//! Nothing here opens a socket or reads a clock more than once, so that two runs of one build differ by the calls alone.

mod case;
mod clean;
mod gateway;
mod messages;

use case::Case;
use clean::Clean;
use gateway::Gateway;
use std::process::ExitCode;

const USAGE: &str = "\
usage: signalbox-path CASE CALLS   brings CALLS calls of this kind to their answers
       signalbox-path cases        the names of all cases, one a line";

/// Why a run says nothing.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// Called in another way than the usage says.
    #[error("{USAGE}")]
    Usage,
    /// A message of the bench itself was refused.
    #[error("a message of the bench was refused: {0}")]
    Refused(String),
    /// The machines did something else than bring the call to its answer.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// What should have come.
        expected: &'static str,
        /// What came.
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
fn run() -> Result<(), PathError> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words[..] {
        [word] if word == "cases" => {
            for case in Case::all() {
                println!("{case}");
            }
            for clean in Clean::all() {
                println!("{clean}");
            }
            Ok(())
        }
        [name, calls] => {
            let calls: u32 = calls.parse().map_err(|_| PathError::Usage)?;
            if let Some(clean) = Clean::all().into_iter().find(|clean| clean.to_string() == *name) {
                return clean.look(calls);
            }
            let case = Case::all().into_iter().find(|case| case.to_string() == *name).ok_or(PathError::Usage)?;
            let mut gateway = Gateway::open(case)?;
            for _ in 0..calls {
                gateway.call()?;
            }
            Ok(())
        }
        _ => Err(PathError::Usage),
    }
}
