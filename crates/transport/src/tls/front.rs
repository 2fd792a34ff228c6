//! TLS of a front: its certificates, the verification of client certificates, and the reload of both at runtime.

use super::file::{self, FileProblem, Stamp, TlsFileError};
use super::inspect::CertificateInfo;
use super::pair::PairFiles;
use super::{LOOK, MinVersion, provider};
use rustls::client::verify_server_name;
use rustls::pki_types::ServerName;
use rustls::server::{
    ClientHello, NoServerSessionStorage, ParsedCertificate, ResolvesServerCert, WebPkiClientVerifier,
};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};
use signalbox_engine::lock::LockResultExt;
use signalbox_wire::timestamp;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Interval at which the warning about an expiring certificate is repeated.
const WARN_AGAIN: Duration = Duration::from_secs(24 * 3600);

/// Policy for client certificates, with the file of the authorities that sign them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClientCertPolicy {
    /// No certificate is requested.
    None,
    /// A client may present a certificate, which must then be valid.
    Optional(PathBuf),
    /// Every client must present a valid certificate.
    Required(PathBuf),
}

impl ClientCertPolicy {
    fn ca_file(&self) -> Option<&Path> {
        match self {
            Self::None => None,
            Self::Optional(file) | Self::Required(file) => Some(file),
        }
    }

    /// Returns the name used in status output.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Optional(_) => "optional",
            Self::Required(_) => "required",
        }
    }
}

/// TLS configuration of a front.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrontTlsSpec {
    /// Certificates. A client gets the first that is valid for the requested name, or else the first of all.
    pub pairs: Vec<PairFiles>,
    /// Policy for client certificates.
    pub client_auth: ClientCertPolicy,
    /// Minimum TLS version to negotiate.
    pub min_version: MinVersion,
    /// Set if HTTP is served inside TLS.
    pub http: bool,
    /// Maximum time of a handshake.
    pub handshake_timeout: Duration,
    /// Maximum number of concurrent handshakes; further ones wait.
    pub max_handshakes: usize,
}

/// Reason why a TLS configuration is unusable.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] TlsFileError),
    /// Every file is valid, but their combination is not.
    #[error("TLS cannot be set up: {0}")]
    Unfit(String),
}

impl TlsError {
    pub(super) fn unfit(error: impl fmt::Display) -> Self {
        Self::Unfit(error.to_string())
    }
}

/// TLS status of a front, for display.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct TlsStatus {
    /// Certificates in use, in their order.
    pub certificates: Vec<CertificateStatus>,
    /// `none`, `optional` or `required`.
    pub client_auth: &'static str,
    /// Number of successful reloads.
    pub reloads: u64,
    /// Reason why the current files are not in use, if they are not.
    pub last_error: Option<String>,
}

/// A certificate in use.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct CertificateStatus {
    /// File it was read from.
    pub file: PathBuf,
    /// End of its validity.
    pub not_after: String,
    /// SHA-256 fingerprint in hexadecimal.
    pub fingerprint: String,
    /// Warning for the operator, if any.
    pub warning: Option<String>,
}

/// TLS of a front. A reload replaces the whole configuration; open connections keep theirs.
pub struct FrontTls {
    pub(super) spec: FrontTlsSpec,
    pub(super) room: Semaphore,
    loaded: RwLock<LoadedConfig>,
    state: Mutex<ReloadState>,
}

struct LoadedConfig {
    config: Arc<ServerConfig>,
    infos: Vec<CertificateInfo>,
}

/// Certificates that were read but are not in use yet.
pub struct ReadAgain {
    stamp: Stamp,
    loaded: LoadedConfig,
}

/// Result of the last check of the files.
struct ReloadState {
    stamp: Stamp,
    reloads: u64,
    error: Option<String>,
}

impl FrontTls {
    /// Reads the files and logs warnings about them.
    ///
    /// # Errors
    /// Returns the file that cannot be used, with the reason.
    pub fn new(spec: FrontTlsSpec) -> Result<Arc<Self>, TlsError> {
        let stamp = Stamp::of(spec.files());
        let loaded = spec.load()?;
        let tls = Self {
            room: Semaphore::new(spec.max_handshakes),
            spec,
            loaded: RwLock::new(loaded),
            state: Mutex::new(ReloadState { stamp, reloads: 0, error: None }),
        };
        tls.warn();
        Ok(Arc::new(tls))
    }

    /// Reads the files again and uses all of them, or none.
    ///
    /// # Errors
    /// Returns the file that cannot be used, with the reason. The previous files stay in use.
    pub fn reload(&self) -> Result<(), TlsError> {
        self.read_again().map(|read| self.take_over(read))
    }

    /// Reads the files again without using them.
    ///
    /// # Errors
    /// Returns the file that cannot be used, with the reason.
    pub fn read_again(&self) -> Result<ReadAgain, TlsError> {
        // Taken before reading, so that a change during the read is noticed at the next check.
        let stamp = Stamp::of(self.spec.files());
        self.spec.load().map(|loaded| ReadAgain { stamp: stamp.clone(), loaded }).inspect_err(|error| {
            let mut state = self.state.lock().unpoisoned();
            state.stamp = stamp;
            state.error = Some(error.to_string());
            tracing::warn!(%error, "the certificates were read again and cannot be used; keeping the previous ones");
        })
    }

    /// Uses the files that were read for new connections.
    pub fn take_over(&self, read: ReadAgain) {
        {
            let mut state = self.state.lock().unpoisoned();
            *self.loaded.write().unpoisoned() = read.loaded;
            *state = ReloadState { stamp: read.stamp, reloads: state.reloads + 1, error: None };
        }
        tracing::info!("the certificates were read again and are in use for new connections");
        self.warn();
    }

    /// Reloads the files if they have changed. Errors are logged and reported by [`FrontTls::status`].
    pub fn reload_if_changed(&self) {
        let stamp = Stamp::of(self.spec.files());
        let changed = self.state.lock().unpoisoned().stamp != stamp;
        if changed {
            // `read_again` keeps and logs the error.
            let _ = self.reload();
        }
    }

    /// Checks the files at intervals until the front is dropped.
    pub async fn watch(tls: Weak<Self>) {
        let mut warned = Instant::now();
        loop {
            tokio::time::sleep(LOOK).await;
            let Some(tls) = tls.upgrade() else { return };
            let again = warned.elapsed() >= WARN_AGAIN;
            if again {
                warned = Instant::now();
            }
            let looking = tokio::task::spawn_blocking(move || {
                tls.reload_if_changed();
                if again {
                    tls.warn();
                }
            });
            if looking.await.is_err() {
                return;
            }
        }
    }

    /// Returns the current status.
    #[must_use]
    pub fn status(&self) -> TlsStatus {
        let (reloads, last_error) = {
            let state = self.state.lock().unpoisoned();
            (state.reloads, state.error.clone())
        };
        let now = std::time::SystemTime::now();
        let show = |(files, info): (&PairFiles, CertificateInfo)| CertificateStatus {
            file: files.cert_file.clone(),
            not_after: timestamp::readable(info.not_after),
            warning: info.warning(now),
            fingerprint: info.fingerprint,
        };
        TlsStatus {
            certificates: self.spec.pairs.iter().zip(self.infos()).map(show).collect(),
            client_auth: self.spec.client_auth.as_str(),
            reloads,
            last_error,
        }
    }

    /// Returns the configuration for the next handshake.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.loaded.read().unpoisoned().config)
    }

    fn infos(&self) -> Vec<CertificateInfo> {
        self.loaded.read().unpoisoned().infos.clone()
    }

    fn warn(&self) {
        for (files, info) in self.spec.pairs.iter().zip(self.infos()) {
            files.warn(&info);
        }
    }
}

impl fmt::Debug for FrontTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrontTls").field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl FrontTlsSpec {
    /// Returns every file that is read.
    fn files(&self) -> impl Iterator<Item = &Path> {
        let pairs = self.pairs.iter().flat_map(|pair| [pair.cert_file.as_path(), pair.key_file.as_path()]);
        pairs.chain(self.client_auth.ca_file())
    }

    fn load(&self) -> Result<LoadedConfig, TlsError> {
        let pairs = self.pairs.iter().map(PairFiles::load).collect::<Result<Vec<_>, _>>()?;
        let verifier = match self.client_auth.ca_file() {
            None => WebPkiClientVerifier::no_client_auth(),
            Some(file) => {
                let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(file)?), provider());
                if matches!(self.client_auth, ClientCertPolicy::Optional(_)) {
                    builder = builder.allow_unauthenticated();
                }
                builder.build().map_err(TlsError::unfit)?
            }
        };
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(self.min_version.versions())
            .map_err(TlsError::unfit)?;
        let (certified, infos) = pairs.into_iter().map(|pair| (pair.certified, pair.info)).unzip();
        let mut config = builder.with_client_cert_verifier(verifier).with_cert_resolver(Arc::new(ByName(certified)));
        if self.http {
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
        }
        if self.client_auth.ca_file().is_some() {
            // A resumed session would not verify the client's certificate again, which may have expired.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        } else {
            config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().map_err(TlsError::unfit)?;
        }
        Ok(LoadedConfig { config: Arc::new(config), infos })
    }
}

/// Reads the certificate authorities in a file.
pub(super) fn roots(path: &Path) -> Result<RootCertStore, TlsFileError> {
    let mut roots = RootCertStore::empty();
    for certificate in file::certificates(path)? {
        roots.add(certificate).map_err(|error| FileProblem::BadRoot(super::words(&error)).at(path))?;
    }
    Ok(roots)
}

/// Selects the first certificate that is valid for the requested name, or the first of all if none is.
#[derive(Debug)]
struct ByName(Vec<Arc<CertifiedKey>>);

impl ByName {
    fn find(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let name = ServerName::try_from(name).ok()?;
        let fits = |one: &&Arc<CertifiedKey>| {
            let parsed = one.end_entity_cert().and_then(ParsedCertificate::try_from);
            parsed.is_ok_and(|parsed| verify_server_name(&parsed, &name).is_ok())
        };
        self.0.iter().find(fits).cloned()
    }
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let only = self.0.len() == 1;
        let named = hello.server_name().filter(|_| !only).and_then(|name| self.find(name));
        named.or_else(|| self.0.first().cloned())
    }
}
