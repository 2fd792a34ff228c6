//! Warnings about configured names that match nothing, and about names that several backends use.

use crate::assemble::{self, DEMO};
use crate::pattern_check;
use crate::reload::Reloader;
use signalbox_config::Config;
use signalbox_engine::catalog::{BackendEntry, Catalog, Item, ListKind, Snapshot, read_saved};
use signalbox_govern::policy::{KnownTool, check};
use signalbox_rules::KnownNames;
use signalbox_wire::glob::{Wildcards, fits};
use signalbox_wire::printable;
use std::collections::HashSet;
use std::sync::Arc;

/// Maximum number of collisions that are listed one by one.
const MOST_COLLISIONS: usize = 20;

/// Returns the lists that an earlier run saved in this data folder, or empty ones.
#[must_use]
pub fn kept_catalog(config: &Config) -> Snapshot {
    let enabled = config.backends.iter().filter(|backend| !backend.disabled).map(|backend| backend.name.as_str());
    let demo = assemble::uses_demo(config).then_some(DEMO);
    let mut catalog = Catalog::new(enabled.chain(demo).map(Arc::from));
    let file = config.data_dir.join("catalog.json");
    if !file.is_symlink()
        && let Ok(bytes) = std::fs::read(&file)
        && let Err(error) = read_saved(&mut catalog, &bytes)
    {
        tracing::debug!(%error, "not using the lists of the last run");
    }
    catalog.snapshot()
}

/// Returns warnings about backends, tools and roles that rules, filters, permissions, limits and labels name but that
/// do not exist in the known lists.
#[must_use]
pub fn unknown_names(config: &Config, catalog: &Snapshot) -> Vec<String> {
    let mut out: Vec<String> =
        config.rules.set.unknown_names(&known(config, catalog)).iter().map(ToString::to_string).collect();
    for backend in config.backends.iter().filter(|backend| !backend.disabled) {
        let Some(entry) = catalog.backends().iter().find(|entry| *entry.name == *backend.name) else { continue };
        if entry.views.is_empty() {
            continue;
        }
        // Tools that `exclude` names are in no list, so only `include` can be checked against one.
        for pattern in &backend.tools.include {
            if !own_tools(entry).any(|tool| fits(pattern, tool, Wildcards::StarAndQuestion)) {
                out.push(format!("backends.{}.tools.include: it has listed no tool `{pattern}`", backend.name));
            }
        }
    }
    out.extend(pattern_check::unmatched(config, catalog));
    out
}

fn known(config: &Config, catalog: &Snapshot) -> KnownNames {
    let configured = config.backends.iter().map(|backend| backend.name.clone());
    let demo = assemble::uses_demo(config).then(|| DEMO.to_owned());
    let listed = catalog.backends().iter().all(|entry| !entry.views.is_empty());
    let names = |entry: &BackendEntry| -> Vec<String> {
        let qualified = |tool: &str| ListKind::Tools.style().qualify(&entry.name, tool);
        own_tools(entry).flat_map(|tool| [tool.to_owned(), qualified(tool)]).collect()
    };
    KnownNames {
        backends: configured.chain(demo).collect(),
        tools: listed.then(|| catalog.backends().iter().flat_map(names).collect()),
    }
}

/// Returns warnings about tools and arguments that policies name but that do not exist in the known lists.
#[must_use]
pub fn policy_doubts(config: &Config, catalog: &Snapshot) -> Vec<String> {
    let Some(folder) = &config.permissions.policies else { return Vec::new() };
    let known = |entry: &BackendEntry| -> Vec<KnownTool> {
        let tools = entry.views.values().flat_map(|view| &view.tools);
        let tool = |item: &Item| KnownTool {
            backend: entry.name.to_string(),
            name: item.key.to_string(),
            definition: item.raw.to_vec(),
        };
        tools.map(tool).collect()
    };
    let tools: Vec<KnownTool> = catalog.backends().iter().flat_map(known).collect();
    if tools.is_empty() {
        return Vec::new();
    }
    check::against_tools(folder.policies.rules(), &tools).iter().map(ToString::to_string).collect()
}

fn own_tools(entry: &BackendEntry) -> impl Iterator<Item = &str> {
    entry.views.values().flat_map(|view| &view.tools).map(|item| &*item.key)
}

/// Returns one sentence for each entry that has a qualified name because another backend has the plain one.
#[must_use]
pub fn collisions(catalog: &Snapshot) -> Vec<String> {
    let mut all: Vec<String> = catalog
        .collisions()
        .map(|(kind, backend, name)| {
            let shown = kind.style().qualify(backend, name);
            let owner = catalog.owner_of(kind, name);
            let other = owner.map_or_else(|| "another backend".to_owned(), |owner| format!("`{owner}`"));
            format!(
                "`{name}` of backend `{backend}` is called `{shown}`: {other} had that name first ({})",
                kind.member()
            )
        })
        .collect();
    all.sort();
    if all.len() > MOST_COLLISIONS {
        let more = all.len() - MOST_COLLISIONS;
        all.truncate(MOST_COLLISIONS);
        all.push(format!("and {more} more names that several backends have"));
    }
    all
}

/// Logs each collision and each unknown name when it first appears, until the process ends. Needs a runtime.
pub fn follow(reloader: &Arc<Reloader>) {
    let (mut changes, reloader) = (reloader.gateway().catalog.follow(), Arc::downgrade(reloader));
    tokio::spawn(async move {
        let mut told: HashSet<String> = HashSet::new();
        loop {
            let Some(now) = reloader.upgrade().map(|reloader| doubts(&reloader)) else {
                return;
            };
            for doubt in now.iter().filter(|doubt| !told.contains(*doubt)) {
                tracing::warn!("{}", printable::one_line(doubt));
            }
            told = now.into_iter().collect();
            if changes.changed().await.is_err() {
                return;
            }
        }
    });
}

/// Returns the warnings about names of a running process, checked against the lists of its backends.
#[must_use]
pub fn doubts(reloader: &Reloader) -> Vec<String> {
    let catalog = Arc::clone(&reloader.gateway().catalog.snapshot());
    let mut all = collisions(&catalog);
    all.extend(unknown_names(&reloader.current(), &catalog));
    all
}

/// Returns all warnings about rules, names and policies of a configuration.
#[must_use]
pub fn warnings(config: &Config, catalog: &Snapshot) -> Vec<String> {
    let mut all: Vec<String> = config.rules.set.warnings().iter().map(ToString::to_string).collect();
    all.extend(unknown_names(config, catalog));
    all.extend(policy_doubts(config, catalog));
    all
}
