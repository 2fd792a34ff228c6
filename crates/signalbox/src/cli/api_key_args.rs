//! The command line of `signalbox keys`.

use clap::{Args, Subcommand, ValueEnum};
use signalbox_config::duration;
use signalbox_engine::standing::TrustLevel;
use std::time::Duration;

/// Text below the help of `signalbox keys`.
pub const API_KEYS_HELP: &str = "\
A key proves who calls: as `Authorization: Bearer KEY` or `X-API-Key: KEY` over HTTP, or in the first message over TCP and \
WebSocket. It is shown once; the data folder keeps its hash. Running gateways notice changes within a second, and a revoked \
key ends the streams that were opened with it. `mcp.protocol.security.require_authentication` refuses callers without one.

Examples:
  signalbox keys new editor
  signalbox keys new ci --subject user:ci --role deploy --expires 90d
  signalbox keys list
  signalbox keys revoke editor";

/// Commands about API keys.
#[derive(Debug, Subcommand)]
pub enum ApiKeysCommand {
    /// Make a key and show it, this once
    New(NewApiKeyArgs),
    /// List the keys, without their secrets
    List,
    /// Revoke a key, by its id or its name
    Revoke {
        /// The id or the name
        key: String,
    },
}

/// What a new key is for.
#[derive(Debug, Clone, Args)]
pub struct NewApiKeyArgs {
    /// What to call it
    pub name: String,
    /// On whose behalf its holder calls: the principal [default: key:NAME]
    #[arg(long, value_name = "PRINCIPAL")]
    pub subject: Option<String>,
    /// A role of its holder; several are allowed. `admin` may use the API
    #[arg(long = "role", value_name = "ROLE")]
    pub roles: Vec<String>,
    /// A scope that the key has; several are allowed [default: not limited by scopes]
    #[arg(long = "scope", value_name = "SCOPE")]
    pub scopes: Vec<String>,
    /// How far its holder is trusted [default: by the configuration]
    #[arg(long, value_enum)]
    pub trust: Option<TrustWord>,
    /// How long it is good, such as 90d [default: until it is revoked]
    #[arg(long, value_name = "TIME", value_parser = duration::of_seconds)]
    pub expires: Option<Duration>,
}

/// How far somebody is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TrustWord {
    /// Part of the system
    System,
    /// Known and vouched for
    Verified,
    /// Known
    Community,
    /// Not known
    Untrusted,
}

impl From<TrustWord> for TrustLevel {
    fn from(word: TrustWord) -> Self {
        match word {
            TrustWord::System => Self::System,
            TrustWord::Verified => Self::Verified,
            TrustWord::Community => Self::Community,
            TrustWord::Untrusted => Self::Untrusted,
        }
    }
}
