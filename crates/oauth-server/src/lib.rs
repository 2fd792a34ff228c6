//! Authorization server for MCP clients that support only OAuth: it registers clients, asks people for consent, and
//! issues tokens for a single resource, the gateway.
//!
//! This crate does no I/O: requests are text, replies are values, time and randomness are arguments ([`Moment`]). Where
//! an external result is needed (a client's metadata document, a slow hash), a method returns the need in place of a
//! reply, and another method continues with the result.
//!
//! ```text
//! client ─► register ─► Client                                   browser ─► authorize ─► sign_in ─► consent ─► code
//! client ─► token (code and verifier) ─► access token (JWT), refresh token ─► token (refresh token) ─► the next two
//! ```
//!
//! # Invariants
//!
//! - A client gets nothing before a person has signed in and allowed this very client, in the browser that made the
//!   request: a ticket is valid only together with its cookie.
//! - A code goes only to a redirect URI of the client. It is valid once, for a minute, and only with the verifier of
//!   its challenge.
//! - A refresh token is valid once. Reuse ends its grant and all its tokens.
//! - Secrets are stored as hashes, compared in constant time, and appear in no error and no `Debug` output.
//! - All state that unauthenticated clients can create is bounded.

pub mod access_token;
mod attempts;
mod authorization_request;
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
pub use reply::{OauthRefusal, Reply};
pub use server::{AuthorizationServer, Authorize, DocumentError, ServerStateError};
pub use settings::{IdentityProvider, ServerSettings};
pub use sign_in::{ConsentOutcome, SignInStep, SignedIn, SwitchedOff};

#[cfg(test)]
mod tests;
