//! An authorization server for MCP clients that know nothing but OAuth: it registers clients, asks people, and gives tokens for the
//! one resource that the gateway is.
//!
//! The crate does no I/O: requests come in as text, replies go out as values, time and randomness are arguments ([`Moment`]). Where
//! something from outside is needed (a client's metadata document, a slow hash), a method returns what is needed instead of a reply, and
//! another one goes on with it.
//!
//! ```text
//! client ─► register ─► Client                                   browser ─► authorize ─► sign_in ─► consent ─► code
//! client ─► token (code and verifier) ─► access token (JWT), refresh token ─► token (refresh token) ─► the next two
//! ```
//!
//! # Invariants
//!
//! - Nothing is given to a client before a person has signed in and said yes to this very client, in the browser in which the
//!   request came: a ticket is good only together with its cookie.
//! - A code goes only to a redirect URI of the client, is good once and for a minute, and only with the verifier of its challenge.
//! - A refresh token is good once. One that comes twice ends its grant and all tokens of it.
//! - Secrets are kept as hashes, compared in constant time, and appear in no error and no `Debug` output.
//! - Everything that strangers can make the server keep is bounded.

pub mod access_token;
mod asked;
mod attempts;
pub mod client;
mod event;
mod grants;
pub mod metadata;
mod moment;
pub mod pages;
pub mod password;
mod reply;
mod server;
mod settings;
mod sign_in;
mod tokens;

pub use access_token::TokenSigner;
pub use event::AuthEvent;
pub use grants::Person;
pub use moment::Moment;
pub use password::{LocalUsers, PasswordCheck, UserError};
pub use reply::{Refusal, Reply};
pub use server::{AuthorizationServer, Authorize, Damaged, DocumentError};
pub use settings::{Provider, Settings};
pub use sign_in::{Consented, SignInStep, SignedIn};

#[cfg(test)]
mod tests;
