//! Command line of `signalbox keys`.

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
    /// Revoke a key by its id or its name
    Revoke {
        /// Id or name of the key
        key: String,
    },
}

/// Holder, scopes and lifetime of a new key.
#[derive(Debug, Clone, Args)]
pub struct NewApiKeyArgs {
    /// Name of the key
    pub name: String,
    /// Principal on whose behalf its holder calls [default: key:NAME]
    #[arg(long, value_name = "PRINCIPAL")]
    pub subject: Option<String>,
    /// Role of its holder; several are allowed. `admin` may use the API
    #[arg(long = "role", value_name = "ROLE")]
    pub roles: Vec<String>,
    /// Scope that the key has; several are allowed [default: not limited by scopes]
    #[arg(long = "scope", value_name = "SCOPE")]
    pub scopes: Vec<String>,
    /// Trust level of its holder [default: by the configuration]
    #[arg(long, value_enum)]
    pub trust: Option<TrustWord>,
    /// Lifetime of the key, such as 90d [default: until it is revoked]
    #[arg(long, value_name = "TIME", value_parser = duration::of_seconds)]
    pub expires: Option<Duration>,
}

/// Trust level of a key's holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TrustWord {
    /// Part of the system
    System,
    /// Known and vouched for
    Verified,
    /// Known, but not vouched for
    Community,
    /// Not known to the operator
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
