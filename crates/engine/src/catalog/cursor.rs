//! Cursors of the gateway's own lists.
//!
//! A cursor holds the last entry of its page and its rank, so it stays valid when the catalog changes between two
//! pages, even if that entry is gone.

use super::ListKind;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Maximum length of a client's cursor.
const MAX_CURSOR: usize = 8 * 1024;

/// Position in a list: the entry after which the next page starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cursor {
    /// Name of the backend of the last entry.
    pub backend: String,
    /// Rank of the last entry among all that the backend ever listed.
    pub rank: u64,
    /// Key of the last entry under that backend.
    pub key: String,
}

impl Cursor {
    /// Encodes a cursor as text for the client.
    pub fn encode(kind: ListKind, backend: &str, rank: u64, key: &str) -> String {
        URL_SAFE_NO_PAD.encode(format!("2\n{}\n{backend}\n{rank}\n{key}", kind.member()))
    }

    /// Decodes a client's cursor. Returns `None` if it is not a cursor of this list.
    pub fn decode(kind: ListKind, text: &str) -> Option<Self> {
        if text.len() > MAX_CURSOR {
            return None;
        }
        let plain = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        let mut parts = plain.splitn(5, '\n');
        let (version, member) = (parts.next()?, parts.next()?);
        let (backend, rank, key) = (parts.next()?, parts.next()?, parts.next()?);
        (version == "2" && member == kind.member())
            .then(|| Some(Self { backend: backend.to_owned(), rank: rank.parse().ok()?, key: key.to_owned() }))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_and_belongs_to_one_list() {
        let text = Cursor::encode(ListKind::Tools, "files", 7, "read\nme");
        let cursor = Cursor::decode(ListKind::Tools, &text).unwrap();
        assert_eq!((cursor.backend.as_str(), cursor.rank, cursor.key.as_str()), ("files", 7, "read\nme"));
        assert_eq!(Cursor::decode(ListKind::Prompts, &text), None);
        for bad in ["", "x", "!!!!", "AAAA", &"A".repeat(10_000)] {
            assert_eq!(Cursor::decode(ListKind::Tools, bad), None, "{bad:.20}");
        }
    }
}
