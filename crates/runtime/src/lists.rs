//! Fetches a backend's lists, page by page, into a view.

use crate::backend::BackendSpec;
use crate::peer::Peer;
use signalbox_engine::catalog::{Item, ListKind, ListTerms, View};
use signalbox_engine::{Fault, FaultKind, ServerProfile};
use signalbox_wire::json;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of pages read of one list.
pub const MAX_PAGES: usize = 1_000;
/// Maximum number of entries kept of one list.
pub const MAX_ITEMS: usize = 100_000;
/// Maximum size of one list in bytes.
pub const MAX_BYTES: usize = 32 << 20;
/// Time limit for one page.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Lifetime of a legacy backend's list if the backend does not report changes.
pub(crate) const OLD_TTL: Duration = Duration::from_secs(60);
/// Minimum lifetime of a list, so that many clients do not cause many requests.
const MIN_TTL: Duration = Duration::from_secs(1);
/// Maximum lifetime of a list.
const MAX_TTL: Duration = Duration::from_secs(24 * 3600);

/// List as fetched from a backend, all pages together.
pub struct FetchedList {
    pub items: Vec<Item>,
    /// Lifetime, if the backend names one.
    pub ttl: Option<Duration>,
    /// Caching terms for clients.
    pub terms: Option<ListTerms>,
}

impl FetchedList {
    /// Stores the list in a view.
    pub fn put(self, kind: ListKind, view: &mut View) {
        view.set(kind, self.items);
        view.set_terms(kind, self.terms);
    }
}

/// Fetches every list that the backend declares. Also returns the lifetime of the lists, or `None` if the backend
/// reports changes of all of them.
///
/// # Errors
/// The fault of the first list that could not be fetched.
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

/// Fetches all pages of one list.
///
/// # Errors
/// If a page cannot be fetched, or the list is too large.
pub async fn fetch(peer: &Peer, kind: ListKind, spec: &BackendSpec) -> Result<FetchedList, Fault> {
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
                return Ok(FetchedList { items, ttl, terms });
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
