//! Command line of `signalbox rules`.

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

/// Commands about files of rules.
#[derive(Debug, Subcommand)]
pub enum RulesCommand {
    /// Check rules for errors and likely mistakes
    Check {
        /// File with the rules
        file: Option<PathBuf>,
    },
    /// List rules in the order in which they are checked
    List {
        /// File with the rules
        file: Option<PathBuf>,
    },
    /// Show what the rules would do with a message, and why
    Test(TestArgs),
    /// Add a rule to a file
    ///
    /// The file is checked before it is written. A running gateway that names it reads it again.
    Add {
        /// File with the rules, created if missing
        file: PathBuf,
        /// Rule in TOML, @FILE, or - for standard input
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

/// Selection of the rule to change.
#[derive(Debug, Clone, Args)]
pub struct EditRuleArgs {
    /// Id of the rule
    pub id: String,
    /// File of the rule [default: the one that the configuration has it from]
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// Direction of a message.
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
    /// File with the rules
    pub file: Option<PathBuf>,
    /// Message: a file, `-` for standard input, or the JSON itself
    #[arg(long, value_name = "MESSAGE", conflicts_with = "args")]
    pub message: Option<String>,
    /// Instead of a message: a call of --tool with these arguments
    #[arg(long, value_name = "JSON", requires = "tool")]
    pub args: Option<String>,
    /// Tool, prompt or URI that the message is about
    #[arg(long, value_name = "NAME")]
    pub tool: Option<String>,
    /// Kind of the message
    #[arg(long, value_enum, default_value = "request")]
    pub phase: TestPhase,
    /// For an answer: the method of its request
    #[arg(long, value_name = "METHOD", default_value = "tools/call")]
    pub method: String,
    /// Backend that the message goes to or comes from
    #[arg(long, value_name = "NAME")]
    pub backend: Option<String>,
    /// Principal on whose behalf it is sent
    #[arg(long, value_name = "NAME", default_value = "anonymous")]
    pub principal: String,
}
