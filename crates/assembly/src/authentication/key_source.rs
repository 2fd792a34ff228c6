//! Loads and refreshes the keys of one issuer.

use super::AuthError;
use signalbox_config::{Issuer, IssuerKeys};
use signalbox_engine::lock::LockResultExt as _;
use signalbox_govern::jwks::MAX_BYTES;
use signalbox_govern::{IssuerRules, JsonWebKeySet, JsonWebKeySetError, TokenIssuer};
use signalbox_oauth_client::OauthError;
use signalbox_oauth_client::outbound::OutboundSettings;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;

/// Issuer with the source of its keys.
pub(super) struct KeySource {
    pub issuer: Arc<TokenIssuer>,
    file: Option<PathBuf>,
    url: Option<String>,
    /// Refresh interval for the address.
    every: Duration,
    /// Notified when a token names an unknown key.
    wanted: Notify,
    stamp: Mutex<Option<SystemTime>>,
    /// Set when the keys were replaced and the tokens have not been checked against them yet.
    replaced: AtomicBool,
    /// Set when a reload removed this issuer.
    removed: AtomicBool,
}

impl KeySource {
    /// Reads the keys for the first time.
    pub fn load(config: &Issuer, rules: IssuerRules) -> Result<Self, AuthError> {
        let failed = |why| AuthError::KeySet { issuer: config.name.clone(), why };
        let (keys, file, url) = match &config.keys {
            IssuerKeys::Secret(secret) => {
                (JsonWebKeySet::secret(secret.expose().as_bytes()).map_err(failed)?, None, None)
            }
            IssuerKeys::File(path) => (read(path, &rules)?, Some(path.clone()), None),
            IssuerKeys::Url(url) => (JsonWebKeySet::default(), None, Some(url.clone())),
        };
        let stamp = Mutex::new(file.as_deref().and_then(changed));
        Ok(Self {
            issuer: Arc::new(TokenIssuer::new(rules, keys)),
            file,
            url,
            every: config.refresh,
            wanted: Notify::new(),
            stamp,
            replaced: AtomicBool::new(false),
            removed: AtomicBool::new(false),
        })
    }

    /// Stops trusting this issuer. Returns `false` if it was removed before.
    pub fn remove(&self) -> bool {
        let first = !self.removed.swap(true, Ordering::Relaxed);
        if first {
            self.issuer.replace_keys(JsonWebKeySet::default());
        }
        first
    }

    fn is_removed(&self) -> bool {
        self.removed.load(Ordering::Relaxed)
    }

    /// Reads the keys again if their file has changed.
    pub fn refresh_now(&self) {
        let Some(file) = self.file.as_ref().filter(|_| !self.is_removed()) else { return };
        let now = changed(file);
        let before = std::mem::replace(&mut *self.stamp.lock().unpoisoned(), now);
        if before == now {
            return;
        }
        match read(file, &self.issuer.rules) {
            Ok(keys) => {
                self.issuer.replace_keys(keys);
                self.replaced.store(true, Ordering::Relaxed);
            }
            Err(error) => tracing::warn!(%error, "keeping the keys of the issuer that were read before"),
        }
    }

    /// Requests an early refresh because a token names an unknown key.
    pub fn want(&self) {
        self.wanted.notify_one();
    }

    /// Refreshes the keys from the address that serves them, or returns at once if there is none. A failed read keeps
    /// the current keys and is retried.
    pub async fn follow(&self, outbound: &OutboundSettings) {
        let Some(url) = &self.url else { return };
        while !self.is_removed() {
            let wait = match self.fetch(outbound, url).await {
                Ok(()) => self.every,
                Err(error) => {
                    tracing::warn!(issuer = self.issuer.rules.name, %error, "the keys of an issuer cannot be read");
                    AGAIN.min(self.every)
                }
            };
            // Invented tokens must not make the gateway fetch keys without a pause.
            tokio::time::sleep(LEAST.min(wait)).await;
            let _ = tokio::time::timeout(wait.saturating_sub(LEAST), self.wanted.notified()).await;
        }
    }

    async fn fetch(&self, outbound: &OutboundSettings, url: &str) -> Result<(), FetchError> {
        let answer = outbound.get(url).await?;
        if answer.status != 200 {
            return Err(FetchError::Status(answer.status));
        }
        let text = std::str::from_utf8(&answer.body).map_err(|_| FetchError::NotText)?;
        if self.is_removed() {
            return Ok(());
        }
        self.issuer.replace_keys(JsonWebKeySet::parse(text, &self.issuer.rules.algorithms)?);
        self.replaced.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Reads the keys again if their file has changed. Returns `true` if keys were replaced since the last call.
    pub fn refresh(&self) -> bool {
        self.refresh_now();
        self.replaced.swap(false, Ordering::Relaxed)
    }
}

/// Pause after a failed request, and the least time between two requests.
const AGAIN: Duration = Duration::from_secs(30);
const LEAST: Duration = Duration::from_secs(5);

/// Reason why keys cannot be fetched.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error(transparent)]
    Ask(#[from] OauthError),
    #[error("the address answered {0}")]
    Status(u16),
    #[error("the answer is not text")]
    NotText,
    #[error(transparent)]
    Keys(#[from] JsonWebKeySetError),
}

fn changed(file: &Path) -> Option<SystemTime> {
    std::fs::metadata(file).ok()?.modified().ok()
}

fn read(path: &Path, rules: &IssuerRules) -> Result<JsonWebKeySet, AuthError> {
    let issuer = || rules.name.clone();
    let mut text = String::new();
    let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    let read = File::open(path).and_then(|file| file.take(most).read_to_string(&mut text));
    read.map_err(|why| AuthError::File { issuer: issuer(), path: path.to_owned(), why })?;
    JsonWebKeySet::parse(&text, &rules.algorithms).map_err(|why| AuthError::KeySet { issuer: issuer(), why })
}
