//! Offer of a backend, as a tape stores it.

use bytes::Bytes;
use sha2::{Digest, Sha256};
use signalbox_engine::catalog::{ListKind, View, ViewKey};
use signalbox_engine::record::BackendOffer;
use signalbox_wire::Era;
use signalbox_wire::hex::push_hex;
use std::borrow::Cow;
use std::sync::Arc;

/// Maximum size of a stored part.
pub const MAX_PART: usize = 1 << 20;
/// Maximum number of bytes of all parts together.
pub const MAX_PARTS: usize = 3 << 20;
/// Number of bytes of the hash that are written.
const HASH_BYTES: usize = 16;

/// Returns the offer of a backend to one kind of client. Parts that are too large are omitted, but still included in
/// the hash.
#[must_use]
pub fn backend(name: &Arc<str>, key: &ViewKey, view: &View) -> BackendOffer {
    let profile = &view.profile;
    let instructions = profile.instructions.as_ref().map(|text| Bytes::copy_from_slice(text.as_bytes()));
    let own = [
        ("server", Some(profile.info.clone())),
        ("capabilities", Some(profile.capabilities.clone())),
        ("instructions", instructions),
    ];
    let lists = [ListKind::Tools, ListKind::Prompts, ListKind::Resources, ListKind::Templates]
        .map(|kind| (kind.member(), (!view.list(kind).is_empty()).then(|| list(view, kind))));
    of_parts(name, words(key), Some(profile.revision.as_str()), own.into_iter().chain(lists))
}

/// Builds the offer of a backend from these parts.
pub(crate) fn of_parts(
    name: &Arc<str>,
    view: String,
    revision: Option<&str>,
    parts: impl Iterator<Item = (&'static str, Option<Bytes>)>,
) -> BackendOffer {
    let (backend, revision) = (Arc::clone(name), revision.map(str::to_owned));
    let mut seen = BackendOffer { backend, view, revision, ..BackendOffer::default() };
    let mut hash = Sha256::new_with_prefix(seen.revision.as_deref().unwrap_or_default());
    let mut room = MAX_PARTS;
    for (name, part) in parts {
        let Some(part) = part else { continue };
        hash.update(name);
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(&part);
        if part.len() > MAX_PART.min(room) {
            seen.left.push(name.to_owned());
        } else {
            room -= part.len();
            seen.parts.push((Cow::Borrowed(name), part));
        }
    }
    push_hex(&mut seen.hash, &hash.finalize()[..HASH_BYTES]);
    seen
}

/// Joins the items, unchanged, into one array.
fn list(view: &View, kind: ListKind) -> Bytes {
    let mut all = vec![b'['];
    for item in view.list(kind) {
        if all.len() > 1 {
            all.push(b',');
        }
        all.extend_from_slice(&item.raw);
    }
    all.push(b']');
    all.into()
}

/// Describes the kind of client.
fn words(key: &ViewKey) -> String {
    let era = match key.era {
        Era::Legacy => "sessions",
        Era::Modern => "stateless",
    };
    let kind = if key.caps.is_bare() { era.to_owned() } else { format!("{era} {}", key.caps.as_json()) };
    match &key.whose {
        Some(whose) => format!("{kind} of {}", whose.principal()),
        None => kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::catalog::Item;
    use signalbox_engine::{CapSet, ServerProfile};
    use signalbox_wire::Revision;

    fn view(tool: &str) -> View {
        let profile = ServerProfile {
            revision: Revision::LATEST_LEGACY,
            capabilities: Bytes::from_static(br#"{"tools":{}}"#),
            info: Bytes::from_static(br#"{"name":"math"}"#),
            instructions: Some("Add.".to_owned()),
        };
        let mut view = View::empty(Arc::new(profile));
        view.set(ListKind::Tools, vec![Item::read(ListKind::Tools, Bytes::copy_from_slice(tool.as_bytes())).unwrap()]);
        view
    }

    fn key() -> ViewKey {
        ViewKey::shared(Era::Legacy, CapSet::bare())
    }

    /// Proves S-28.
    #[test]
    fn a_backend_is_told_in_its_own_bytes_and_by_a_hash_of_all_of_them() {
        let tool = r#"{"name":"add", "inputSchema":{"type":"object"},"x":1}"#;
        let seen = backend(&"math".into(), &key(), &view(tool));
        assert_eq!((&*seen.backend, &*seen.view, seen.revision.as_deref()), ("math", "sessions", Some("2025-11-25")));
        let parts: Vec<(&str, &[u8])> = seen.parts.iter().map(|(name, part)| (&**name, &**part)).collect();
        assert_eq!(
            parts,
            [
                ("server", &br#"{"name":"math"}"#[..]),
                ("capabilities", br#"{"tools":{}}"#),
                ("instructions", b"Add."),
                ("tools", format!("[{tool}]").as_bytes()),
            ]
        );
        assert_eq!(seen.hash, backend(&"math".into(), &key(), &view(tool)).hash);
        assert_ne!(seen.hash, backend(&"math".into(), &key(), &view(r#"{"name":"add"}"#)).hash);
    }

    #[test]
    fn a_list_that_is_too_large_is_left_out_and_said_so() {
        let large = |end: &str| {
            let tool = format!(r#"{{"name":"add","description":"{}{end}"}}"#, "x".repeat(MAX_PART));
            backend(&"math".into(), &key(), &view(&tool))
        };
        let seen = large("");
        assert_eq!((seen.left.as_slice(), seen.parts.len()), (&["tools".to_owned()][..], 3));
        assert_ne!(seen.hash, large("y").hash, "what is left out still counts");
    }
}
