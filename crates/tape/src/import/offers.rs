//! Description and lists of the server of a conversation, gathered from its answers.

use crate::seen;
use bytes::Bytes;
use signalbox_engine::record::BackendOffer;
use signalbox_wire::{json, meta, method};
use std::sync::Arc;

/// Lists of a server: the method that requests each, and the member of the answer that holds it.
const LISTS: [(&str, &str); 4] = [
    (method::TOOLS_LIST, "tools"),
    (method::PROMPTS_LIST, "prompts"),
    (method::RESOURCES_LIST, "resources"),
    (method::RESOURCES_TEMPLATES_LIST, "resourceTemplates"),
];

/// Facts gathered so far about a server.
#[derive(Default)]
pub(super) struct Offers {
    pub(super) revision: Option<String>,
    server: Option<Bytes>,
    capabilities: Option<Bytes>,
    instructions: Option<Bytes>,
    lists: [Option<Vec<Bytes>>; 4],
    hash: String,
}

impl Offers {
    /// Creates offers of which only the revision is known, if that.
    pub(super) fn of_revision(revision: Option<String>) -> Self {
        Self { revision, ..Self::default() }
    }

    /// Evaluates an answer to this method; `continued` marks a further page of a list. Returns true if the facts about
    /// the server may have changed.
    pub(super) fn answered(&mut self, name: &str, result: &Bytes, continued: bool) -> bool {
        if matches!(name, method::INITIALIZE | method::SERVER_DISCOVER) {
            self.introduced(result);
            return true;
        }
        let Some(place) = LISTS.iter().position(|(list, _)| *list == name) else { return false };
        let (Some((_, member)), Some(list)) = (LISTS.get(place), self.lists.get_mut(place)) else { return false };
        let Some(items) = part(result, &[member]) else { return false };
        let list = list.get_or_insert_default();
        if !continued {
            list.clear();
        }
        list.extend(json::elements(&items).map(|span| items.slice(span.range())));
        part(result, &["nextCursor"]).is_none_or(|cursor| cursor == "null")
    }

    fn introduced(&mut self, result: &Bytes) {
        let text = |name| part(result, &[name]).and_then(|value| Some(json::string(&value)?.into_owned()));
        self.revision = text("protocolVersion").or_else(|| self.revision.take());
        self.server = part(result, &["serverInfo"]).or_else(|| part(result, &[meta::META, meta::SERVER_INFO]));
        self.capabilities = part(result, &["capabilities"]);
        self.instructions = text("instructions").map(Bytes::from);
    }

    /// Returns the entry for the tape, unless it equals the previous one.
    pub(super) fn told(&mut self, backend: &Arc<str>, view: &str) -> Option<BackendOffer> {
        let lists = LISTS.iter().zip(&self.lists).map(|((_, member), list)| (*member, list.as_deref().map(joined)));
        let own = [
            ("server", self.server.clone()),
            ("capabilities", self.capabilities.clone()),
            ("instructions", self.instructions.clone()),
        ];
        let seen = seen::of_parts(backend, view.to_owned(), self.revision.as_deref(), own.into_iter().chain(lists));
        if seen.hash == self.hash {
            return None;
        }
        self.hash.clone_from(&seen.hash);
        Some(seen)
    }
}

fn part(result: &Bytes, path: &[&str]) -> Option<Bytes> {
    json::path(result, path).map(|span| result.slice(span.range()))
}

/// Joins the items, unchanged, into one array.
fn joined(items: &[Bytes]) -> Bytes {
    let mut all = vec![b'['];
    for item in items {
        if all.len() > 1 {
            all.push(b',');
        }
        all.extend_from_slice(item);
    }
    all.push(b']');
    all.into()
}
