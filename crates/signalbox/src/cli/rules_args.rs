//! The command line of `signalbox rules`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Text below the help of `signalbox rules`.
pub const RULES_HELP: &str = "\
Without FILE, the rules of the configuration are used.

Examples:
  signalbox rules check rules.toml
  signalbox rules list
  signalbox rules add rules.toml --rule 'id = \"no-deletes\"
    when = { tool = \"delete_*\" }
    then = \"block\"'
  signalbox rules disable no-deletes
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
    /// Add a rule to a file
    ///
    /// The file is checked before it is written. A running gateway that names it reads it again.
    Add {
        /// The file; it is made if there is none
        file: PathBuf,
        /// The rule in TOML, @FILE, or - for standard input
        #[arg(long, value_name = "TOML")]
        rule: String,
    },
    /// Remove a rule from its file
    Remove(EditRuleArgs),
    /// Switch a rule on in its file
    Enable(EditRuleArgs),
    /// Switch a rule off in its file
    Disable(EditRuleArgs),
}

/// The rule that is changed.
#[derive(Debug, Clone, Args)]
pub struct EditRuleArgs {
    /// The rule
    pub id: String,
    /// Its file [default: the one that the configuration has it from]
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
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
