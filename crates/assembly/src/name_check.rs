//! Names in a configuration that nothing has, and names that several backends have.

use crate::assemble::{self, DEMO};
use signalbox_config::Config;
use signalbox_engine::catalog::{BackendEntry, Catalog, Item, ListKind, Snapshot, read_saved};
use signalbox_engine::chain::SubjectPattern;
use signalbox_govern::policy::{KnownTool, check};
use signalbox_rules::KnownNames;
use signalbox_runtime::Gateway;
use signalbox_wire::glob::{Wildcards, fits};
use signalbox_wire::printable;
use std::collections::HashSet;
use std::sync::Arc;

/// Most collisions that are shown one by one.
const MOST_COLLISIONS: usize = 20;

/// The lists that were kept at the end of an earlier run with this data folder; empty ones where there was none.
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

/// Backends and tools that rules and filters name although nothing has them, as far as the lists are known.
#[must_use]
pub fn unknown_names(config: &Config, catalog: &Snapshot) -> Vec<String> {
    let mut out: Vec<String> =
        config.rules.set.unknown_names(&known(config, catalog)).iter().map(ToString::to_string).collect();
    for backend in config.backends.iter().filter(|backend| !backend.disabled) {
        let Some(entry) = catalog.backends().iter().find(|entry| *entry.name == *backend.name) else { continue };
        if entry.views.is_empty() {
            continue;
        }
        // What `exclude` names is in no list any more, so only `include` can be held against one.
        for pattern in &backend.tools.include {
            if !own_tools(entry).any(|tool| fits(pattern, tool, Wildcards::StarAndQuestion)) {
                out.push(format!("backends.{}.tools.include: it has listed no tool `{pattern}`", backend.name));
            }
        }
    }
    out.extend(idle_labels(config, catalog));
    out
}

/// Labels that no tool gets, once all lists are known.
fn idle_labels(config: &Config, catalog: &Snapshot) -> Vec<String> {
    if !catalog.backends().iter().all(|entry| !entry.views.is_empty()) {
        return Vec::new();
    }
    let fits = |pattern: &SubjectPattern| {
        let has = |entry: &BackendEntry| own_tools(entry).any(|tool| pattern.fits_tool(&entry.name, tool));
        catalog.backends().iter().any(has)
    };
    let idle = config.tool_labels.iter().filter(|rule| !fits(&SubjectPattern::new(&rule.pattern)));
    idle.map(|rule| format!("tools.{:?}: no tool that is listed fits this pattern", rule.pattern)).collect()
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

/// Tools and arguments that policies name although nothing has them, as far as the lists are known.
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

/// Entries that clients see under a qualified name because another backend has the plain one, one sentence for each.
#[must_use]
pub fn collisions(catalog: &Snapshot) -> Vec<String> {
    let mut all: Vec<String> = catalog
        .collisions()
        .map(|(kind, backend, name)| {
            let shown = kind.style().qualify(backend, name);
            format!(
                "`{name}` of backend `{backend}` is called `{shown}`: another backend had that name first ({})",
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

/// Logs every name that several backends have, when it first shows, until the gateway is gone. Needs a runtime.
pub fn follow(gateway: &Arc<Gateway>) {
    let (mut changes, gateway) = (gateway.catalog.follow(), Arc::downgrade(gateway));
    tokio::spawn(async move {
        let mut told: HashSet<String> = HashSet::new();
        loop {
            let Some(catalog) = gateway.upgrade().map(|gateway| Arc::clone(&gateway.catalog.snapshot())) else {
                return;
            };
            let now = collisions(&catalog);
            for collision in now.iter().filter(|collision| !told.contains(*collision)) {
                tracing::warn!("{}", printable::one_line(collision));
            }
            told = now.into_iter().collect();
            if changes.changed().await.is_err() {
                return;
            }
        }
    });
}

/// Everything that is odd about the names of a configuration.
#[must_use]
pub fn warnings(config: &Config, catalog: &Snapshot) -> Vec<String> {
    let mut all: Vec<String> = config.rules.set.warnings().iter().map(ToString::to_string).collect();
    all.extend(unknown_names(config, catalog));
    all.extend(policy_doubts(config, catalog));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_config::Overrides;
    use signalbox_engine::catalog::{Item, View, ViewKey};
    use signalbox_engine::{CapSet, ServerProfile};
    use signalbox_wire::{Era, Revision};
    use std::path::Path;

    /// A permission on a tool that nobody has protects nothing.
    #[test]
    fn g_17_a_label_that_no_tool_gets_is_told_once_the_lists_are_known() {
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        let text = "[backends.files]\ncommand = 'x'\n[tools.'files/read']\n[tools.'files/raed']\n[tools.flies]\n";
        let config = Config::parse(Path::new("signalbox.toml"), text, &env, &Overrides::default()).unwrap().config;
        let mut catalog = Catalog::new([Arc::from("files")]);
        assert!(unknown_names(&config, &catalog.snapshot()).is_empty());
        let profile = ServerProfile {
            revision: Revision::LATEST_LEGACY,
            capabilities: r#"{"tools":{}}"#.into(),
            info: r#"{"name":"t","version":"1"}"#.into(),
            instructions: None,
        };
        let mut view = View::empty(Arc::new(profile));
        view.set(ListKind::Tools, vec![Item::read(ListKind::Tools, r#"{"name":"read"}"#.into()).unwrap()]);
        catalog.set_view("files", ViewKey::shared(Era::Legacy, CapSet::bare()), view);
        let told = unknown_names(&config, &catalog.snapshot());
        let expected =
            ["files/raed", "flies"].map(|one| format!("tools.{one:?}: no tool that is listed fits this pattern"));
        assert_eq!(told, expected);
    }
}
