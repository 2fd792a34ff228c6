//! Text that was decoded from another one.

use super::EncodingLayers;
use std::ops::Range;

/// Text that a search looks at: the searched text itself or a text decoded from it.
#[derive(Clone, Debug)]
pub(crate) struct TextPart<'a> {
    pub(crate) text: &'a str,
    pub(crate) layers: EncodingLayers,
    /// Place in the searched text of what was decoded, in bytes.
    pub(crate) range: Range<usize>,
}
