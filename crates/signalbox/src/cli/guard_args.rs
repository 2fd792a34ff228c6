//! Arguments of `signalbox guard`.

use clap::{Subcommand, ValueEnum};
use std::path::PathBuf;

/// Examples in the help of the command.
pub const GUARD_HELP: &str = "\
Examples:
  signalbox guard test README.md
  curl -s https://example.org | signalbox guard test - --as resource
  signalbox guard canary new --kind email --label finance
  signalbox guard canary find outgoing.log";

/// Commands of the guard.
#[derive(Debug, Subcommand)]
pub enum GuardCommand {
    /// Show what the guard finds in a text, and what it would do about it
    ///
    /// Exits with 1 if it would do something.
    Test {
        /// File with the text; `-` for standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Place in which a server would say it
        #[arg(long = "as", value_name = "PLACE", default_value = "result")]
        position: TextPosition,
    },
    /// Make and find values that must never leave
    Canary {
        #[command(subcommand)]
        command: CanaryCommand,
    },
}

/// Commands about values that must never leave.
#[derive(Debug, Subcommand)]
pub enum CanaryCommand {
    /// Make a value to put where only an intruder or a misled model finds it
    ///
    /// Calls whose arguments hold it are refused and logged.
    New {
        /// Shape of the value
        #[arg(long = "kind", value_name = "KIND", default_value = "api-key")]
        shape: CanaryShape,
        /// Word to put into the value, where its shape has room for one
        #[arg(long, default_value = "")]
        label: String,
    },
    /// Find canaries in a text, in any common encoding
    ///
    /// Exits with 1 if there are any.
    Find {
        /// File with the text; `-` for standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// Shape of a canary.
#[derive(Copy, Clone, Debug, ValueEnum)]
pub enum CanaryShape {
    ApiKey,
    Email,
    Url,
    Name,
}

/// Place in which a server says something.
#[derive(Copy, Clone, Debug, ValueEnum)]
pub enum TextPosition {
    Result,
    Resource,
    Prompt,
    Error,
    Log,
    Progress,
    Question,
    Definition,
}
