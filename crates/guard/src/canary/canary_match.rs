use super::CanaryId;
use crate::encodings::EncodingLayers;
use std::ops::Range;

/// Canary that was found in a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CanaryMatch {
    /// Bytes of the checkable part of the canary, or of the text that decodes to it. For escapes and reversed text,
    /// that is the whole text.
    pub range: Range<usize>,
    pub id: CanaryId,
    /// Encodings that were undone before the canary was found.
    pub form: EncodingLayers,
}
