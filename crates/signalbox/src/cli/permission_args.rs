//! Command lines of `signalbox switch`, `signalbox grant` and `signalbox policy`.

use clap::{Args, Subcommand, ValueEnum};
use signalbox_engine::catalog::ListKind;
use std::path::PathBuf;

/// Text below the help of `signalbox switch`.
pub const SWITCH_HELP: &str = "\
What is switched off disappears from every list, and a call of it is refused with -32005 (4510 or 4230 on 2026-07-28) before \
anything else is looked at. It holds for all running processes of the data folder at once, and for those that start later, \
until it is lifted. `[kill_switch]` in the configuration does the same.

Examples:
  signalbox switch kill files/write_file --reason 'it lost data'
  signalbox switch kill files
  signalbox switch quarantine 'crm/*'
  signalbox switch kill --principal 'user:eve'
  signalbox switch list
  signalbox switch lift files/write_file";

/// Text below the help of `signalbox grant`.
pub const GRANT_HELP: &str = "\
A grant makes up for a role or a `permit` that a caller lacks, and for the consent that a call needs. What a role denies or a policy \
forbids stays denied. It ends by itself, outlives the process, and holds for all running processes of the data folder. `break-glass` \
allows one caller everything but what is switched off; the configuration has to allow it (permissions.break_glass.allowed), and it raises \
an alarm.

Examples:
  signalbox grant add --to user:ada --tools 'files/write_*' --for 1h --because 'migration'
  signalbox grant list
  signalbox grant revoke 1f0c44a98e11d2b7
  signalbox grant break-glass --to user:ada --for 15m --because 'the site is down'";

/// Commands about permissions that end by themselves.
#[derive(Debug, Subcommand)]
pub enum GrantCommand {
    /// Show the grants that are in force
    List,
    /// Let a caller use something for a while
    Add(GrantArgs),
    /// Let a caller use everything but what is switched off for a while, with an alarm
    BreakGlass(BreakGlassArgs),
    /// End a grant before its time
    Revoke {
        /// Id from `grant list`
        id: String,
    },
}

/// Arguments of `grant add`.
#[derive(Debug, Clone, Args)]
pub struct GrantArgs {
    /// Tools, prompts or resources to grant: patterns BACKEND or BACKEND/NAME with * and ?; may be repeated
    #[arg(long, value_name = "PATTERN", required = true)]
    pub tools: Vec<String>,
    #[command(flatten)]
    pub terms: BreakGlassArgs,
}

/// Arguments of `grant break-glass`.
#[derive(Debug, Clone, Args)]
pub struct BreakGlassArgs {
    /// Principal that gets the grant
    #[arg(long, value_name = "PRINCIPAL")]
    pub to: String,
    /// Duration of the grant, like 15m or 1h
    #[arg(long = "for", value_name = "TIME")]
    pub lasting: String,
    /// Reason, for the record
    #[arg(long, value_name = "TEXT")]
    pub because: String,
}

/// Text below the help of `signalbox policy`.
pub const POLICY_HELP: &str = "\
Tools are written BACKEND/NAME. What is known of them comes from the lists that were kept last. `test` reads cases from a TOML \
file: [[case]] with principal, roles, tool, arguments (a table), expect (allow, ask, deny or hide) and, if wanted, policy.

Examples:
  signalbox policy check
  signalbox policy explain files/write_file --as user:ada --arguments '{\"path\": \"/tmp/x\"}'
  signalbox policy who files/write_file
  signalbox policy backtest last
  signalbox policy test policies/cases.toml";

/// Commands about switched-off entries.
#[derive(Debug, Subcommand)]
pub enum SwitchCommand {
    /// Show what is switched off or in quarantine
    List,
    /// Switch a tool, a backend or a caller off
    Kill(SwitchArgs),
    /// Put a tool, a backend or a caller in quarantine until an operator has looked at it
    Quarantine(SwitchArgs),
    /// Switch something on again
    Lift(SwitchArgs),
}

/// Arguments of `switch kill`, `quarantine` and `lift`.
#[derive(Debug, Clone, Args)]
pub struct SwitchArgs {
    /// Pattern BACKEND or BACKEND/NAME with * and ?; with --principal a pattern of callers
    pub pattern: String,
    /// Apply the pattern to callers
    #[arg(long)]
    pub principal: bool,
    /// Reason that callers are told
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub reason: String,
}

/// Commands about roles and policies.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Check roles and policies, and name those that match nothing
    Check,
    /// Show the decision about a call, and which role or policy makes it
    Explain(ExplainArgs),
    /// Show who may use a tool: the users and roles of the configuration
    Who(WhoArgs),
    /// Try permissions and limits on recorded tapes: which calls they would now deny, allow, or make wait for an
    /// approval
    Backtest {
        /// Tapes: `last`, ids or files
        #[arg(required = true)]
        tapes: Vec<String>,
        /// Exit with 1 if a call would be decided differently
        #[arg(long)]
        fail: bool,
    },
    /// Compare permissions with a file of expected decisions
    Test {
        /// File of cases, in TOML
        file: PathBuf,
    },
}

/// Arguments of `policy explain`.
#[derive(Debug, Clone, Args)]
pub struct ExplainArgs {
    /// Tool, prompt or resource, as BACKEND/NAME
    pub entry: String,
    /// Kind of the entry
    #[arg(long, value_enum, default_value = "tool")]
    pub kind: EntryKind,
    /// Principal that makes the call
    #[arg(long = "as", value_name = "PRINCIPAL", default_value = "anonymous")]
    pub principal: String,
    /// Role of the caller, besides those of the configuration; may be repeated
    #[arg(long, value_name = "ROLE")]
    pub role: Vec<String>,
    /// Group of the caller; may be repeated
    #[arg(long, value_name = "GROUP")]
    pub group: Vec<String>,
    /// Arguments of the call, as a JSON object
    #[arg(long, value_name = "JSON")]
    pub arguments: Option<String>,
}

/// Arguments of `policy who`.
#[derive(Debug, Clone, Args)]
pub struct WhoArgs {
    /// Tool, prompt or resource, as BACKEND/NAME
    pub entry: String,
    /// Kind of the entry
    #[arg(long, value_enum, default_value = "tool")]
    pub kind: EntryKind,
    /// Arguments of the call, as a JSON object
    #[arg(long, value_name = "JSON")]
    pub arguments: Option<String>,
}

/// Kinds of entries that permissions are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EntryKind {
    Tool,
    Prompt,
    Resource,
}

impl EntryKind {
    /// Returns the kind of list that has such entries.
    #[must_use]
    pub fn list(self) -> ListKind {
        match self {
            Self::Tool => ListKind::Tools,
            Self::Prompt => ListKind::Prompts,
            Self::Resource => ListKind::Resources,
        }
    }
}
