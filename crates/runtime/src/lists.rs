//! Fetches a backend's lists, page by page, into a view.

use crate::backend::BackendSpec;
use crate::peer::Peer;
use signalbox_engine::catalog::{Item, ListKind, ListTerms, View};
use signalbox_engine::{Fault, FaultKind, ServerProfile};
use signalbox_wire::json;
use std::sync::Arc;
use std::time::Duration;

/// Most pages read of one list.
pub const MAX_PAGES: usize = 1_000;
/// Most entries kept of one list.
pub const MAX_ITEMS: usize = 100_000;
/// Most bytes kept of one list.
pub const MAX_BYTES: usize = 32 << 20;
/// How long one page may take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a list of an old backend is good that does not report changes.
pub(crate) const OLD_TTL: Duration = Duration::from_secs(60);
/// The shortest time for which a list is good, so that many clients do not become many requests.
const MIN_TTL: Duration = Duration::from_secs(1);
/// The longest time for which a list is good.
const MAX_TTL: Duration = Duration::from_secs(24 * 3600);

/// A list as it was read.
pub struct Listed {
    /// Its entries.
    pub items: Vec<Item>,
    /// How long it is good, if the backend says so.
    pub ttl: Option<Duration>,
    /// The caching terms that clients are told.
    pub terms: Option<ListTerms>,
}

impl Listed {
    /// Puts it into a view.
    pub fn put(self, kind: ListKind, view: &mut View) {
        view.set(kind, self.items);
        view.set_terms(kind, self.terms);
    }
}

/// Reads every list that the backend declares. Also returns how long they are good; `None` if it reports
/// changes of all of them.
///
/// # Errors
/// The fault of the first list that could not be read.
pub async fn fetch_view(
    peer: &Peer,
    profile: &Arc<ServerProfile>,
    spec: &BackendSpec,
) -> Result<(View, Option<Duration>), Fault> {
    let mut view = View::empty(Arc::clone(profile));
    let mut good: Option<Duration> = None;
    for kind in ListKind::ALL {
        if profile.has(&[kind.capability()]) {
            let items = fetch(peer, kind, spec).await;
            if let (Ok(listed), false) = (&items, profile.has(&[kind.capability(), "listChanged"])) {
                let ttl = listed.ttl.unwrap_or(OLD_TTL).clamp(MIN_TTL, MAX_TTL);
                good = Some(good.map_or(ttl, |known| known.min(ttl)));
            }
            match (kind, items) {
                (_, Ok(listed)) => listed.put(kind, &mut view),
                // Many servers declare resources and do not know templates.
                (ListKind::Templates, Err(fault)) => tracing::debug!(%fault, "no resource templates"),
                (_, Err(fault)) => return Err(fault),
            }
        }
    }
    Ok((view, good))
}

/// Reads all pages of one list.
///
/// # Errors
/// A fault if a page cannot be read.
pub async fn fetch(peer: &Peer, kind: ListKind, spec: &BackendSpec) -> Result<Listed, Fault> {
    let (mut items, mut ttl, mut bytes) = (Vec::new(), None::<Duration>, 0);
    let (asked, mut public) = (crate::clock::now(), true);
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let params = cursor.as_deref().map(|cursor| format!("\"cursor\":{}", json::quote(cursor))).unwrap_or_default();
        let answer = peer.ask(kind.method(), &params, PAGE_TIMEOUT).await;
        let message = answer.unwrap_or_else(|_| Err(Fault::new(FaultKind::BackendDied, "the connection ended")))?;
        let Some(result) = message.result() else {
            return Err(refused(kind, message.error().unwrap_or_default()));
        };
        let page =
            json::member(result, "ttlMs").and_then(|span| std::str::from_utf8(span.of(result)).ok()?.parse().ok());
        if let Some(page) = page.map(Duration::from_millis) {
            ttl = Some(ttl.map_or(page, |known| known.min(page)));
        }
        let scope = json::member(result, "cacheScope").and_then(|span| json::string(span.of(result)));
        public &= scope.as_deref() == Some("public");
        let array = json::member(result, kind.member()).map(|span| span.of(result)).unwrap_or(b"[]");
        for span in json::elements(array) {
            let raw = message.bytes().slice_ref(span.of(array));
            bytes += raw.len();
            // Copied, so that one entry does not keep the whole page in memory.
            match Item::read(kind, bytes::Bytes::copy_from_slice(&raw)) {
                Ok(item) if kind != ListKind::Tools || (spec.allows)(&item.key) => items.push(item),
                Ok(_) => {}
                Err(error) => {
                    let list = kind.member();
                    tracing::warn!(backend = %peer.backend_name(), list, %error, "leaving out an entry of a backend's list");
                    peer.count_dropped("list_entry");
                }
            }
        }
        if items.len() > MAX_ITEMS {
            return Err(too_large(peer, kind, format_args!("{MAX_ITEMS} entries")));
        }
        if bytes > MAX_BYTES {
            return Err(too_large(peer, kind, format_args!("{MAX_BYTES} bytes")));
        }
        let next = json::member(result, "nextCursor").and_then(|span| json::string(span.of(result)));
        match next {
            Some(next) => cursor = Some(next.into_owned()),
            None => {
                let terms = ttl.map(|ttl| ListTerms { until: asked + ttl.min(MAX_TTL), public });
                return Ok(Listed { items, ttl, terms });
            }
        }
    }
    Err(too_large(peer, kind, format_args!("{MAX_PAGES} pages")))
}

fn too_large(peer: &Peer, kind: ListKind, most: std::fmt::Arguments<'_>) -> Fault {
    peer.count_stray("list_too_large");
    Fault::new(FaultKind::BackendGarbage, format!("{} has more than {most}", kind.method()))
}

fn refused(kind: ListKind, error: &[u8]) -> Fault {
    let text = json::member(error, "message").and_then(|span| json::string(span.of(error)));
    let why = text.as_deref().unwrap_or("no reason given").chars().take(200).collect::<String>();
    Fault::new(FaultKind::BackendGarbage, format!("{} was refused: {why}", kind.method()))
}
