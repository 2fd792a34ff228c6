//! Command line of `signalbox users`.

use clap::Subcommand;

/// Text below the help of `signalbox users`.
pub const USERS_HELP: &str = "\
People who can sign in at the gateway's own authorization server (`[auth.server]`). The data folder keeps their passwords as \
hashes by argon2id. A user `ada` calls as `user:ada`; `[auth.users.\"user:ada\"]` gives roles and groups. A user who is removed, \
or gets another password, has to sign in anew everywhere: all tokens end at once, in running gateways too. Removing a user also \
revokes its API keys, ends its sessions, and forgets its tokens of backends.

Examples:
  signalbox users add ada
  pass show box | signalbox users add ada --replace
  signalbox users list
  signalbox users remove ada";

/// Commands about local users.
#[derive(Debug, Subcommand)]
pub enum UsersCommand {
    /// Add a user; the password is asked for, or read from standard input
    Add {
        /// Name of the user: letters, digits, `.`, `_`, `-` and `@`
        name: String,
        /// Give an existing user another password, and end the tokens issued before
        #[arg(long)]
        replace: bool,
    },
    /// List the local users
    List,
    /// Remove a user, and end its tokens, API keys, signing keys and sessions
    Remove {
        /// Name of the user; `openid:NAME` ends what a person of the OpenID provider has
        name: String,
    },
}
