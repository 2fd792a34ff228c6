//! TLS to a backend: the verification of its certificate, and our own client certificate.

use super::file::Stamp;
use super::front::{TlsError, roots};
use super::pair::PairFiles;
use super::stream::MaybeTlsStream;
use super::words::{find, words};
use super::{LOOK, MinVersion, provider};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use signalbox_engine::lock::LockResultExt;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// TLS configuration for a backend.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BackTlsSpec {
    /// Authorities that sign the backend's certificate; `None` for those that the system trusts.
    pub ca_file: Option<PathBuf>,
    /// Client certificate to present if the backend requests one.
    pub identity: Option<PairFiles>,
    /// Name that the backend's certificate must be valid for, if it is not the host of its address.
    pub server_name: Option<String>,
    /// Minimum TLS version to negotiate.
    pub min_version: MinVersion,
}

/// Reason why a TLS connection to a backend failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BackTlsError {
    #[error(
        "no certificate authority was found on this system, so that no certificate can be checked; install them \
         (`ca-certificates`), or name one by `tls.ca_file`"
    )]
    NoRoots,
    #[error("{}", handshake(.0))]
    Handshake(io::Error),
}

fn handshake(error: &io::Error) -> String {
    match find(error) {
        Some(error) => format!("no TLS connection: {}", words(error)),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "no TLS connection: the other side closed it in the middle of the handshake".to_owned()
        }
        None => format!("no TLS connection: {error}"),
    }
}

/// TLS client for one backend. Its connections share the session cache.
pub struct BackTls {
    backend: Arc<str>,
    spec: BackTlsSpec,
    name: ServerName<'static>,
    state: Mutex<State>,
}

struct State {
    config: Arc<ClientConfig>,
    stamp: Stamp,
    looked: Instant,
}

impl BackTls {
    /// Reads the configured files. `host` is that of the backend's address.
    ///
    /// # Errors
    /// Returns the file that cannot be used, with the reason.
    pub fn new(backend: &Arc<str>, spec: BackTlsSpec, host: &str) -> Result<Arc<Self>, TlsError> {
        let name = spec.server_name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| TlsError::Unfit("the host of the url cannot be the name of a certificate".to_owned()))?;
        let stamp = Stamp::of(spec.files());
        let config = spec.load(backend)?;
        let state = Mutex::new(State { config, stamp, looked: Instant::now() });
        Ok(Arc::new(Self { backend: Arc::clone(backend), spec, name, state }))
    }

    /// Performs the handshake on a connected socket.
    pub(crate) async fn connect(self: &Arc<Self>, socket: TcpStream) -> Result<MaybeTlsStream, BackTlsError> {
        if self.spec.ca_file.is_none() && system_roots().is_empty() {
            return Err(BackTlsError::NoRoots);
        }
        if self.is_due() {
            let tls = Arc::clone(self);
            let _ = tokio::task::spawn_blocking(move || tls.reload_if_changed()).await;
        }
        let config = Arc::clone(&self.lock().config);
        let connecting = TlsConnector::from(config).connect(self.name.clone(), socket);
        let stream = connecting.await.map_err(BackTlsError::Handshake)?;
        Ok(MaybeTlsStream::Tls(Box::new(stream.into())))
    }

    /// Returns `true` if the files are due for a check, which the caller must then do.
    fn is_due(&self) -> bool {
        let mut state = self.lock();
        let due = state.looked.elapsed() >= LOOK && self.spec.files().next().is_some();
        if due {
            state.looked = Instant::now();
        }
        due
    }

    fn reload_if_changed(&self) {
        let stamp = Stamp::of(self.spec.files());
        if self.lock().stamp == stamp {
            return;
        }
        let loaded = self.spec.load(&self.backend);
        let mut state = self.lock();
        state.stamp = stamp;
        match loaded {
            Ok(config) => {
                state.config = config;
                tracing::info!(backend = %self.backend, "the certificates were read again");
            }
            Err(error) => {
                tracing::warn!(backend = %self.backend, %error, "the changed certificates cannot be used; keeping the previous ones");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }
}

impl fmt::Debug for BackTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackTls").field("backend", &self.backend).field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl BackTlsSpec {
    fn files(&self) -> impl Iterator<Item = &Path> {
        let pair = self.identity.iter().flat_map(|pair| [pair.cert_file.as_path(), pair.key_file.as_path()]);
        pair.chain(self.ca_file.as_deref())
    }

    fn load(&self, backend: &str) -> Result<Arc<ClientConfig>, TlsError> {
        let roots = match &self.ca_file {
            Some(file) => Arc::new(roots(file)?),
            None => {
                let roots = system_roots();
                if roots.is_empty() {
                    tracing::warn!(backend, "{}", BackTlsError::NoRoots);
                }
                roots
            }
        };
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(self.min_version.versions())
            .map_err(TlsError::unfit)?
            .with_root_certificates(roots);
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(files) => {
                let pair = files.load()?;
                files.warn(&pair.info);
                builder.with_client_auth_cert(pair.certificates, pair.key).map_err(TlsError::unfit)?
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// Returns the authorities that the system trusts, read once.
fn system_roots() -> Arc<RootCertStore> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let read = || {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::debug!(%error, "on reading the system's certificate authorities");
        }
        let mut roots = RootCertStore::empty();
        let (_, unusable) = roots.add_parsable_certificates(found.certs);
        if unusable > 0 {
            tracing::debug!(unusable, "some of the system's certificate authorities cannot be used");
        }
        Arc::new(roots)
    };
    Arc::clone(ROOTS.get_or_init(read))
}
