//! Warnings about patterns of backends, tools and roles that match nothing, and therefore protect nothing.
//!
//! Backends and roles are known from the configuration. The entries of a backend are known once it has listed them;
//! until then patterns of its entries raise no warning.

use crate::assemble::{self, DEMO};
use signalbox_config::{Config, MemberConfig};
use signalbox_engine::catalog::{BackendEntry, EntryRef, ListKind, Snapshot};
use signalbox_engine::chain::{EntryNames, EntryPattern};
use signalbox_relay::BACKEND as RELAY;
use signalbox_wire::closest::closest;
use signalbox_wire::glob::{Wildcards, fits};

/// Roles that API routes require, with or without an entry under `roles`.
const API_ROLES: [&str; 2] = ["admin", "approver"];

/// Lists whose entries a pattern can match.
type Lists = &'static [ListKind];
const TOOLS: Lists = &[ListKind::Tools];
const ALL: Lists = &ListKind::ALL;

/// Returns a warning for every pattern and role name of `config` that matches nothing, with the closest existing name.
#[must_use]
pub fn unmatched(config: &Config, catalog: &Snapshot) -> Vec<String> {
    let known = KnownEntries::new(config, catalog);
    let mut out: Vec<String> = patterns(config)
        .into_iter()
        .filter_map(|(place, pattern, lists)| Some(format!("{place}: {}", known.doubt(pattern, lists)?)))
        .collect();
    out.extend(unknown_roles(config));
    out
}

/// Returns a warning if a switch's pattern matches nothing.
#[must_use]
pub fn unmatched_switch(config: &Config, catalog: &Snapshot, pattern: &str) -> Option<String> {
    KnownEntries::new(config, catalog).doubt(pattern, ALL)
}

/// Returns the patterns of a configuration, each with its place and the lists that it applies to.
fn patterns(config: &Config) -> Vec<(String, &str, Lists)> {
    fn under<'a>(place: &str, patterns: &'a [String]) -> impl Iterator<Item = (String, &'a str, Lists)> {
        patterns.iter().map(move |one| (place.to_owned(), one.as_str(), ALL)).collect::<Vec<_>>().into_iter()
    }
    let rules = &config.permissions;
    let mut all = Vec::new();
    for (name, role) in &rules.roles {
        all.extend(under(&format!("roles.{name}.allow"), &role.allow));
        all.extend(under(&format!("roles.{name}.deny"), &role.deny));
        all.extend(under(&format!("roles.{name}.ask"), &role.ask));
    }
    all.extend(under("kill_switch.tools", &rules.kill_switch.tools));
    all.extend(under("kill_switch.backends", &rules.kill_switch.backends));
    all.extend(under("kill_switch.quarantine", &rules.kill_switch.quarantine));
    if let Some(point) = &rules.decision_point {
        all.extend(under("permissions.decision_point.entries", &point.entries));
    }
    for (scope, entries) in &config.auth.scopes {
        all.extend(under(&format!("auth.scopes.{scope:?}"), entries));
    }
    let limits = config.rate_limits.tools.iter().map(|rule| ("limits", &rule.pattern));
    let constraints = rules.constraints.iter().map(|rule| ("constraints", &rule.pattern));
    let labels = config.tool_labels.iter().map(|rule| ("tools", &rule.pattern));
    let tables = limits.chain(constraints).chain(labels);
    all.extend(tables.map(|(table, pattern)| (format!("{table}.{pattern:?}"), pattern.as_str(), TOOLS)));
    all
}

/// Known backends and their listed entries.
struct KnownEntries<'a> {
    config: &'a Config,
    backends: Vec<&'a str>,
    catalog: &'a Snapshot,
}

impl<'a> KnownEntries<'a> {
    fn new(config: &'a Config, catalog: &'a Snapshot) -> Self {
        let configured = config.backends.iter().map(|backend| backend.name.as_str());
        let demo = assemble::uses_demo(config).then_some(DEMO);
        let relay = config.relay.is_some().then_some(RELAY);
        Self { config, backends: configured.chain(demo).chain(relay).collect(), catalog }
    }

    /// Returns the warning for a pattern that matches nothing, or `None`.
    fn doubt(&self, pattern: &str, lists: Lists) -> Option<String> {
        let parsed = EntryPattern::new(pattern);
        let (backend, name) = pattern.split_once('/').unwrap_or((pattern, "*"));
        let meant: Vec<&str> = self.backends.iter().copied().filter(|one| parsed.fits_backend(one)).collect();
        if meant.is_empty() {
            return Some(format!("no backend is called `{backend}`{}", did_you_mean(self.other_backend(pattern))));
        }
        // A resource can be read without being listed.
        if parsed.is_whole_backend() || name.contains(':') {
            return None;
        }
        let mut listed = Vec::new();
        for backend in meant {
            let entry = self.listed(backend)?;
            if self.excludes(backend, name) || entries(entry, lists).any(|one| parsed.touches(&EntryNames::of(&one))) {
                return None;
            }
            listed.extend(entries(entry, lists));
        }
        let names: Vec<&str> = listed.iter().map(|one| one.name).collect();
        let meant = closest(name, &names).and_then(|name| listed.iter().find(|one| one.name == name));
        let meant = meant.map(|one| format!("{}/{}", one.backend, one.name));
        let what = if lists == TOOLS { "tool" } else { "tool, prompt or resource" };
        Some(format!("no {what} that is listed fits `{pattern}`{}", did_you_mean(meant)))
    }

    /// Suggests a replacement for a pattern whose backend does not exist: a tool name without its backend, a qualified
    /// name, or a misspelt backend.
    fn other_backend(&self, pattern: &str) -> Option<String> {
        if !pattern.contains('/') {
            if let Some((backend, tool)) = ListKind::Tools.style().divide(pattern)
                && self.backends.contains(&backend)
            {
                return Some(format!("{backend}/{tool}"));
            }
            let owner = self.catalog.backends().iter().find(|one| entries(one, ALL).any(|entry| entry.name == pattern));
            if let Some(owner) = owner {
                return Some(format!("{}/{pattern}", owner.name));
            }
        }
        let (backend, rest) = pattern.split_at(pattern.find('/').unwrap_or(pattern.len()));
        closest(backend, &self.backends).map(|known| format!("{known}{rest}"))
    }

    /// Returns the lists of a backend. `None` while they are unknown, or if they depend on the caller.
    fn listed(&self, backend: &str) -> Option<&'a BackendEntry> {
        let entry = self.catalog.backends().iter().find(|entry| *entry.name == *backend)?;
        Some(entry).filter(|entry| !entry.views.is_empty() && !entry.private && !entry.apart)
    }

    /// Returns `true` for a tool that the configuration excludes from the lists.
    fn excludes(&self, backend: &str, name: &str) -> bool {
        let configured = self.config.backends.iter().find(|one| one.name == backend);
        configured
            .is_some_and(|one| one.tools.exclude.iter().any(|pattern| fits(pattern, name, Wildcards::StarAndQuestion)))
    }
}

fn entries<'a>(entry: &'a BackendEntry, lists: Lists) -> impl Iterator<Item = EntryRef<'a>> {
    let of = move |kind: ListKind| {
        entry.views.values().flat_map(move |view| view.list(kind).iter().map(move |item| (kind, item)))
    };
    lists.iter().flat_map(move |kind| of(*kind)).map(|(kind, item)| EntryRef {
        kind,
        backend: &entry.name,
        name: &item.key,
        definition: None,
    })
}

/// Returns warnings about roles that users, groups, certificates and constraints name but that do not exist.
fn unknown_roles(config: &Config) -> Vec<String> {
    let (auth, rules) = (&config.auth, &config.permissions);
    let configured: Vec<&str> = rules.roles.iter().map(|(name, _)| name.as_str()).chain(API_ROLES).collect();
    let members = |table: &'static str, members: &'_ [(String, MemberConfig)]| -> Vec<(String, String)> {
        let of = |(name, member): &(String, MemberConfig)| {
            let place = format!("auth.{table}.{name:?}.roles");
            member.roles.iter().map(|role| (place.clone(), role.clone())).collect::<Vec<_>>()
        };
        members.iter().flat_map(of).collect()
    };
    let mut given = members("users", &auth.users);
    given.extend(members("groups", &auth.groups));
    for certificate in &auth.certificates {
        let place = format!("auth.certificates.{:?}.roles", certificate.principal);
        given.extend(certificate.roles.iter().map(|role| (place.clone(), role.clone())));
    }
    let mut out = Vec::new();
    // A configuration without roles of its own uses role names in policies and constraints alone.
    if !rules.roles.is_empty() {
        for (place, role) in given.iter().filter(|(_, role)| !configured.contains(&role.as_str())) {
            if !is_used(config, role) {
                out.push(format!("{place}: no role is called `{role}`{}", did_you_mean(closest(role, &configured))));
            }
        }
    }
    let known: Vec<&str> = configured.iter().copied().chain(given.iter().map(|(_, role)| role.as_str())).collect();
    for rule in &rules.constraints {
        for role in rule.roles.iter().filter(|role| !known.contains(&role.as_str())) {
            let meant = closest(role, &known);
            // Tokens can carry roles that the configuration does not name.
            if auth.issuers.is_empty() || meant.is_some() {
                let place = format!("constraints.{:?}.roles", rule.pattern);
                out.push(format!("{place}: no role is called `{role}`{}", did_you_mean(meant)));
            }
        }
    }
    out
}

/// Returns `true` for a role that a constraint or a policy refers to.
fn is_used(config: &Config, role: &str) -> bool {
    let rules = &config.permissions;
    let quoted = format!("\"{role}\"");
    let in_policy = || rules.policies.iter().flat_map(|folder| &folder.files).any(|(_, text)| text.contains(&quoted));
    rules.constraints.iter().any(|rule| rule.roles.iter().any(|one| one == role)) || in_policy()
}

fn did_you_mean(name: Option<impl std::fmt::Display>) -> String {
    name.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_config::Overrides;
    use signalbox_engine::catalog::{Catalog, Item, View, ViewKey};
    use signalbox_engine::{CapSet, ServerProfile};
    use signalbox_wire::{Era, Revision};
    use std::path::Path;
    use std::sync::Arc;

    fn config(text: &str) -> Config {
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        let text = format!("[backends.files]\ncommand = 'x'\n{text}");
        Config::parse(Path::new("signalbox.toml"), &text, &env, &Overrides::default()).unwrap().config
    }

    /// The backend `files`, which has listed these tools.
    fn listed(tools: &[&str]) -> Snapshot {
        let mut catalog = Catalog::new([Arc::from("files")]);
        let profile = ServerProfile {
            revision: Revision::LATEST_LEGACY,
            capabilities: r#"{"tools":{}}"#.into(),
            info: r#"{"name":"t","version":"1"}"#.into(),
            instructions: None,
        };
        let mut view = View::empty(Arc::new(profile));
        let item = |name: &&str| Item::read(ListKind::Tools, format!(r#"{{"name":"{name}"}}"#).into()).unwrap();
        view.set(ListKind::Tools, tools.iter().map(item).collect());
        catalog.set_view("files", ViewKey::shared(Era::Legacy, CapSet::bare()), view);
        catalog.snapshot()
    }

    const TYPOS: &str = "[roles.editor]\nallow = ['files', 'flies/*']\ndeny = ['delete']\nask = ['files__delete']\n\
                         [limits.'file']\nprice = 1\n[constraints.'nosuch/x']\nroles = ['edtior']\n\
                         [kill_switch]\nbackends = ['filse']\n[auth.users.ada]\nroles = ['editr', 'admin']\n";

    #[test]
    fn backends_and_roles_that_do_not_exist_are_told_before_anything_is_listed() {
        let unlisted = Catalog::new([Arc::from("files")]).snapshot();
        let told = unmatched(&config(TYPOS), &unlisted);
        let expected = [
            "roles.editor.allow: no backend is called `flies`; did you mean `files/*`?",
            "roles.editor.deny: no backend is called `delete`",
            "roles.editor.ask: no backend is called `files__delete`; did you mean `files/delete`?",
            "kill_switch.backends: no backend is called `filse`; did you mean `files`?",
            "limits.\"file\": no backend is called `file`; did you mean `files`?",
            "constraints.\"nosuch/x\": no backend is called `nosuch`",
            "auth.users.\"ada\".roles: no role is called `editr`; did you mean `editor`?",
            "constraints.\"nosuch/x\".roles: no role is called `edtior`; did you mean `editor`?",
        ];
        assert_eq!(told, expected);
    }

    /// A permission on a tool that does not exist protects nothing.
    /// Proves G-17.
    #[test]
    fn tools_that_do_not_exist_are_told_once_they_are_listed() {
        let text = "[tools.'files/read']\n[tools.'files/raed']\n[tools.flies]\n[limits.'files/wipe_*']\nprice = 1\n\
                    [roles.editor]\nallow = ['*']\ndeny = ['read', 'files/file:///x', '*/reed']\n";
        let config = config(text);
        let unlisted = Catalog::new([Arc::from("files")]).snapshot();
        assert_eq!(unmatched(&config, &unlisted).len(), 2, "{:?}", unmatched(&config, &unlisted));
        let expected = [
            "roles.editor.deny: no backend is called `read`; did you mean `files/read`?",
            "roles.editor.deny: no tool, prompt or resource that is listed fits `*/reed`; did you mean `files/read`?",
            "limits.\"files/wipe_*\": no tool that is listed fits `files/wipe_*`",
            "tools.\"files/raed\": no tool that is listed fits `files/raed`; did you mean `files/read`?",
            "tools.\"flies\": no backend is called `flies`; did you mean `files`?",
        ];
        assert_eq!(unmatched(&config, &listed(&["read"])), expected);
    }

    #[test]
    fn patterns_that_match_are_no_warnings() {
        let text = "[tools.'files/re*']\n[limits.files]\nprice = 1\n[roles.editor]\nallow = ['*', 'f*/read']\n\
                    [auth.users.ada]\nroles = ['editor']\n[constraints.'*/read']\nroles = ['editor']\n";
        assert!(unmatched(&config(text), &listed(&["read"])).is_empty());
        let hidden = "tools = { exclude = ['drop_*'] }\n[roles.editor]\ndeny = ['files/drop_all']\n";
        assert!(unmatched(&config(hidden), &listed(&["read"])).is_empty());
    }

    #[test]
    fn a_switch_that_means_nothing_is_told() {
        let (config, catalog) = (config(""), listed(&["read"]));
        assert_eq!(unmatched_switch(&config, &catalog, "files/read"), None);
        let told = unmatched_switch(&config, &catalog, "nosuch/thing").unwrap();
        assert_eq!(told, "no backend is called `nosuch`");
    }
}
