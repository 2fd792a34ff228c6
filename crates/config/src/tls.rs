//! TLS settings toward clients and toward backends. The files themselves are read at the start.

use super::error::{ConfigError, Problem};
use super::read::Table;
use super::values::bad;
use signalbox_transport::tls::{BackTlsSpec, ClientCertPolicy, MinVersion, PairFiles};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum number of certificates per listener.
const MAX_CERTIFICATES: usize = 64;

/// TLS settings of the listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenTls {
    /// Certificates shown to clients.
    pub certificates: Certificates,
    /// Certificates demanded from clients.
    pub client_auth: ClientCertPolicy,
    /// Oldest version that is accepted.
    pub min_version: MinVersion,
    /// Time limit for a handshake.
    pub handshake_timeout: Duration,
    /// Maximum number of handshakes under way.
    pub max_handshakes: usize,
}

impl ListenTls {
    /// Returns `true` if every client must authenticate with a certificate.
    #[must_use]
    pub fn authenticates(&self) -> bool {
        matches!(self.client_auth, ClientCertPolicy::Required(_))
    }
}

/// Source of the listener's certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Certificates {
    /// Files. The first pair serves clients that ask for no name, or for one that no other pair matches.
    Files(Vec<PairFiles>),
    /// Certificate generated for this machine.
    SelfSigned,
}

/// Checks the listener's table.
pub(super) fn listen(table: &Table<'_>, authentication: bool) -> Result<Option<ListenTls>, ConfigError> {
    if !table.flag("enabled")? {
        return match table.entries.iter().find(|entry| entry.key != "enabled") {
            // A user who names a certificate believes that it is used.
            Some(entry) if !table.has("enabled") => {
                Err(table.key_error(&entry.key, Problem::NotEnabled { switch: table.path.child("enabled") }))
            }
            _ => Ok(None),
        };
    }
    Ok(Some(ListenTls {
        certificates: certificates(table)?,
        client_auth: client_auth(table, authentication)?,
        min_version: min_version(table)?,
        handshake_timeout: table.duration("handshake_timeout")?,
        max_handshakes: table.count("max_handshakes")?,
    }))
}

/// Checks the table of a backend.
pub(super) fn backend(table: &Table<'_>) -> Result<BackTlsSpec, ConfigError> {
    let server_name = table.text("server_name")?;
    if let Some(name) = server_name.as_ref().filter(|name| !is_server_name(&name.value)) {
        return Err(bad(table, name, "a host name or an IP address"));
    }
    Ok(BackTlsSpec {
        ca_file: file(table, "ca_file")?,
        identity: pair(table)?,
        server_name: server_name.map(|name| name.value),
        min_version: min_version(table)?,
    })
}

fn certificates(table: &Table<'_>) -> Result<Certificates, ConfigError> {
    let (first, more) = (pair(table)?, table.table("certificates")?);
    if table.flag("self_signed")? {
        for key in ["cert_file", "certificates"] {
            if table.has(key) {
                return Err(table.key_error(key, Problem::Beside("self_signed")));
            }
        }
        return Ok(Certificates::SelfSigned);
    }
    let Some(first) = first else {
        let needs = "`cert_file` and `key_file`, or `self_signed = true` for trying it out on this machine";
        return Err(table.key_error("enabled", Problem::Needs(needs)));
    };
    let mut pairs = vec![first];
    for entry in more.entries {
        let inside = more.inside(entry)?;
        let Some(pair) = pair(&inside)? else {
            return Err(inside.error(Problem::Needs("`cert_file` and `key_file`")));
        };
        pairs.push(pair);
    }
    if pairs.len() > MAX_CERTIFICATES {
        return Err(table.key_error("certificates", Problem::BadHiddenValue("at most 63 more certificates")));
    }
    Ok(Certificates::Files(pairs))
}

/// Reads the certificates that clients must show. If there are other ways to authenticate, a certificate is optional.
fn client_auth(table: &Table<'_>, authentication: bool) -> Result<ClientCertPolicy, ConfigError> {
    let (word, given) = (table.choice("client_auth")?, table.has("client_auth"));
    match (word.as_str(), file(table, "ca_file")?) {
        ("none", _) => Ok(ClientCertPolicy::None),
        (_, None) if given => Err(table.key_error(
            "client_auth",
            Problem::Needs("a `ca_file` with the authorities that sign clients' certificates"),
        )),
        (_, None) => Ok(ClientCertPolicy::None),
        ("optional", Some(file)) => Ok(ClientCertPolicy::Optional(file)),
        (_, Some(file)) if authentication && !given => Ok(ClientCertPolicy::Optional(file)),
        (_, Some(file)) => Ok(ClientCertPolicy::Required(file)),
    }
}

/// Reads a certificate and its key: both or none.
fn pair(table: &Table<'_>) -> Result<Option<PairFiles>, ConfigError> {
    match (file(table, "cert_file")?, file(table, "key_file")?) {
        (Some(cert_file), Some(key_file)) => Ok(Some(PairFiles { cert_file, key_file })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(table.key_error("cert_file", Problem::Needs("a `key_file` beside it"))),
        (None, Some(_)) => Err(table.key_error("key_file", Problem::Needs("a `cert_file` beside it"))),
    }
}

fn min_version(table: &Table<'_>) -> Result<MinVersion, ConfigError> {
    Ok(if table.choice("min_version")? == "1.3" { MinVersion::V1_3 } else { MinVersion::V1_2 })
}

/// Reads the path of a file. A relative one is taken from the configuration's folder.
pub(super) fn file(table: &Table<'_>, key: &str) -> Result<Option<PathBuf>, ConfigError> {
    let Some(text) = table.text(key)? else {
        return Ok(None);
    };
    if text.value.is_empty() || text.value.contains('\0') {
        return Err(bad(table, &text, "the path of a file"));
    }
    if text.value.starts_with('~') {
        return Err(bad(table, &text, "a path with `${HOME}` for `~`"));
    }
    let base = table.document.file.and_then(Path::parent);
    Ok(Some(base.map_or_else(|| PathBuf::from(&text.value), |base| base.join(&text.value))))
}

/// Returns `true` for a name as certificates have it, which the transport can parse.
fn is_server_name(name: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    name.parse::<std::net::IpAddr>().is_ok() || (name.len() <= 253 && name.split('.').all(label))
}
