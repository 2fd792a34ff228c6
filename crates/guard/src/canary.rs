//! Values that are laid out to be found, and must never leave.
//!
//! A canary looks like an API key, an e-mail address, a URL or a name. An operator puts it where only an intruder or a
//! misled model finds it. Each canary carries an id and a MAC of it, so that the gateway recognises every canary that
//! was made with its key, without a list of them, in whatever text and encoding it comes by. No canary looks like the
//! credential of a vendor, and its addresses are in reserved domains.
//!
//! At least 40 bits of the MAC are HMAC-SHA-256, so that other text passes for a canary once in 2^40 candidates.

mod base32_payload;
mod canary_id;
mod canary_key;
mod canary_kind;
mod canary_match;
mod canary_value;
mod name_payload;
#[cfg(test)]
mod tests;

pub use canary_id::CanaryId;
pub use canary_key::CanaryKey;
pub use canary_kind::CanaryKind;
pub use canary_match::CanaryMatch;
pub use canary_value::Canary;

use crate::encodings::{TextPart, visit_parts};
use std::ops::{ControlFlow, Range};

/// Maximum number of places that are reported of one text.
const MAX_MATCHES: usize = 64;

/// Returns the canaries of a text, as it is written and in the encodings of [`TextEncoding`](crate::TextEncoding), in
/// two layers at most. The first 64 places are reported.
#[must_use]
pub fn find(text: &str, key: &CanaryKey) -> Vec<CanaryMatch> {
    let mut matches: Vec<CanaryMatch> = Vec::new();
    let _ = visit_parts(text, &mut |part: &TextPart<'_>| {
        scan(part.text, key, &mut |place, id| {
            let range = if part.layers.is_verbatim() { place } else { part.range.clone() };
            let is_known = |known: &CanaryMatch| {
                known.id == id && range.start <= known.range.start && known.range.end <= range.end
            };
            if !matches.iter().any(is_known) {
                matches.push(CanaryMatch { range, id, form: part.layers });
            }
            if matches.len() < MAX_MATCHES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
    });
    matches
}

/// Returns the id of a value that is or holds a canary as it is written.
#[must_use]
pub fn identify(value: &str, key: &CanaryKey) -> Option<CanaryId> {
    let mut found = None;
    let _ = scan(value, key, &mut |_, id| {
        found = Some(id);
        ControlFlow::Break(())
    });
    found
}

/// Calls `visit` with each canary of a text as it is.
fn scan(
    text: &str,
    key: &CanaryKey,
    visit: &mut dyn FnMut(Range<usize>, CanaryId) -> ControlFlow<()>,
) -> ControlFlow<()> {
    base32_payload::scan(text, key, visit)?;
    name_payload::scan(text, key, visit)
}
