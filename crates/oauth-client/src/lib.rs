//! Credentials for protected MCP servers; implements `runtime::BackendCredentials`.
//!
//! [`StaticCredentials`] sends a configured secret. [`OauthCredentials`] is an OAuth client: it reads a server's
//! challenge, discovers the authorization server ([`discovery`]), identifies itself there ([`client_identity`]), gets
//! tokens by the configured grant ([`token_request`], [`token_exchange`]) or by a person's sign-in ([`sign_in`]), and
//! stores them encrypted ([`vault`]). URLs from outside are contacted only if they are public or allowed by name
//! ([`outbound`]).

pub mod browser_page;
pub mod callback_listener;
pub mod challenge;
pub mod client_identity;
pub mod discovery;
mod error;
mod exchanged_tokens;
pub mod form;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod oauth_client_state;
pub mod oauth_credentials;
pub mod openid;
pub mod outbound;
pub mod page_host;
pub mod pkce;
mod private_key;
pub mod probe;
pub mod secret_source;
pub mod secret_text;
pub mod sign_in;
pub mod spec;
pub mod static_credentials;
pub mod token_exchange;
pub mod token_request;
pub mod vault;
pub mod web_address;

pub use callback_listener::CallbackListener;
pub use error::OauthError;
pub use oauth_client_state::OauthClientState;
pub use oauth_credentials::OauthCredentials;
pub use outbound::{AllowEntry, OutboundSettings};
pub use secret_source::SecretSource;
pub use secret_text::SecretText;
pub use spec::{AssertionSpec, AuthSpec, ClientSpec, ExchangeSpec, GrantType, OauthSpec, Provider, StaticSpec};
pub use static_credentials::StaticCredentials;
pub use vault::Vault;
