//! Arguments of `login` and `logout`.

use clap::Args;

/// Arguments of `login` and `logout`.
#[derive(Debug, Clone, Args)]
pub struct SignInArgs {
    /// Name of the backend, as in the configuration
    #[arg(value_name = "BACKEND")]
    pub backend: String,
    /// Principal whose token it is, if each has its own [default: the local user]
    ///
    /// A gateway that listens without authentication knows all its callers as `anonymous`.
    #[arg(long, value_name = "PRINCIPAL")]
    pub user: Option<String>,
}

pub(super) const LOGIN_HELP: &str = "\
Examples:
  signalbox login tracker
  signalbox login tracker --user anonymous";

pub(super) const LOGOUT_HELP: &str = "\
The authorization server is not told: a copy of the token stays valid until it expires.

Example:
  signalbox logout tracker";
