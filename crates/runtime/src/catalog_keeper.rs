//! The catalog as the running program holds it: one writer at a time, readers of an immutable snapshot.

use arc_swap::ArcSwap;
use signalbox_engine::catalog::{Catalog, Changed, Snapshot, View, ViewKey, read_saved, write_saved};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The keeper.
pub struct CatalogKeeper {
    model: Mutex<Catalog>,
    snapshot: ArcSwap<Snapshot>,
    generation: watch::Sender<u64>,
    file: Option<PathBuf>,
    saving: tokio::sync::Mutex<()>,
}

impl CatalogKeeper {
    /// A keeper of these backends' lists, filled with what was known at the end of an earlier run.
    #[must_use]
    pub fn new(names: impl IntoIterator<Item = Arc<str>>, file: Option<PathBuf>) -> Self {
        let mut model = Catalog::new(names);
        if let Some(file) = &file {
            load(&mut model, file);
        }
        let snapshot = ArcSwap::from_pointee(model.snapshot());
        let (generation, saving) = (watch::Sender::new(0), tokio::sync::Mutex::default());
        Self { model: Mutex::new(model), snapshot, generation, file, saving }
    }

    /// The catalog as it stands.
    #[must_use]
    pub fn snapshot(&self) -> arc_swap::Guard<Arc<Snapshot>> {
        self.snapshot.load()
    }

    /// Follows changes.
    #[must_use]
    pub fn follow(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// Stores what a backend lists.
    pub fn set_view(&self, backend: &str, key: ViewKey, view: View) -> Changed {
        self.change(|model| model.set_view(backend, key, view))
    }

    /// Says whether a backend is there.
    pub fn set_listed(&self, backend: &str, listed: bool) -> Changed {
        self.change(|model| model.set_listed(backend, listed))
    }

    /// Wakes whoever waits for lists although nothing in them changed: a backend has failed, say.
    pub fn nudge(&self) {
        self.generation.send_modify(|generation| *generation += 1);
    }

    fn change(&self, with: impl FnOnce(&mut Catalog) -> Changed) -> Changed {
        let mut model = self.lock();
        let changed = with(&mut model);
        self.snapshot.store(Arc::new(model.snapshot()));
        drop(model);
        self.nudge();
        changed
    }

    /// Writes what is known to the data folder. Failing to do so only costs the next start some waiting.
    pub async fn save(&self) {
        let Some(file) = self.file.clone() else { return };
        // One at a time, so that an older catalog never replaces a newer one.
        let _turn = self.saving.lock().await;
        let bytes = write_saved(&self.lock());
        let written = tokio::task::spawn_blocking(move || {
            let fresh = file.with_extension(format!("{}.new", std::process::id()));
            std::fs::write(&fresh, bytes)?;
            std::fs::rename(&fresh, &file)
        });
        match written.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the catalog could not be saved"),
            Err(error) => tracing::warn!(%error, "the catalog could not be saved"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Catalog> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn load(model: &mut Catalog, file: &Path) {
    match std::fs::read(file) {
        Ok(bytes) => {
            if let Err(error) = read_saved(model, &bytes) {
                tracing::warn!(%error, "the lists of the last run are not used");
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(%error, "the lists of the last run cannot be read"),
    }
}
