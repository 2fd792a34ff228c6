//! The lists that one backend gives to one kind of client.

use super::{Changed, Item, ListKind};
use crate::capset::CapSet;
use crate::profile::ServerProfile;
use signalbox_wire::Era;
use std::sync::Arc;

/// Which kind of client a list was given to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ViewKey {
    /// The era of the connection.
    pub era: Era,
    /// The capabilities it was opened with.
    pub caps: CapSet,
}

/// Which kind of client asks.
pub type Selector = ViewKey;

/// The lists of one backend for one kind of client.
#[derive(Clone, Debug)]
pub struct View {
    /// What the backend said about itself on that connection.
    pub profile: Arc<ServerProfile>,
    /// Its tools.
    pub tools: Vec<Item>,
    /// Its prompts.
    pub prompts: Vec<Item>,
    /// Its resources.
    pub resources: Vec<Item>,
    /// Its resource templates.
    pub templates: Vec<Item>,
}

impl View {
    /// A view without entries.
    #[must_use]
    pub fn empty(profile: Arc<ServerProfile>) -> Self {
        Self { profile, tools: Vec::new(), prompts: Vec::new(), resources: Vec::new(), templates: Vec::new() }
    }

    /// One of the four lists.
    #[must_use]
    pub fn list(&self, kind: ListKind) -> &[Item] {
        match kind {
            ListKind::Tools => &self.tools,
            ListKind::Prompts => &self.prompts,
            ListKind::Resources => &self.resources,
            ListKind::Templates => &self.templates,
        }
    }

    /// Puts a list in place, sorted by key so that a backend that lists in random order is stable here; of two entries
    /// with one key the first stays.
    pub fn set(&mut self, kind: ListKind, mut items: Vec<Item>) {
        items.sort_by(|a, b| a.key.cmp(&b.key));
        items.dedup_by(|later, earlier| later.key == earlier.key);
        match kind {
            ListKind::Tools => self.tools = items,
            ListKind::Prompts => self.prompts = items,
            ListKind::Resources => self.resources = items,
            ListKind::Templates => self.templates = items,
        }
    }

    /// Which lists are not byte for byte those of `other`.
    #[must_use]
    pub fn differs(&self, other: &Self) -> Changed {
        let differs = |kind: ListKind| {
            let (a, b) = (self.list(kind), other.list(kind));
            a.len() != b.len() || a.iter().zip(b).any(|(a, b)| a.raw != b.raw)
        };
        Changed {
            tools: differs(ListKind::Tools),
            prompts: differs(ListKind::Prompts),
            resources: differs(ListKind::Resources) || differs(ListKind::Templates),
        }
    }
}
