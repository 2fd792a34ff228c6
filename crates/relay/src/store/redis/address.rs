//! Address of Redis. The password is never displayed.

use crate::store::RelayStoreError;
use percent_encoding::percent_decode_str;
use redis::io::tcp::TcpSettings;
use redis::{Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, ProtocolVersion, TlsCertificates};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Default prefix of all keys.
const PREFIX: &str = "signalbox:relay:";
/// Maximum length of the prefix.
const MAX_PREFIX: usize = 64;
/// Default timeout of a command.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Error in an address. It repeats no part of the address, which may contain the password.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RedisAddressError {
    /// The address has the wrong form.
    #[error(
        "must be redis://[[user]:password@]host[:port][/database], or rediss:// for TLS; \
         special characters of a password are written as %40"
    )]
    Form,
    /// An option is unknown.
    #[error("after `?` there may be prefix=, ca_file=, cert_file= and key_file=, each once")]
    Option,
    /// The prefix is invalid.
    #[error("prefix= takes up to {MAX_PREFIX} letters, digits and `:`, `-`, `_`, `.`, `{{`, `}}`")]
    Prefix,
    /// Certificates are given without TLS.
    #[error("ca_file=, cert_file= and key_file= need rediss://")]
    NeedsTls,
    /// Only one of certificate and key is given.
    #[error("cert_file= and key_file= go together")]
    HalfPair,
}

/// Address of Redis, with TLS files and key prefix.
#[derive(Clone)]
pub struct RedisAddress {
    /// Full text, including the password.
    text: Box<str>,
    info: ConnectionInfo,
    ca_file: Option<PathBuf>,
    identity: Option<(PathBuf, PathBuf)>,
    prefix: Box<str>,
    timeout: Duration,
}

impl PartialEq for RedisAddress {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.timeout == other.timeout
    }
}

impl Eq for RedisAddress {}

impl fmt::Debug for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisAddress({self})")
    }
}

/// Displays the address without the password.
impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls() { "rediss" } else { "redis" };
        write!(f, "{scheme}://{}/{}", self.info.addr(), self.info.redis_settings().db())
    }
}

impl RedisAddress {
    /// Parses `redis://[[user]:password@]host[:port][/database][?prefix=…]`, or `rediss://` for TLS, which also accepts
    /// `ca_file`, `cert_file` and `key_file`.
    ///
    /// # Errors
    /// The error, without any part of the address.
    pub fn read(address: &str) -> Result<Self, RedisAddressError> {
        let (base, options) = address.split_once('?').unwrap_or((address, ""));
        let known = base.starts_with("redis://") || base.starts_with("rediss://");
        if !known || address.contains('#') {
            return Err(RedisAddressError::Form);
        }
        let info: ConnectionInfo = base.parse().map_err(|_| RedisAddressError::Form)?;
        // Events arrive as pushes, which need RESP3. No delay: small commands are not worth batching.
        let redis = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let info = info.set_redis_settings(redis).set_tcp_settings(TcpSettings::default().set_nodelay(true));
        let [prefix, ca_file, cert_file, key_file] = read_options(options)?;
        let prefix = prefix.unwrap_or_else(|| PREFIX.to_owned());
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.{}".contains(&byte);
        if prefix.len() > MAX_PREFIX || !prefix.bytes().all(fits) {
            return Err(RedisAddressError::Prefix);
        }
        let identity = match (cert_file, key_file) {
            (Some(cert), Some(key)) => Some((cert.into(), key.into())),
            (None, None) => None,
            _ => return Err(RedisAddressError::HalfPair),
        };
        let ca_file = ca_file.map(PathBuf::from);
        let (text, prefix) = (address.into(), prefix.into());
        let address = Self { text, info, ca_file, identity, prefix, timeout: TIMEOUT };
        if !address.is_tls() && (address.ca_file.is_some() || address.identity.is_some()) {
            return Err(RedisAddressError::NeedsTls);
        }
        Ok(address)
    }

    /// Sets the timeout of a command.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Returns the prefix of all keys.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the timeout of a command.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    fn is_tls(&self) -> bool {
        matches!(self.info.addr(), ConnectionAddr::TcpTls { .. })
    }

    /// Returns a client for new connections. It reads the certificates each time, so that renewed ones are used without
    /// a restart.
    pub(super) async fn client(&self) -> Result<Client, RelayStoreError> {
        let unfit =
            |_| RelayStoreError::Unreachable("TLS with Redis cannot be set up from these certificates".to_owned());
        if !self.is_tls() {
            return Client::open(self.info.clone()).map_err(unfit);
        }
        // If it is already installed, it is the same: this program has only one provider.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let root_cert = match &self.ca_file {
            Some(file) => Some(read(file).await?),
            None => None,
        };
        let client_tls = match &self.identity {
            Some((cert, key)) => Some(ClientTlsConfig { client_cert: read(cert).await?, client_key: read(key).await? }),
            None => None,
        };
        Client::build_with_tls(self.info.clone(), TlsCertificates { client_tls, root_cert }).map_err(unfit)
    }
}

async fn read(file: &Path) -> Result<Vec<u8>, RelayStoreError> {
    tokio::fs::read(file).await.map_err(|error| RelayStoreError::Unreachable(format!("{}: {error}", file.display())))
}

/// Parses the options: prefix, authority, certificate and key.
fn read_options(options: &str) -> Result<[Option<String>; 4], RedisAddressError> {
    const NAMES: [&str; 4] = ["prefix", "ca_file", "cert_file", "key_file"];
    let mut found = [const { None }; 4];
    for option in options.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').ok_or(RedisAddressError::Option)?;
        let place = NAMES.iter().position(|known| *known == name).ok_or(RedisAddressError::Option)?;
        let value = percent_decode_str(value).decode_utf8().map_err(|_| RedisAddressError::Option)?.into_owned();
        if value.is_empty() || found[place].replace(value).is_some() {
            return Err(RedisAddressError::Option);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password_and_prefix_and_files_are_read() {
        let address = RedisAddress::read("redis://ann:s3cret@cache.example:6380/2?prefix=eu%3Arelay:").unwrap();
        assert_eq!(address.to_string(), "redis://cache.example:6380/2");
        assert_eq!(format!("{address:?}"), "RedisAddress(redis://cache.example:6380/2)");
        assert_eq!(address.prefix(), "eu:relay:");
        assert_ne!(address, RedisAddress::read("redis://ann:0ther@cache.example:6380/2?prefix=eu%3Arelay:").unwrap());
        let address = RedisAddress::read("rediss://:s3cret@cache.example?ca_file=/etc/ca.pem").unwrap();
        assert_eq!(address.to_string(), "rediss://cache.example:6379/0");
        assert_eq!((address.prefix(), address.ca_file.as_deref()), (PREFIX, Some(Path::new("/etc/ca.pem"))));
    }

    #[test]
    fn what_is_wrong_is_said_without_repeating_the_address() {
        for (address, expected) in [
            ("", RedisAddressError::Form),
            ("memory", RedisAddressError::Form),
            ("http://:s3cret@cache", RedisAddressError::Form),
            ("redis://", RedisAddressError::Form),
            ("redis://:s3cret@cache/two", RedisAddressError::Form),
            ("redis://cache:99999", RedisAddressError::Form),
            ("rediss://cache/#insecure", RedisAddressError::Form),
            ("redis://cache?s3cret", RedisAddressError::Option),
            ("redis://cache?protocol=resp2", RedisAddressError::Option),
            ("redis://cache?prefix=a&prefix=b", RedisAddressError::Option),
            ("redis://cache?prefix=a%20b", RedisAddressError::Prefix),
            ("redis://cache?ca_file=/ca.pem", RedisAddressError::NeedsTls),
            ("rediss://cache?cert_file=/c.pem", RedisAddressError::HalfPair),
        ] {
            let error = RedisAddress::read(address).unwrap_err();
            assert_eq!(error, expected, "{address}");
            assert!(!error.to_string().contains("s3cret"));
        }
    }
}
