//! Where Redis is. The password is never shown.

use crate::store::StoreError;
use percent_encoding::percent_decode_str;
use redis::io::tcp::TcpSettings;
use redis::{Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, ProtocolVersion, TlsCertificates};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What all keys begin with where the address does not say.
const PREFIX: &str = "signalbox:relay:";
/// The longest prefix.
const MAX_PREFIX: usize = 64;
/// How long Redis may take for a command.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What is wrong with an address. Nothing of it is repeated: it may hold the password.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadAddress {
    /// It is none.
    #[error(
        "must be redis://[[user]:password@]host[:port][/database], or rediss:// for TLS; \
         special characters of a password are written as %40"
    )]
    Form,
    /// It says something that nobody understands.
    #[error("after `?` there may be prefix=, ca_file=, cert_file= and key_file=, each once")]
    Option,
    /// The prefix cannot be used.
    #[error("prefix= takes up to {MAX_PREFIX} letters, digits and `:`, `-`, `_`, `.`, `{{`, `}}`")]
    Prefix,
    /// It speaks of certificates without TLS.
    #[error("ca_file=, cert_file= and key_file= need rediss://")]
    NeedsTls,
    /// One of the two is missing.
    #[error("cert_file= and key_file= go together")]
    HalfPair,
}

/// Where Redis is, and what keys begin with.
#[derive(Clone)]
pub struct RedisAddress {
    /// All of it, with the password.
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

/// For a person, without the password.
impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls() { "rediss" } else { "redis" };
        write!(f, "{scheme}://{}/{}", self.info.addr(), self.info.redis_settings().db())
    }
}

impl RedisAddress {
    /// Reads `redis://[[user]:password@]host[:port][/database][?prefix=…]`, or `rediss://` with TLS, which takes `ca_file`,
    /// `cert_file` and `key_file` too.
    ///
    /// # Errors
    /// Says what is wrong, without repeating anything of it.
    pub fn read(address: &str) -> Result<Self, BadAddress> {
        let (base, options) = address.split_once('?').unwrap_or((address, ""));
        let known = base.starts_with("redis://") || base.starts_with("rediss://");
        if !known || address.contains('#') {
            return Err(BadAddress::Form);
        }
        let info: ConnectionInfo = base.parse().map_err(|_| BadAddress::Form)?;
        // Events come by pushes, which only the newer protocol has. Nobody waits for small commands to be collected.
        let redis = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let info = info.set_redis_settings(redis).set_tcp_settings(TcpSettings::default().set_nodelay(true));
        let [prefix, ca_file, cert_file, key_file] = read_options(options)?;
        let prefix = prefix.unwrap_or_else(|| PREFIX.to_owned());
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.{}".contains(&byte);
        if prefix.len() > MAX_PREFIX || !prefix.bytes().all(fits) {
            return Err(BadAddress::Prefix);
        }
        let identity = match (cert_file, key_file) {
            (Some(cert), Some(key)) => Some((cert.into(), key.into())),
            (None, None) => None,
            _ => return Err(BadAddress::HalfPair),
        };
        let ca_file = ca_file.map(PathBuf::from);
        let (text, prefix) = (address.into(), prefix.into());
        let address = Self { text, info, ca_file, identity, prefix, timeout: TIMEOUT };
        if !address.is_tls() && (address.ca_file.is_some() || address.identity.is_some()) {
            return Err(BadAddress::NeedsTls);
        }
        Ok(address)
    }

    /// The same with another time that a command may take.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// What all keys begin with.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// How long a command may take.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    fn is_tls(&self) -> bool {
        matches!(self.info.addr(), ConnectionAddr::TcpTls { .. })
    }

    /// What opens connections. Certificates are read each time, so that new ones are used without a restart.
    pub(super) async fn client(&self) -> Result<Client, StoreError> {
        let unfit = |_| StoreError::Unreachable("TLS with Redis cannot be set up from these certificates".to_owned());
        if !self.is_tls() {
            return Client::open(self.info.clone()).map_err(unfit);
        }
        // Whoever was first has chosen the same: there is one provider in this program.
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

async fn read(file: &Path) -> Result<Vec<u8>, StoreError> {
    tokio::fs::read(file).await.map_err(|error| StoreError::Unreachable(format!("{}: {error}", file.display())))
}

/// Prefix, authority, certificate and key.
fn read_options(options: &str) -> Result<[Option<String>; 4], BadAddress> {
    const NAMES: [&str; 4] = ["prefix", "ca_file", "cert_file", "key_file"];
    let mut found = [const { None }; 4];
    for option in options.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').ok_or(BadAddress::Option)?;
        let place = NAMES.iter().position(|known| *known == name).ok_or(BadAddress::Option)?;
        let value = percent_decode_str(value).decode_utf8().map_err(|_| BadAddress::Option)?.into_owned();
        if value.is_empty() || found[place].replace(value).is_some() {
            return Err(BadAddress::Option);
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
            ("", BadAddress::Form),
            ("memory", BadAddress::Form),
            ("http://:s3cret@cache", BadAddress::Form),
            ("redis://", BadAddress::Form),
            ("redis://:s3cret@cache/two", BadAddress::Form),
            ("redis://cache:99999", BadAddress::Form),
            ("rediss://cache/#insecure", BadAddress::Form),
            ("redis://cache?s3cret", BadAddress::Option),
            ("redis://cache?protocol=resp2", BadAddress::Option),
            ("redis://cache?prefix=a&prefix=b", BadAddress::Option),
            ("redis://cache?prefix=a%20b", BadAddress::Prefix),
            ("redis://cache?ca_file=/ca.pem", BadAddress::NeedsTls),
            ("rediss://cache?cert_file=/c.pem", BadAddress::HalfPair),
        ] {
            let error = RedisAddress::read(address).unwrap_err();
            assert_eq!(error, expected, "{address}");
            assert!(!error.to_string().contains("s3cret"));
        }
    }
}
