//! Persistence of the last known lists. The file is read at startup, so that names keep their owners and clients need
//! not wait for the backends.

use super::{BackendEntry, Catalog, Item, ListKind, View, ViewKey};
use crate::capset::CapSet;
use crate::profile::ServerProfile;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use signalbox_wire::Revision;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Format version that this program writes.
pub const VERSION: u32 = 1;

/// Reason why a saved catalog cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PersistError {
    /// The file is not JSON that this program writes.
    #[error("the saved catalog is damaged: {0}")]
    Damaged(String),
    /// A newer program wrote the file.
    #[error("the saved catalog has version {0}, this program knows {VERSION}")]
    Version(u32),
}

#[derive(Serialize, Deserialize)]
struct CatalogFile {
    version: u32,
    backends: Vec<SavedBackend>,
    /// Owners of plain names that several backends list, or that the owner no longer lists.
    #[serde(default)]
    owners: Vec<SavedOwner>,
}

#[derive(Serialize, Deserialize)]
struct SavedOwner {
    list: String,
    name: String,
    backend: String,
}

#[derive(Serialize, Deserialize)]
struct SavedBackend {
    name: String,
    #[serde(default)]
    source: u64,
    views: Vec<SavedView>,
}

#[derive(Serialize, Deserialize)]
struct SavedView {
    revision: String,
    caps: String,
    capabilities: Box<RawValue>,
    info: Box<RawValue>,
    instructions: Option<String>,
    tools: Vec<Box<RawValue>>,
    prompts: Vec<Box<RawValue>>,
    resources: Vec<Box<RawValue>>,
    templates: Vec<Box<RawValue>>,
}

/// Serializes the catalog. Private backends are omitted.
#[must_use]
pub fn write(catalog: &Catalog) -> Vec<u8> {
    let backends = catalog.backends().iter().filter(|entry| !entry.private).map(write_backend).collect();
    let owners = ListKind::ALL.into_iter().flat_map(|kind| write_owners(catalog, kind)).collect();
    serde_json::to_vec(&CatalogFile { version: VERSION, backends, owners }).unwrap_or_default()
}

/// Returns the owners that do not follow from the lists alone.
fn write_owners(catalog: &Catalog, kind: ListKind) -> impl Iterator<Item = SavedOwner> {
    let mut listed: HashMap<&str, usize> = HashMap::new();
    for entry in catalog.backends() {
        let names: HashSet<&str> = entry.listed_names(kind).collect();
        names.into_iter().for_each(|name| *listed.entry(name).or_default() += 1);
    }
    let claims = catalog.claims[kind as usize].iter();
    let private = |backend: &str| catalog.backends().iter().any(|entry| entry.private && *entry.name == *backend);
    let claims = claims.filter(move |(_, backend)| !private(backend));
    claims.filter(move |(name, _)| listed.get(name) != Some(&1)).map(move |(name, backend)| SavedOwner {
        list: kind.member().to_owned(),
        name: name.to_owned(),
        backend: backend.to_string(),
    })
}

/// Fills a catalog with the saved state of the backends it has.
///
/// # Errors
/// Returns an error if the saved bytes cannot be used. The catalog is then unchanged.
pub fn read(catalog: &mut Catalog, bytes: &[u8]) -> Result<(), PersistError> {
    let damaged = |error: serde_json::Error| PersistError::Damaged(error.to_string());
    #[derive(Deserialize)]
    struct Head {
        version: u32,
    }
    let head: Head = serde_json::from_slice(bytes).map_err(damaged)?;
    if head.version != VERSION {
        return Err(PersistError::Version(head.version));
    }
    let saved: CatalogFile = serde_json::from_slice(bytes).map_err(damaged)?;
    for owner in &saved.owners {
        let kind = ListKind::ALL.into_iter().find(|kind| kind.member() == owner.list);
        let backend =
            catalog.backends.iter().find(|entry| *entry.name == *owner.backend).map(|entry| Arc::clone(&entry.name));
        if let (Some(kind), Some(backend)) = (kind, backend) {
            catalog.claims[kind as usize].give(&owner.name, &backend);
        }
    }
    // The file may be older than the backend's credentials per user. Its lists belong to none of the principals.
    let private: Vec<Arc<str>> =
        catalog.backends.iter().filter(|entry| entry.private).map(|entry| Arc::clone(&entry.name)).collect();
    for backend in saved.backends.into_iter().filter(|saved| !private.iter().any(|name| **name == *saved.name)) {
        catalog.set_source(&backend.name, backend.source);
        for view in backend.views {
            if let Some((key, view)) = read_view(view) {
                catalog.set_view(&backend.name, key, view);
            }
        }
    }
    catalog.settle();
    Ok(())
}

fn write_backend(entry: &BackendEntry) -> SavedBackend {
    let views = entry.views.iter().filter_map(|(key, view)| write_view(key, view)).collect();
    SavedBackend { name: entry.name.to_string(), source: entry.source, views }
}

/// Saves lists as the backend sent them. The next run inspects them by its own settings.
fn write_view(key: &ViewKey, view: &View) -> Option<SavedView> {
    let view = view.sent();
    let list = |kind: ListKind| view.list(kind).iter().filter_map(|item| raw(&item.raw)).collect();
    Some(SavedView {
        revision: view.profile.revision.as_str().to_owned(),
        caps: key.caps.as_json().to_owned(),
        capabilities: raw(&view.profile.capabilities)?,
        info: raw(&view.profile.info)?,
        instructions: view.profile.instructions.clone(),
        tools: list(ListKind::Tools),
        prompts: list(ListKind::Prompts),
        resources: list(ListKind::Resources),
        templates: list(ListKind::Templates),
    })
}

fn raw(bytes: &Bytes) -> Option<Box<RawValue>> {
    serde_json::from_slice(bytes).ok()
}

fn read_view(saved: SavedView) -> Option<(ViewKey, View)> {
    let revision = Revision::parse(&saved.revision)?;
    let bytes = |value: &RawValue| Bytes::copy_from_slice(value.get().as_bytes());
    let profile = ServerProfile {
        revision,
        capabilities: bytes(&saved.capabilities),
        info: bytes(&saved.info),
        instructions: saved.instructions,
    };
    let mut view = View::empty(Arc::new(profile));
    let lists = [
        (ListKind::Tools, saved.tools),
        (ListKind::Prompts, saved.prompts),
        (ListKind::Resources, saved.resources),
        (ListKind::Templates, saved.templates),
    ];
    for (kind, list) in lists {
        view.set(kind, list.iter().filter_map(|one| Item::read(kind, bytes(one)).ok()).collect());
    }
    Some((ViewKey::shared(revision.era(), CapSet::from_text(&saved.caps)), view))
}
