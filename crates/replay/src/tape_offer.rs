//! Collects what a tape tells about its server: identity, capabilities, and its lists at each position of the tape.

use crate::recorded_side::{Heading, RecordedSide};
use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use signalbox_engine::catalog::ListKind;
use signalbox_engine::record::{BackendOffer, Body, Content, Entry, MessageEntry, MessageKind};
use signalbox_wire::{Era, Revision, meta, method};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Maximum number of versions stored for each list.
const MAX_VERSIONS: usize = 1_000;

/// Maximum number of stored announcements.
const MAX_ANNOUNCEMENTS: usize = 10_000;

/// Maximum number of names of one kind collected from calls.
const MAX_CALLED: usize = 10_000;

/// Server description collected from a tape.
#[derive(Debug, Default)]
pub struct TapeOffer {
    hello: Hello,
    /// Versions of each list as shown to clients, by position on the tape.
    shown: [Vec<(u64, Items)>; 4],
    /// Pages of incomplete lists, by session and kind.
    pages: HashMap<(Option<u64>, ListKind), Vec<Box<RawValue>>>,
    /// Notifications sent to listening modern clients, by position on the tape.
    announcements: Vec<(u64, Bytes)>,
    /// Latest record of each backend, in order of first appearance.
    backends: Vec<BackendOffer>,
    /// Names that clients called successfully.
    called: [BTreeSet<Arc<str>>; 4],
}

/// Entries of a list.
pub type Items = Arc<[Box<RawValue>]>;

/// Server's reply to a client's handshake.
#[derive(Debug, Default, Clone)]
pub struct Hello {
    pub info: Option<Value>,
    pub capabilities: Option<Value>,
    pub instructions: Option<String>,
    /// Latest legacy revision spoken.
    pub old: Option<Revision>,
    /// Set if a client spoke the modern era.
    pub new: bool,
}

impl TapeOffer {
    /// Updates the description from an entry whose body is whole.
    pub fn learn(&mut self, side: &RecordedSide, entry: &Entry) {
        match &entry.content {
            Content::Message(message)
                if side.heading(message) == Some(Heading::ToClient) && message.kind == MessageKind::Result =>
            {
                self.answer(entry, message);
            }
            Content::Message(message)
                if side.heading(message) == Some(Heading::ToClient) && message.kind == MessageKind::Notification =>
            {
                self.announcement(entry, message);
            }
            Content::Backend(seen) => match side {
                RecordedSide::Backend(name) if seen.backend != *name => {}
                _ => self.backend(seen),
            },
            _ => {}
        }
    }

    fn answer(&mut self, entry: &Entry, message: &MessageEntry) {
        let (Some(method), Body::Whole(bytes)) = (message.method.as_deref(), &message.body) else { return };
        match (method, ListKind::of_method(method)) {
            (method::INITIALIZE | method::SERVER_DISCOVER, _) => self.handshake(method, bytes),
            (_, Some(kind)) => self.list(entry, kind, bytes),
            _ => {}
        }
    }

    /// Stores a notification from the stream of a listen request.
    fn announcement(&mut self, entry: &Entry, message: &MessageEntry) {
        let Body::Whole(bytes) = &message.body else { return };
        let tagged = memchr::memmem::find(bytes, meta::SUBSCRIPTION_ID.as_bytes()).is_some();
        let own = message.method.as_deref() == Some(method::SUBSCRIPTIONS_ACKNOWLEDGED);
        if tagged && !own && self.announcements.len() < MAX_ANNOUNCEMENTS {
            self.announcements.push((entry.seq, bytes.clone()));
        }
    }

    /// Returns the announcements after one position, up to and including another.
    #[must_use]
    pub fn announced(&self, after: u64, until: u64) -> Vec<Bytes> {
        let wanted = self.announcements.iter().filter(|(seq, _)| *seq > after && *seq <= until);
        wanted.map(|(_, bytes)| bytes.clone()).collect()
    }

    /// Records that a client spoke this era.
    pub fn spoke(&mut self, era: Era) {
        self.hello.new |= era == Era::Modern;
    }

    /// Records a successful call of a tool, prompt or resource. Calls `succeeded` only for new names.
    pub fn called(&mut self, method: &str, subject: &Arc<str>, succeeded: impl FnOnce() -> bool) {
        let kind = match method {
            method::TOOLS_CALL => ListKind::Tools,
            method::PROMPTS_GET => ListKind::Prompts,
            method::RESOURCES_READ => ListKind::Resources,
            _ => return,
        };
        let names = &mut self.called[kind as usize];
        if names.len() < MAX_CALLED && !names.contains(subject) && succeeded() {
            names.insert(Arc::clone(subject));
        }
    }

    /// Returns `true` if the tape lists the server's tools.
    fn has_tools(&self) -> bool {
        let kind = ListKind::Tools;
        !self.shown[kind as usize].is_empty() || self.backends.iter().any(|seen| part(seen, kind.member()).is_some())
    }

    fn handshake(&mut self, method: &str, bytes: &Bytes) {
        let Ok(Value::Object(mut message)) = serde_json::from_slice(bytes) else { return };
        let Some(Value::Object(mut result)) = message.remove("result") else { return };
        let hello = &mut self.hello;
        match method {
            method::INITIALIZE => {
                let spoken = result.get("protocolVersion").and_then(Value::as_str).and_then(Revision::parse);
                hello.old = hello.old.max(spoken);
            }
            _ => hello.new = true,
        }
        hello.info = hello.info.take().or_else(|| result.remove("serverInfo"));
        hello.capabilities = hello.capabilities.take().or_else(|| result.remove("capabilities"));
        let instructions = result.get("instructions").and_then(Value::as_str).map(ToOwned::to_owned);
        hello.instructions = hello.instructions.take().or(instructions);
    }

    fn list(&mut self, entry: &Entry, kind: ListKind, bytes: &Bytes) {
        let Some((items, more)) = page(bytes, kind.member()) else { return };
        let mut pages = self.pages.remove(&(entry.session, kind)).unwrap_or_default();
        pages.extend(items);
        if more {
            self.pages.insert((entry.session, kind), pages);
            return;
        }
        let shown = &mut self.shown[kind as usize];
        let known = shown.last().is_some_and(|(_, last)| texts(last).eq(texts(&pages)));
        if !known && shown.len() < MAX_VERSIONS {
            shown.push((entry.seq, pages.into()));
        }
    }

    fn backend(&mut self, seen: &BackendOffer) {
        match self.backends.iter_mut().find(|known| known.backend == seen.backend) {
            Some(known) => *known = seen.clone(),
            None => self.backends.push(seen.clone()),
        }
    }

    /// Returns `true` once the tools and either a handshake or a backend are known.
    #[must_use]
    pub fn is_known(&self) -> bool {
        (self.hello.capabilities.is_some() || !self.backends.is_empty()) && self.has_tools()
    }

    /// Returns the handshake reply to give to clients.
    #[must_use]
    pub fn hello(&self) -> Hello {
        let mut hello = self.hello.clone();
        let part = |name: &str| self.backends.iter().find_map(|seen| self::part(seen, name));
        hello.info = hello.info.or_else(|| part("server").and_then(|bytes| serde_json::from_slice(&bytes).ok()));
        if hello.instructions.is_none() {
            hello.instructions = part("instructions").and_then(|bytes| String::from_utf8(bytes.to_vec()).ok());
        }
        if hello.capabilities.is_none() {
            let parsed = |seen: &BackendOffer| serde_json::from_slice::<Value>(&self::part(seen, "capabilities")?).ok();
            let all = self.backends.iter().filter_map(parsed);
            let joined = all.fold(Map::new(), |mut joined, one| {
                if let Value::Object(members) = one {
                    members.into_iter().for_each(|(name, value)| _ = joined.entry(name).or_insert(value));
                }
                joined
            });
            hello.capabilities = Some(Value::Object(joined));
        }
        if let Some(Value::Object(capabilities)) = &mut hello.capabilities {
            for kind in [ListKind::Tools, ListKind::Prompts, ListKind::Resources] {
                if !self.called[kind as usize].is_empty() {
                    capabilities.entry(kind.member()).or_insert_with(|| json!({}));
                }
            }
        }
        // Backend revisions count only if no client revision is known on the played side: the gateway may have
        // translated between the two.
        if hello.old.is_none() && !hello.new {
            for revision in self.backends.iter().filter_map(|seen| Revision::parse(seen.revision.as_deref()?)) {
                match revision.era() {
                    Era::Modern => hello.new |= hello.old.is_none(),
                    Era::Legacy => hello.old = hello.old.max(Some(revision)),
                }
            }
        }
        hello
    }

    /// Returns a list as of a position on the tape: the last one shown up to there, else the first one shown, else what
    /// the backends offered. Adds names that clients called successfully, because a gateway rejects unlisted names.
    #[must_use]
    pub fn list_at(&self, kind: ListKind, place: u64) -> Items {
        let shown = &self.shown[kind as usize];
        let until = shown.iter().take_while(|(seq, _)| *seq <= place).last().or_else(|| shown.first());
        let items = until.map_or_else(|| self.offered(kind), |(_, items)| Arc::clone(items));
        if kind == ListKind::Resources && !items.is_empty() {
            // Resources made from a template are in no list.
            return items;
        }
        let listed: HashSet<String> = items.iter().filter_map(|item| name(kind, item)).collect();
        let missing = self.called[kind as usize].iter().filter(|name| !listed.contains(&***name));
        let missing: Vec<_> =
            missing.filter_map(|name| self.entry(kind, name).or_else(|| minimal_entry(kind, name))).collect();
        match missing.is_empty() {
            true => items,
            false => items.iter().cloned().chain(missing).collect(),
        }
    }

    /// Finds the entry of this name in the first list that has it.
    fn entry(&self, kind: ListKind, wanted: &str) -> Option<Box<RawValue>> {
        let mut items = self.shown[kind as usize].iter().flat_map(|(_, items)| items.iter());
        items.find(|item| name(kind, item).as_deref() == Some(wanted)).cloned()
    }

    /// Merges the lists of all backends under the names shown to clients. The first backend with a name keeps it
    /// unqualified.
    fn offered(&self, kind: ListKind) -> Items {
        let mut taken = HashSet::new();
        let mut items = Vec::new();
        for seen in &self.backends {
            let Some(bytes) = part(seen, kind.member()) else { continue };
            let own: Vec<Box<RawValue>> = serde_json::from_slice(&bytes).unwrap_or_default();
            for item in own {
                let Some(name) = name(kind, &item) else { continue };
                match taken.insert(name.clone()) {
                    true => items.push(item),
                    false => items.extend(qualified_entry(kind, &seen.backend, &name, &item)),
                }
            }
        }
        items.into()
    }
}

/// Parses one page. Returns its entries, and `true` if another page follows.
fn page(bytes: &Bytes, member: &str) -> Option<(Vec<Box<RawValue>>, bool)> {
    let message: HashMap<String, Box<RawValue>> = serde_json::from_slice(bytes).ok()?;
    let result: HashMap<String, Box<RawValue>> = serde_json::from_str(message.get("result")?.get()).ok()?;
    let items = serde_json::from_str(result.get(member)?.get()).ok()?;
    Some((items, result.get("nextCursor").is_some_and(|cursor| cursor.get() != "null")))
}

fn texts(items: &[Box<RawValue>]) -> impl Iterator<Item = &str> {
    items.iter().map(|item| item.get())
}

fn part(seen: &BackendOffer, name: &str) -> Option<Bytes> {
    seen.parts.iter().find(|(part, _)| part == name).map(|(_, bytes)| bytes.clone())
}

fn name(kind: ListKind, item: &RawValue) -> Option<String> {
    let item: Value = serde_json::from_str(item.get()).ok()?;
    Some(item.get(kind.key())?.as_str()?.to_owned())
}

/// Builds a minimal entry from a name.
fn minimal_entry(kind: ListKind, name: &str) -> Option<Box<RawValue>> {
    let entry = match kind {
        ListKind::Tools => json!({"name": name, "inputSchema": {"type": "object"}}),
        ListKind::Resources => json!({"uri": name, "name": name}),
        _ => json!({"name": name}),
    };
    serde_json::value::to_raw_value(&entry).ok()
}

/// Returns the entry under its qualified name, as the catalog forms it.
fn qualified_entry(kind: ListKind, backend: &str, name: &str, item: &RawValue) -> Option<Box<RawValue>> {
    let mut item: Map<String, Value> = serde_json::from_str(item.get()).ok()?;
    item.insert(kind.key().to_owned(), kind.style().qualify(backend, name).into());
    serde_json::value::to_raw_value(&item).ok()
}
