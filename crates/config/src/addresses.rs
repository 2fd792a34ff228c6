//! The addresses of a remote server that has several of them.

use super::error::{ConfigError, Problem};
use super::keys::KeyKind;
use super::path::KeyPath;
use super::raw::{RawEntry, Value};
use super::read::{Table, Text};
use super::values::address;
use http::uri::Uri;
use signalbox_engine::balance::Balance;
use signalbox_wire::closest::closest;
use std::fmt;

/// Addresses of a remote server and the rule that picks one for each connection.
#[derive(Clone, PartialEq, Default)]
pub struct Addresses {
    /// Addresses with their weights. Empty if the server has only the address of its target.
    pub all: Vec<(Uri, u32)>,
    /// Rule by which one of them is picked.
    pub balance: Balance,
}

impl fmt::Debug for Addresses {
    /// Prints only the authorities, because paths and queries may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts = self.all.iter().map(|(url, weight)| (url.authority().map(http::uri::Authority::as_str), weight));
        f.debug_struct("Addresses").field("all", &hosts.collect::<Vec<_>>()).field("balance", &self.balance).finish()
    }
}

/// Reads the addresses in a backend's table, `url` before `urls`. The first one is the backend's target.
pub(super) fn addresses(table: &Table<'_>) -> Result<Addresses, ConfigError> {
    let balance = Balance::of(&table.choice("balance")?).unwrap_or_default();
    if !table.has("urls") {
        let one = Addresses::default();
        return if table.has("balance") {
            Err(table.key_error("balance", Problem::Misplaced("urls")))
        } else {
            Ok(one)
        };
    }
    let mut all = Vec::new();
    if let Some(text) = table.text("url")? {
        all.push((address(table, &text)?, 1));
    }
    let mut weighted = false;
    let nodes = match table.entry("urls").map(|entry| &entry.node.value) {
        Some(Value::List(nodes)) => nodes.as_slice(),
        _ => &[],
    };
    for (index, node) in nodes.iter().enumerate() {
        let path = table.path.child("urls").item(index);
        if let Value::Table(entries) = &node.value {
            let (text, weight) = with_weight(table, &path, node.at, entries)?;
            weighted |= weight.is_some();
            all.push((address(table, &text)?, weight.unwrap_or(1)));
        } else {
            let text = table.text_at(node, path, KeyKind::Text(""))?;
            all.push((address(table, &text)?, 1));
        }
    }
    let bad = |problem| Err(table.key_error("urls", problem));
    if all.is_empty() || all.len() > MAX_ADDRESSES {
        return bad(Problem::BadHiddenValue("1 to 64 addresses"));
    }
    if weighted && balance != Balance::Weighted {
        return bad(Problem::BadHiddenValue("weights only with `balance = \"weighted\"`"));
    }
    if all.iter().any(|(url, _)| is_socket(url)) && !all.iter().all(|(url, _)| is_socket(url)) {
        return bad(Problem::BadHiddenValue("addresses of one kind: all HTTP, or all WebSocket"));
    }
    Ok(Addresses { all, balance })
}

/// Reads an address and its weight from a table in the list.
fn with_weight<'a>(
    table: &Table<'a>,
    path: &KeyPath,
    at: usize,
    entries: &'a [RawEntry],
) -> Result<(Text<'a>, Option<u32>), ConfigError> {
    const KNOWN: [&str; 2] = ["url", "weight"];
    let (mut url, mut weight) = (None, None);
    for entry in entries {
        let error = |problem| Err(table.document.error(path, entry.key_at, problem));
        match (entry.key.as_str(), &entry.node.value) {
            ("url", _) => url = Some(table.text_at(&entry.node, path.clone(), KeyKind::Text(""))?),
            ("weight", Value::Integer(number)) if (1..=MAX_WEIGHT).contains(number) => {
                weight = u32::try_from(*number).ok()
            }
            ("weight", _) => return error(Problem::BadHiddenValue("a `weight` from 1 to 1000")),
            (key, _) => {
                let suggestion = closest(key, &KNOWN);
                return error(Problem::UnknownKey { suggestion, known: KNOWN.to_vec() });
            }
        }
    }
    match url {
        Some(url) => Ok((url, weight)),
        None => Err(table.document.error(path, at, Problem::BadHiddenValue("a `url`"))),
    }
}

/// Largest weight that an address may have.
const MAX_WEIGHT: i128 = 1_000;
/// Maximum number of addresses per backend.
const MAX_ADDRESSES: usize = 64;

fn is_socket(url: &Uri) -> bool {
    url.scheme_str().is_some_and(|scheme| scheme.to_ascii_lowercase().starts_with("ws"))
}
