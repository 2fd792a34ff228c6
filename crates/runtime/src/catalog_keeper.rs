//! Catalog of the running gateway: one writer at a time, and readers of an immutable snapshot.

use crate::backend::Backend;
use crate::backends::Backends;
use arc_swap::ArcSwap;
use signalbox_engine::Principal;
use signalbox_engine::catalog::{
    Catalog, ListChanges, ListInspector, Snapshot, VIEW_SHARE, View, ViewKey, read_saved, write_saved,
};
use signalbox_engine::lock::LockResultExt;
use std::collections::{HashMap, HashSet};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;

/// Catalog and the backends that may change it.
struct Model {
    catalog: Catalog,
    /// Current backend of each name. A predecessor that still finishes its calls cannot change the lists.
    owners: HashMap<Arc<str>, Owner>,
}

struct Owner {
    backend: u64,
    /// Set if the known lists were read from a predecessor.
    inherited: bool,
}

impl Model {
    fn is_owner(&self, backend: &Backend) -> bool {
        self.owners.get(&backend.name).is_some_and(|owner| owner.backend == backend.id)
    }
}

/// Owner of the catalog and its saved copy.
pub struct CatalogKeeper {
    model: Mutex<Model>,
    snapshot: ArcSwap<Snapshot>,
    generation: watch::Sender<u64>,
    file: Option<PathBuf>,
    /// Looks at lists before they are stored.
    inspector: Option<Arc<dyn ListInspector>>,
    saving: tokio::sync::Mutex<()>,
}

impl CatalogKeeper {
    /// Creates the catalog of these backends from the lists that an earlier run saved. `memory` is the gateway's
    /// budget.
    #[must_use]
    pub fn new(
        backends: &Backends,
        file: Option<PathBuf>,
        memory: usize,
        inspector: Option<Arc<dyn ListInspector>>,
    ) -> Self {
        let mut catalog = Catalog::new(backends.iter().map(|backend| Arc::clone(&backend.name)));
        catalog.set_view_bytes(memory / VIEW_SHARE);
        mark_private(&mut catalog, backends);
        if let Some(file) = &file {
            load(&mut catalog, file);
        }
        if let Some(inspector) = &inspector {
            inspect(&mut catalog, &**inspector);
        }
        let snapshot = ArcSwap::from_pointee(catalog.snapshot());
        let owner = |backend: &Arc<Backend>| {
            let known = catalog.backends().iter().find(|entry| entry.name == backend.name);
            let inherited = known.is_some_and(|entry| !entry.views.is_empty() && entry.source != backend.spec().source);
            (Arc::clone(&backend.name), Owner { backend: backend.id, inherited })
        };
        let owners = backends.iter().map(owner).collect();
        let model = Model { catalog, owners };
        let (generation, saving) = (watch::Sender::new(0), tokio::sync::Mutex::default());
        Self { model: Mutex::new(model), snapshot, generation, file, inspector, saving }
    }

    /// Adapts to a change of the gateway's memory budget.
    pub fn set_memory(&self, memory: usize) {
        self.lock().catalog.set_view_bytes(memory / VIEW_SHARE);
    }

    /// Returns the current snapshot of the catalog.
    #[must_use]
    pub fn snapshot(&self) -> arc_swap::Guard<Arc<Snapshot>> {
        self.snapshot.load()
    }

    /// Returns a receiver that is notified of every change.
    #[must_use]
    pub fn follow(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// Stores the lists of a backend.
    pub fn set_view(&self, backend: &Backend, key: ViewKey, view: View) -> ListChanges {
        let view = match &self.inspector {
            Some(inspector) => view.inspected(|sent| inspector.inspect(&backend.name, &key, sent)),
            None => view,
        };
        self.change(|model| {
            let owner = model.owners.get_mut(&backend.name).filter(|owner| owner.backend == backend.id);
            let Some(owner) = owner else { return ListChanges::default() };
            let inherited = std::mem::take(&mut owner.inherited);
            model.catalog.set_source(&backend.name, backend.spec().source);
            match inherited {
                true => model.catalog.replace_views(&backend.name, key, view),
                false => model.catalog.set_view(&backend.name, key, view),
            }
        })
    }

    /// Inspects all known lists again, because the inspector decides by other settings now.
    pub fn inspect_again(&self) -> ListChanges {
        let Some(inspector) = &self.inspector else { return ListChanges::default() };
        self.change(|model| inspect(&mut model.catalog, &**inspector))
    }

    /// Drops the lists of this principal at a backend with per-principal lists.
    pub fn forget_views_of(&self, backend: &Backend, principal: &Principal) -> ListChanges {
        self.change(|model| model.catalog.forget_views_of(&backend.name, principal))
    }

    /// Drops the tools that a backend may no longer offer.
    pub fn keep_tools(&self, backend: &Backend, keep: impl Fn(&str) -> bool) -> ListChanges {
        self.change(|model| match model.is_owner(backend) {
            true => model.catalog.keep_tools(&backend.name, keep),
            false => ListChanges::default(),
        })
    }

    /// Applies a new set of backends. Known lists stay until the new backend of the name has been read.
    pub fn reconfigure(&self, backends: &Backends) -> ListChanges {
        self.change(|model| {
            let mut before = std::mem::take(&mut model.owners);
            for backend in backends.iter() {
                let owner = match before.remove(&backend.name) {
                    Some(owner) if owner.backend == backend.id => owner,
                    known => Owner { backend: backend.id, inherited: known.is_some() },
                };
                model.owners.insert(Arc::clone(&backend.name), owner);
            }
            let changed = model.catalog.reconfigure(backends.iter().map(|backend| Arc::clone(&backend.name)));
            mark_private(&mut model.catalog, backends);
            changed
        })
    }

    /// Returns true if lists of this backend are known, and not only those of a predecessor.
    #[must_use]
    pub fn has_lists(&self, backend: &Backend) -> bool {
        let model = self.lock();
        let own = model.owners.get(&backend.name).is_some_and(|owner| owner.backend == backend.id && !owner.inherited);
        own && model.catalog.backends().iter().any(|entry| entry.name == backend.name && !entry.views.is_empty())
    }

    /// Returns the keys of the views that are stored for this backend.
    #[must_use]
    pub fn views(&self, backend: &Backend) -> HashSet<ViewKey> {
        let model = self.lock();
        let entry = model.catalog.backends().iter().find(|entry| entry.name == backend.name);
        entry.into_iter().flat_map(|entry| entry.views.keys().cloned()).collect()
    }

    /// Shows or hides the entries of a backend.
    pub fn set_listed(&self, backend: &Backend, listed: bool) -> ListChanges {
        self.change(|model| match model.is_owner(backend) {
            true => model.catalog.set_listed(&backend.name, listed),
            false => ListChanges::default(),
        })
    }

    /// Wakes all waiters for lists although the lists are unchanged, for example because a backend has failed.
    pub fn nudge(&self) {
        self.generation.send_modify(|generation| *generation += 1);
    }

    fn change(&self, with: impl FnOnce(&mut Model) -> ListChanges) -> ListChanges {
        let mut model = self.lock();
        if self.snapshot.load().was_shown() {
            model.catalog.settle();
        }
        let changed = with(&mut model);
        self.snapshot.store(Arc::new(model.catalog.snapshot()));
        drop(model);
        self.nudge();
        changed
    }

    /// Saves the known lists in the data folder. If that fails, the next start merely has to wait for lists.
    pub async fn save(&self) {
        let Some(file) = self.file.clone() else { return };
        // One writer at a time, so that an older catalog never replaces a newer one.
        let _turn = self.saving.lock().await;
        let bytes = write_saved(&self.lock().catalog);
        let written = tokio::task::spawn_blocking(move || {
            let fresh = file.with_extension(format!("{}.new", std::process::id()));
            write_replacing(&fresh, &bytes)?;
            std::fs::rename(&fresh, &file)
        });
        match written.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "could not save the catalog"),
            Err(error) => tracing::warn!(%error, "could not save the catalog"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unpoisoned()
    }
}

/// Marks the backends that may show each principal something different.
fn mark_private(catalog: &mut Catalog, backends: &Backends) {
    for backend in backends.iter() {
        catalog.set_private(&backend.name, backend.is_per_user());
        catalog.set_per_token(&backend.name, backend.is_per_caller());
        catalog.set_own_credentials(&backend.name, backend.has_own_credentials());
        catalog.set_apart(&backend.name, backend.is_apart());
        catalog.set_owners(&backend.name, backend.list_owners());
    }
}

/// Creates a file that only its owner can read. Removes an existing file or link first.
fn write_replacing(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    opened.write_all(bytes)
}

/// Stores every view of the catalog as the inspector returns it.
fn inspect(catalog: &mut Catalog, inspector: &dyn ListInspector) -> ListChanges {
    let views = catalog.backends().iter().flat_map(|entry| {
        entry.views.iter().map(|(key, view)| (Arc::clone(&entry.name), key.clone(), View::clone(view)))
    });
    let views: Vec<_> = views.collect();
    let mut changes = ListChanges::default();
    for (backend, key, view) in views {
        let view = view.inspected(|sent| inspector.inspect(&backend, &key, sent));
        changes = changes.or(catalog.set_view(&backend, key, view));
    }
    changes
}

fn load(model: &mut Catalog, file: &Path) {
    if file.is_symlink() {
        return tracing::warn!("ignoring the saved lists: {} is a symbolic link", file.display());
    }
    match std::fs::read(file) {
        Ok(bytes) => {
            if let Err(error) = read_saved(model, &bytes) {
                tracing::warn!(%error, "ignoring the saved lists");
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(%error, "could not read the saved lists"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    #[tokio::test]
    async fn the_saved_catalog_is_private_and_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (file, victim) = (folder.path().join("catalog.json"), folder.path().join("victim"));
        std::fs::write(&victim, "mine").unwrap();
        let fresh = file.with_extension(format!("{}.new", std::process::id()));
        std::os::unix::fs::symlink(&victim, &fresh).unwrap();
        std::os::unix::fs::symlink(&victim, &file).unwrap();
        let keeper = CatalogKeeper::new(&Backends::default(), Some(file.clone()), 0, None);
        keeper.save().await;
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
        assert!(!file.is_symlink());
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
    }
}
