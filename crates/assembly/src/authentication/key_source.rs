//! Where the keys of one issuer come from, and when they are read again.

use super::AuthError;
use signalbox_config::{Issuer, IssuerKeys};
use signalbox_engine::lock::LockResultExt as _;
use signalbox_govern::jwks::MAX_BYTES;
use signalbox_govern::{IssuerRules, KeySet, KeySetError, TokenIssuer};
use signalbox_oauth::OauthError;
use signalbox_oauth::outbound::Outbound;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;

/// An issuer and the source of its keys.
pub(super) struct KeySource {
    /// The issuer.
    pub issuer: Arc<TokenIssuer>,
    file: Option<PathBuf>,
    url: Option<String>,
    /// How often the address is asked.
    every: Duration,
    /// Told when a token names a key that is not known.
    wanted: Notify,
    stamp: Mutex<Option<SystemTime>>,
    /// Whether the keys were replaced and nobody has looked at their tokens yet.
    replaced: AtomicBool,
    /// The configuration has no such issuer any more.
    removed: AtomicBool,
}

impl KeySource {
    /// Reads the keys for the first time.
    pub fn load(config: &Issuer, rules: IssuerRules) -> Result<Self, AuthError> {
        let failed = |why| AuthError::KeySet { issuer: config.name.clone(), why };
        let (keys, file, url) = match &config.keys {
            IssuerKeys::Secret(secret) => (KeySet::secret(secret.expose().as_bytes()).map_err(failed)?, None, None),
            IssuerKeys::File(path) => (read(path, &rules)?, Some(path.clone()), None),
            IssuerKeys::Url(url) => (KeySet::default(), None, Some(url.clone())),
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

    /// Trusts this issuer no more. Returns `false` if that was so before.
    pub fn remove(&self) -> bool {
        let first = !self.removed.swap(true, Ordering::Relaxed);
        if first {
            self.issuer.replace_keys(KeySet::default());
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

    /// A token names a key that is not known: the address is asked again soon.
    pub fn want(&self) {
        self.wanted.notify_one();
    }

    /// Keeps the keys up to date from the address that serves them; ends at once if there is none. What cannot be read
    /// changes nothing, and is asked for again.
    pub async fn follow(&self, outbound: &Outbound) {
        let Some(url) = &self.url else { return };
        while !self.is_removed() {
            let wait = match self.fetch(outbound, url).await {
                Ok(()) => self.every,
                Err(error) => {
                    tracing::warn!(issuer = self.issuer.rules.name, %error, "the keys of an issuer cannot be read");
                    AGAIN.min(self.every)
                }
            };
            // Whoever makes tokens up must not make us ask all the time.
            tokio::time::sleep(LEAST.min(wait)).await;
            let _ = tokio::time::timeout(wait.saturating_sub(LEAST), self.wanted.notified()).await;
        }
    }

    async fn fetch(&self, outbound: &Outbound, url: &str) -> Result<(), FetchError> {
        let answer = outbound.get(url).await?;
        if answer.status != 200 {
            return Err(FetchError::Status(answer.status));
        }
        let text = std::str::from_utf8(&answer.body).map_err(|_| FetchError::NotText)?;
        if self.is_removed() {
            return Ok(());
        }
        self.issuer.replace_keys(KeySet::parse(text, &self.issuer.rules.algorithms)?);
        self.replaced.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// The same. True if the keys were replaced since it was last asked.
    pub fn refresh(&self) -> bool {
        self.refresh_now();
        self.replaced.swap(false, Ordering::Relaxed)
    }
}

/// How soon an address is asked again that did not answer, and the least time between two questions.
const AGAIN: Duration = Duration::from_secs(30);
const LEAST: Duration = Duration::from_secs(5);

/// Why keys could not be read from an address.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error(transparent)]
    Ask(#[from] OauthError),
    #[error("the address answered {0}")]
    Status(u16),
    #[error("the answer is not text")]
    NotText,
    #[error(transparent)]
    Keys(#[from] KeySetError),
}

fn changed(file: &Path) -> Option<SystemTime> {
    std::fs::metadata(file).ok()?.modified().ok()
}

fn read(path: &Path, rules: &IssuerRules) -> Result<KeySet, AuthError> {
    let issuer = || rules.name.clone();
    let mut text = String::new();
    let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    let read = File::open(path).and_then(|file| file.take(most).read_to_string(&mut text));
    read.map_err(|why| AuthError::File { issuer: issuer(), path: path.to_owned(), why })?;
    KeySet::parse(&text, &rules.algorithms).map_err(|why| AuthError::KeySet { issuer: issuer(), why })
}
