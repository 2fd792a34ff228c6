use crate::secret_source::SecretError;
use crate::vault::VaultError;
use signalbox_transport::web_client::WebError;

/// Why a credential cannot be got. No message repeats what a server said beyond its error code.
#[derive(Debug, thiserror::Error)]
pub enum OauthError {
    /// A server could not be asked.
    #[error(transparent)]
    Web(#[from] WebError),
    /// The tokens cannot be kept or read.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// A configured secret cannot be had.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The server says nothing usable about its authorization server.
    #[error("it names no authorization server that can be used")]
    NoServer,
    /// The metadata describe another server.
    #[error("its metadata are for another resource")]
    WrongResource,
    /// The metadata of an authorization server are of another one, or lack something.
    #[error("the metadata of its authorization server cannot be used: {0}")]
    BadMetadata(&'static str),
    /// The authorization server is not the one that is configured or was used before.
    #[error("its authorization server has changed; check it, and set `issuer` to the new one")]
    IssuerChanged,
    /// The gateway is not known to the authorization server.
    #[error(
        "its authorization server registers no clients by itself; set `client_id`, or `auth.outbound.client_metadata_url`"
    )]
    NoClient,
    /// A server refused a request, with this code of its own if it named one.
    #[error("its authorization server refused {what} ({code})")]
    Refused {
        /// What was asked.
        what: &'static str,
        /// The error code.
        code: String,
    },
    /// A server's answer makes no sense.
    #[error("its authorization server answered {0} with something else than what was asked for")]
    Garbage(&'static str),
    /// The browser came back with an answer that belongs to nothing, or may be somebody else's.
    #[error("the answer of the authorization server does not belong to this sign-in")]
    NotOurs,
    /// The person said no, or the authorization server did.
    #[error("the sign-in was not completed ({0})")]
    NotGranted(String),
    /// The private key of the client cannot be used.
    #[error("the private key {0} cannot be used: it must be PKCS#8, PEM, for ES256, ES384 or RS256")]
    Key(String),
    /// There is no token to exchange.
    #[error("there is no token of this caller to exchange")]
    NoSubject,
    /// The holder would have to prove itself to a page that there is none of.
    #[error(
        "a browser cannot prove who signs in: set `auth.outbound.public_url` to the https address of the gateway, or let an administrator run `signalbox login`"
    )]
    NoPages,
    /// The system gives no randomness.
    #[error("cannot get random bytes from the system")]
    Random,
    /// No address for browsers.
    #[error("cannot listen for the browser on loopback: {0}")]
    Listen(std::io::ErrorKind),
}

/// The error code of an authorization server, if it is one: plain words only.
pub(crate) fn code(body: &[u8]) -> String {
    let document: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let code = document.get("error").and_then(serde_json::Value::as_str).unwrap_or_default();
    plain(code).unwrap_or("no reason given").to_owned()
}

/// A code that may be shown.
pub(crate) fn plain(code: &str) -> Option<&str> {
    let fine = |byte: u8| byte.is_ascii_lowercase() || byte == b'_' || byte == b'-';
    Some(code).filter(|code| (1..=64).contains(&code.len()) && code.bytes().all(fine))
}
