//! The command line of `signalbox rules`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// What is shown below the help of `signalbox rules`.
pub const RULES_HELP: &str = "\
Without FILE, the rules of the configuration are used.

Examples:
  signalbox rules check rules.toml
  signalbox rules list
  signalbox rules test rules.toml --tool delete_file --args '{\"path\": \"/etc/passwd\"}'
  signalbox rules test --message request.json --backend files --principal anonymous";

/// Commands about rules.
#[derive(Debug, Subcommand)]
pub enum RulesCommand {
    /// Check rules for errors and likely mistakes
    Check {
        /// The file
        file: Option<PathBuf>,
    },
    /// List rules in the order in which they are checked
    List {
        /// The file
        file: Option<PathBuf>,
    },
    /// Show what the rules would do with a message, and why
    Test(TestArgs),
}

/// Which way a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TestPhase {
    /// A request on its way to a backend
    Request,
    /// An answer on its way to the client
    Response,
    /// A question from a backend on its way to the client
    Question,
    /// The client's answer to such a question
    Answer,
    /// A request that the gateway answers itself
    GatewayRequest,
    /// The gateway's own answer
    GatewayResponse,
}

/// Arguments of `rules test`.
#[derive(Debug, Clone, Args)]
pub struct TestArgs {
    /// The file
    pub file: Option<PathBuf>,
    /// The message: a file, `-` for standard input, or the JSON itself
    #[arg(long, value_name = "MESSAGE", conflicts_with = "args")]
    pub message: Option<String>,
    /// Instead of a message: a call of --tool with these arguments
    #[arg(long, value_name = "JSON", requires = "tool")]
    pub args: Option<String>,
    /// The tool, prompt or URI that the message is about
    #[arg(long, value_name = "NAME")]
    pub tool: Option<String>,
    /// What kind of message it is
    #[arg(long, value_enum, default_value = "request")]
    pub phase: TestPhase,
    /// For an answer: the method of its request
    #[arg(long, value_name = "METHOD", default_value = "tools/call")]
    pub method: String,
    /// The backend that the message goes to or comes from
    #[arg(long, value_name = "NAME")]
    pub backend: Option<String>,
    /// The principal on whose behalf it is sent
    #[arg(long, value_name = "NAME", default_value = "anonymous")]
    pub principal: String,
}
