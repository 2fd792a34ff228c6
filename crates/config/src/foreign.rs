//! Reads clients' own files: `{"mcpServers": {…}}` as most have it, `{"servers": {…}}` as VS Code does,
//! `{"context_servers": {…}}` as Zed does, and Codex's `[mcp_servers.NAME]`.
//!
//! The files are used as they are. Keys that Signalbox has no setting for are skipped with a warning, because every
//! client adds keys of its own. Values that would make a server behave differently are refused.

use std::collections::HashSet;
use std::time::Duration;

use super::backend::{self, BackendConfig, COMMAND_KEYS, MAX_NAME, URL_KEYS};
use super::client_keys::own_keys;
use super::error::{self, ConfigError, Note, Problem, Warning};
use super::path::KeyPath;
use super::raw::{Node, RawEntry, Value};
use super::read::{Document, Table};

/// Keys under which a list of servers stands. The first one found is used.
pub(super) const LISTS: [&str; 4] = ["mcpServers", "servers", "context_servers", "mcp_servers"];

/// Key under which a client keeps its projects, each with a list of its own.
pub(super) const PROJECTS: &str = "projects";

/// Server of a client's file, reduced to the keys that Signalbox reads.
#[derive(Clone)]
pub(crate) struct ForeignServer {
    /// Name of the backend in Signalbox.
    pub(crate) name: String,
    /// Name in the client's file.
    pub(crate) original: String,
    path: KeyPath,
    at: usize,
    node: Node,
    kind: Option<(String, usize)>,
}

impl ForeignServer {
    /// Returns the offset of its name in the file.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Returns its key in the file.
    pub(crate) fn path(&self) -> &KeyPath {
        &self.path
    }

    /// Rewrites the texts of all values with `change`.
    pub(crate) fn map_texts(&mut self, change: &mut dyn FnMut(&str, usize) -> Option<String>) {
        map_texts(&mut self.node, change);
    }

    /// Returns the entries that Signalbox reads.
    pub(crate) fn entries(&self) -> &[RawEntry] {
        match &self.node.value {
            Value::Table(entries) => entries,
            _ => &[],
        }
    }
}

fn map_texts(node: &mut Node, change: &mut dyn FnMut(&str, usize) -> Option<String>) {
    match &mut node.value {
        Value::Text(text) => {
            if let Some(other) = change(text, node.at) {
                *text = other;
            }
        }
        Value::List(items) => items.iter_mut().for_each(|item| map_texts(item, change)),
        Value::Table(entries) => entries.iter_mut().for_each(|entry| map_texts(&mut entry.node, change)),
        _ => {}
    }
}

/// Returns the servers of a file.
pub(super) fn servers(
    document: &Document<'_>,
    root: &Node,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<ForeignServer>, ConfigError> {
    let root = Table::root(document, root)?;
    let mut lists = Vec::new();
    if let Some(list) = LISTS.iter().find_map(|key| root.entry(key)) {
        let path = KeyPath::root().child(&list.key);
        lists.push(Table::new(document, &list.node, path.clone(), path, list.key_at)?);
    }
    let own = lists.len();
    lists.extend(of_projects(&root));
    if lists.is_empty() {
        return Err(root.error(Problem::NoServers));
    }
    let read: Vec<&str> = lists.iter().filter_map(|list| list.path.segments().first().map(String::as_str)).collect();
    note_others(&root, &read, warnings);
    let valid = lists.iter().take(own).flat_map(|list| list.entries).filter(|entry| backend::is_name(&entry.key));
    let mut taken: HashSet<String> = valid.map(|entry| entry.key.clone()).collect();
    let mut servers = Vec::new();
    for (number, list) in lists.iter().enumerate() {
        for entry in list.entries {
            // Several projects often have the same server.
            let known = lists.iter().take(number).flat_map(|list| list.entries);
            if known.filter(|other| other.key == entry.key).any(|other| other.node.value.is_like(&entry.node.value)) {
                continue;
            }
            servers.push(server(list, entry, number >= own, &mut taken, warnings)?);
        }
    }
    Ok(servers)
}

/// Returns the non-empty lists of a client's projects.
fn of_projects<'a>(root: &Table<'a>) -> Vec<Table<'a>> {
    let Some(Ok(projects)) = root.entry(PROJECTS).map(|entry| root.inside(entry)) else { return Vec::new() };
    let lists = projects.entries.iter().filter_map(|project| {
        let project = projects.inside(project).ok()?;
        let list = LISTS.iter().find_map(|key| project.entry(key))?;
        project.inside(list).ok().filter(|list| !list.entries.is_empty())
    });
    lists.collect()
}

/// Checks one server, as far as the environment allows.
pub(crate) fn check(
    document: &Document<'_>,
    server: &ForeignServer,
    call_timeout: Duration,
    warnings: &mut Vec<Warning>,
) -> Result<BackendConfig, ConfigError> {
    let known_as = KeyPath::root().child("backends").child(&server.name);
    let table = Table::new(document, &server.node, server.path.clone(), known_as, server.at)?;
    table.check_keys()?;
    if let Some((kind, at)) = &server.kind {
        let error = |problem| Err(document.error(&server.path.child("type"), *at, problem));
        let (needs, other) = if kind == "stdio" { ("command", "url") } else { ("url", "command") };
        if table.has(other) && !table.has(needs) {
            return error(Problem::TypeMismatch { kind: kind.clone(), needs });
        }
    }
    backend::check(&server.name, &table, call_timeout, warnings)
}

fn note_others(root: &Table<'_>, read: &[&str], warnings: &mut Vec<Warning>) {
    const SHOWN: usize = 5;
    let others: Vec<&RawEntry> = root.entries.iter().filter(|entry| !read.contains(&entry.key.as_str())).collect();
    let Some(first) = others.first() else {
        return;
    };
    let mut names: Vec<String> =
        others.iter().take(SHOWN).map(|entry| format!("`{}`", error::shown(&entry.key))).collect();
    if others.len() > SHOWN {
        names.push("…".to_owned());
    }
    warnings.push(Warning {
        place: root.document.place(&KeyPath::root(), first.key_at),
        note: Note::IgnoredTopLevel { count: others.len(), names: names.join(", ") },
    });
}

fn server<'a>(
    list: &Table<'a>,
    entry: &'a RawEntry,
    of_project: bool,
    taken: &mut HashSet<String>,
    warnings: &mut Vec<Warning>,
) -> Result<ForeignServer, ConfigError> {
    let table = list.inside(entry)?;
    let mut warn = |path: &KeyPath, at, note| {
        let place = list.document.place(path, at);
        warnings.push(Warning { place, note });
    };
    // The servers of the first list keep their names.
    let free = !of_project || !taken.contains(&entry.key);
    let name = if backend::is_name(&entry.key) && free {
        taken.insert(entry.key.clone());
        entry.key.clone()
    } else {
        let name = valid_name(&entry.key, taken);
        let note = if free { Note::Renamed } else { Note::NameTaken };
        warn(&table.path, entry.key_at, note(name.clone()));
        taken.insert(name.clone());
        name
    };
    let own = own_keys(table.entries, |entry, note| warn(&table.path.child(&entry.key), entry.key_at, note));
    let has = |key: &str| own.iter().any(|entry| entry.key == key);
    let (has_command, has_url) = (has("command"), has("url"));
    let mut kept: Vec<RawEntry> = Vec::new();
    for entry in &own {
        let key = entry.key.as_str();
        let path = table.path.child(key);
        if has_url && !has_command && COMMAND_KEYS.contains(&key) {
            warn(&path, entry.key_at, Note::IgnoredMisplaced("command"));
        } else if has_command && !has_url && URL_KEYS.contains(&key) {
            warn(&path, entry.key_at, Note::IgnoredMisplaced("url"));
        } else {
            kept.push(without_set_headers(entry, |header_at, header| {
                warn(&path.child(header), header_at, Note::IgnoredHeader);
            }));
        }
    }
    switch_off_if_not_enabled(&table, &mut kept)?;
    let kind = kind(&table)?;
    if let Some((kind, at)) = kind.as_ref().filter(|_| has_url && !has_command) {
        name_transport(kind, *at, &mut kept);
    }
    Ok(ForeignServer {
        name,
        original: entry.key.clone(),
        path: table.path.clone(),
        at: entry.key_at,
        kind,
        node: Node { value: Value::Table(kept), at: entry.node.at },
    })
}

/// Drops headers that the HTTP transport sets anyway and that clients' files often spell out. Any other value of them
/// would be wrong.
fn without_set_headers(entry: &RawEntry, mut dropped: impl FnMut(usize, &str)) -> RawEntry {
    let mut entry = entry.clone();
    if let (true, Value::Table(headers)) = (entry.key == "headers", &mut entry.node.value) {
        headers.retain(|header| {
            let is_set = ["accept", "content-type"].iter().any(|name| header.key.eq_ignore_ascii_case(name));
            if is_set {
                dropped(header.key_at, &header.key);
            }
            !is_set
        });
    }
    entry
}

/// Reads `"enabled": false`, which some clients write for `"disabled": true`. To skip it would start a server that the
/// user switched off.
fn switch_off_if_not_enabled(table: &Table<'_>, kept: &mut Vec<RawEntry>) -> Result<(), ConfigError> {
    let Some(entry) = table.entry("enabled") else {
        return Ok(());
    };
    match entry.node.value {
        Value::Bool(true) | Value::Null => Ok(()),
        Value::Bool(false) => {
            kept.retain(|other| other.key != "disabled");
            kept.push(RawEntry {
                key: "disabled".to_owned(),
                key_at: entry.key_at,
                node: Node { value: Value::Bool(true), at: entry.node.at },
            });
            Ok(())
        }
        _ => {
            let (expected, found) = ("`true` or `false`".to_owned(), entry.node.value.kind());
            let problem = Problem::WrongType { expected, found };
            Err(table.document.error(&table.path.child("enabled"), entry.node.at, problem))
        }
    }
}

/// Adds our word for the transport beside the address.
fn name_transport(kind: &str, at: usize, kept: &mut Vec<RawEntry>) {
    let word = match kind {
        "sse" => "sse",
        "http" | "streamable-http" => "http",
        _ => return,
    };
    let entry =
        RawEntry { key: "transport".to_owned(), key_at: at, node: Node { value: Value::Text(word.to_owned()), at } };
    let place = kept.iter().position(|other| other.key == "url").map_or(kept.len(), |url| url + 1);
    kept.insert(place, entry);
}

/// Returns the `type` of an entry in our spelling, with its offset.
fn kind(table: &Table<'_>) -> Result<Option<(String, usize)>, ConfigError> {
    const KINDS: [&str; 5] = ["stdio", "http", "streamable-http", "sse", "ws"];
    let Some(entry) = table.entry("type") else {
        return Ok(None);
    };
    let error = |problem| Err(table.document.error(&table.path.child("type"), entry.node.at, problem));
    match &entry.node.value {
        Value::Null => Ok(None),
        Value::Text(kind) => {
            let plain = match kind.as_str() {
                "streamableHttp" => "streamable-http",
                "websocket" => "ws",
                kind => kind,
            };
            if KINDS.contains(&plain) {
                return Ok(Some((plain.to_owned(), entry.node.at)));
            }
            error(Problem::BadValue { expected: error::list(&KINDS), found: error::shown(kind) })
        }
        other => error(Problem::WrongType { expected: error::list(&KINDS), found: other.kind() }),
    }
}

/// Returns a usable name that resembles the one in the file and is not taken.
fn valid_name(name: &str, taken: &HashSet<String>) -> String {
    let mut valid = String::new();
    for c in name.trim().chars() {
        let c = if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-') { c } else { '-' };
        let repeated = matches!(c, '_' | '-') && valid.ends_with(c);
        if !repeated && valid.len() < MAX_NAME {
            valid.push(c);
        }
    }
    let mut valid = valid.trim_matches(['-', '_']).to_owned();
    if !backend::is_name(&valid) {
        valid = "server".to_owned();
    }
    let numbered = |number: usize| {
        let suffix = format!("-{number}");
        let stem: String = valid.chars().take(MAX_NAME - suffix.len()).collect();
        format!("{stem}{suffix}")
    };
    let numbers = (2..=taken.len() + 2).map(numbered);
    let mut candidates = std::iter::once(valid.clone()).chain(numbers);
    candidates.find(|candidate| !taken.contains(candidate)).unwrap_or(valid.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_valid() {
        let taken: HashSet<String> = ["my-server".to_owned()].into();
        for (name, expected) in [
            ("a b", "a-b"),
            ("my server", "my-server-2"),
            ("@scope/name+x", "scope-name-x"),
            ("a__b", "a_b"),
            ("", "server"),
            ("..", "server"),
            ("日本", "server"),
            ("tail_", "tail"),
        ] {
            assert_eq!(valid_name(name, &taken), expected, "{name}");
        }
        assert_eq!(valid_name(&"é b".repeat(40), &taken), "b-b-b-b-b-b-b-b-b-b-b-b-b-b-b-b");
        assert!(backend::is_name(&valid_name(&"x".repeat(99), &["x".repeat(32)].into())));
    }
}
