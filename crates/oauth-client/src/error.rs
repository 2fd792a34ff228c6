use crate::secret_source::SecretError;
use crate::vault::VaultError;
use signalbox_transport::web_client::WebError;

/// Error when a credential cannot be obtained. No message repeats what a server said beyond its error code.
#[derive(Debug, thiserror::Error)]
pub enum OauthError {
    /// A request to a server failed.
    #[error(transparent)]
    Web(#[from] WebError),
    /// The token store cannot be read or written.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// A configured secret cannot be read.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The server names no usable authorization server.
    #[error("it names no authorization server that can be used")]
    NoServer,
    /// The metadata describe another server.
    #[error("its metadata are for another resource")]
    WrongResource,
    /// The metadata of an authorization server belong to another one, or are incomplete.
    #[error("the metadata of its authorization server cannot be used: {0}")]
    BadMetadata(&'static str),
    /// The authorization server differs from the configured or previous one.
    #[error("its authorization server has changed; check it, and set `issuer` to the new one")]
    IssuerChanged,
    /// The gateway is not registered at the authorization server.
    #[error(
        "its authorization server registers no clients by itself; set `client_id`, or `auth.outbound.client_metadata_url`"
    )]
    NoClient,
    /// A server refused a request, with this error code.
    #[error("its authorization server refused {what} ({code})")]
    Refused {
        /// Name of the request.
        what: &'static str,
        /// Error code of the server.
        code: String,
    },
    /// The response of a server is malformed.
    #[error("its authorization server answered {0} with something else than what was asked for")]
    Garbage(&'static str),
    /// The browser returned with a response that belongs to no sign-in, or to that of another person.
    #[error("the answer of the authorization server does not belong to this sign-in")]
    NotOurs,
    /// The person or the authorization server declined.
    #[error("the sign-in was not completed ({0})")]
    NotGranted(String),
    /// The private key of the client cannot be used.
    #[error("the private key {0} cannot be used: it must be PKCS#8, PEM, for ES256, ES384 or RS256")]
    Key(String),
    /// There is no token to exchange.
    #[error("there is no token of this caller to exchange")]
    NoSubject,
    /// The holder would have to authenticate on a page, and this process serves none.
    #[error(
        "a browser cannot prove who signs in: set `auth.outbound.public_url` to the https address of the gateway, or let an administrator run `signalbox login`"
    )]
    NoPages,
    /// The system provides no randomness.
    #[error("cannot get random bytes from the system")]
    Random,
    /// The loopback listener cannot be opened.
    #[error("cannot listen for the browser on loopback: {0}")]
    Listen(std::io::ErrorKind),
}

/// Returns the error code in a response, if it is safe to show.
pub(crate) fn code(body: &[u8]) -> String {
    let document: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let code = document.get("error").and_then(serde_json::Value::as_str).unwrap_or_default();
    plain(code).unwrap_or("no reason given").to_owned()
}

/// Returns a code if it is safe to show: short, and plain words only.
pub(crate) fn plain(code: &str) -> Option<&str> {
    let fine = |byte: u8| byte.is_ascii_lowercase() || byte == b'_' || byte == b'-';
    Some(code).filter(|code| (1..=64).contains(&code.len()) && code.bytes().all(fine))
}
