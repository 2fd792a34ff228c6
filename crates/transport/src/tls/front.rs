//! The front's side: which certificate is shown, whose certificates are asked for, and how both change while it runs.

use super::file::{self, FileError, FileProblem, Stamp};
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

/// How often a certificate that ends soon is warned of.
const WARN_AGAIN: Duration = Duration::from_secs(24 * 3600);

/// Whether clients have to show a certificate, and which file holds the authorities that may have signed it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClientAuth {
    /// None is asked for.
    None,
    /// A client may show one. If it does, it must be a good one.
    Optional(PathBuf),
    /// Nobody is let in without a good one.
    Required(PathBuf),
}

impl ClientAuth {
    fn ca_file(&self) -> Option<&Path> {
        match self {
            Self::None => None,
            Self::Optional(file) | Self::Required(file) => Some(file),
        }
    }

    /// The word for it.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Optional(_) => "optional",
            Self::Required(_) => "required",
        }
    }
}

/// What is configured about the TLS of a front.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrontTlsSpec {
    /// The certificates. A client gets the first that is good for the name it asks for, or else the first.
    pub pairs: Vec<PairFiles>,
    /// What clients have to show.
    pub client_auth: ClientAuth,
    /// The oldest version that is spoken.
    pub min_version: MinVersion,
    /// Whether HTTP is spoken inside.
    pub http: bool,
    /// How long a handshake may take.
    pub handshake_timeout: Duration,
    /// Most handshakes under way at a time; more wait.
    pub max_handshakes: usize,
}

/// Why TLS cannot be spoken like this.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// Each file is good, but not all of them together.
    #[error("TLS cannot be set up: {0}")]
    Unfit(String),
}

impl TlsError {
    pub(super) fn unfit(error: impl fmt::Display) -> Self {
        Self::Unfit(error.to_string())
    }
}

/// How the TLS of a front is, for people.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct TlsStatus {
    /// The certificates in use.
    pub certificates: Vec<CertificateStatus>,
    /// `none`, `optional` or `required`.
    pub client_auth: &'static str,
    /// How often changed files were taken over.
    pub reloads: u64,
    /// Why the files as they are now are not in use, if they are not.
    pub last_error: Option<String>,
}

/// A certificate in use.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct CertificateStatus {
    /// Where it was read from.
    pub file: PathBuf,
    /// Until when it is good.
    pub not_after: String,
    /// The SHA-256 of it.
    pub fingerprint: String,
    /// What its owner should know.
    pub warning: Option<String>,
}

/// The TLS of a front. What it shows and asks for is swapped as a whole; connections that are open go on as they are.
pub struct FrontTls {
    pub(super) spec: FrontTlsSpec,
    pub(super) room: Semaphore,
    loaded: RwLock<Loaded>,
    seen: Mutex<Seen>,
}

struct Loaded {
    config: Arc<ServerConfig>,
    infos: Vec<CertificateInfo>,
}

/// Certificates that can be used, but are not yet.
pub struct ReadAgain {
    stamp: Stamp,
    loaded: Loaded,
}

/// What became of the last look at the files.
struct Seen {
    stamp: Stamp,
    reloads: u64,
    error: Option<String>,
}

impl FrontTls {
    /// Reads the files, and warns of what is odd about them.
    ///
    /// # Errors
    /// Says which file cannot be used, and why.
    pub fn new(spec: FrontTlsSpec) -> Result<Arc<Self>, TlsError> {
        let stamp = Stamp::of(spec.files());
        let loaded = spec.load()?;
        let tls = Self {
            room: Semaphore::new(spec.max_handshakes),
            spec,
            loaded: RwLock::new(loaded),
            seen: Mutex::new(Seen { stamp, reloads: 0, error: None }),
        };
        tls.warn();
        Ok(Arc::new(tls))
    }

    /// Reads the files again: all of them are taken over, or none.
    ///
    /// # Errors
    /// Says which file cannot be used, and why; what was in use stays in use.
    pub fn reload(&self) -> Result<(), TlsError> {
        self.read_again().map(|read| self.take_over(read))
    }

    /// Reads the files again, and changes nothing yet.
    ///
    /// # Errors
    /// Says which file cannot be used, and why.
    pub fn read_again(&self) -> Result<ReadAgain, TlsError> {
        // Looked at before they are read: what changes in between is seen at the next look.
        let stamp = Stamp::of(self.spec.files());
        self.spec.load().map(|loaded| ReadAgain { stamp: stamp.clone(), loaded }).inspect_err(|error| {
            let mut seen = self.seen.lock().unpoisoned();
            seen.stamp = stamp;
            seen.error = Some(error.to_string());
            tracing::warn!(%error, "the certificates were read again and cannot be used; keeping the previous ones");
        })
    }

    /// Uses what was read for new connections.
    pub fn take_over(&self, read: ReadAgain) {
        {
            let mut seen = self.seen.lock().unpoisoned();
            *self.loaded.write().unpoisoned() = read.loaded;
            *seen = Seen { stamp: read.stamp, reloads: seen.reloads + 1, error: None };
        }
        tracing::info!("the certificates were read again and are in use for new connections");
        self.warn();
    }

    /// Reads the files again if they have changed. What is wrong with them is logged and told by [`FrontTls::status`].
    pub fn reload_if_changed(&self) {
        let stamp = Stamp::of(self.spec.files());
        let changed = self.seen.lock().unpoisoned().stamp != stamp;
        if changed {
            // The reason is kept and logged where it arises.
            let _ = self.reload();
        }
    }

    /// Looks after the files for as long as the front is there.
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

    /// How it is at this moment.
    #[must_use]
    pub fn status(&self) -> TlsStatus {
        let (reloads, last_error) = {
            let seen = self.seen.lock().unpoisoned();
            (seen.reloads, seen.error.clone())
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

    /// What the next handshake uses.
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
    /// Every file that is read.
    fn files(&self) -> impl Iterator<Item = &Path> {
        let pairs = self.pairs.iter().flat_map(|pair| [pair.cert_file.as_path(), pair.key_file.as_path()]);
        pairs.chain(self.client_auth.ca_file())
    }

    fn load(&self) -> Result<Loaded, TlsError> {
        let pairs = self.pairs.iter().map(PairFiles::load).collect::<Result<Vec<_>, _>>()?;
        let verifier = match self.client_auth.ca_file() {
            None => WebPkiClientVerifier::no_client_auth(),
            Some(file) => {
                let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(file)?), provider());
                if matches!(self.client_auth, ClientAuth::Optional(_)) {
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
            // A resumed session would not look at the client's certificate again, which may have expired.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        } else {
            config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().map_err(TlsError::unfit)?;
        }
        Ok(Loaded { config: Arc::new(config), infos })
    }
}

/// The authorities in a file.
pub(super) fn roots(path: &Path) -> Result<RootCertStore, FileError> {
    let mut roots = RootCertStore::empty();
    for certificate in file::certificates(path)? {
        roots.add(certificate).map_err(|error| FileProblem::BadRoot(super::words(&error)).at(path))?;
    }
    Ok(roots)
}

/// The first certificate that is good for the name a client asks for, and the first of all where none is.
#[derive(Debug)]
struct ByName(Vec<Arc<CertifiedKey>>);

impl ByName {
    fn named(&self, name: &str) -> Option<Arc<CertifiedKey>> {
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
        let named = hello.server_name().filter(|_| !only).and_then(|name| self.named(name));
        named.or_else(|| self.0.first().cloned())
    }
}
