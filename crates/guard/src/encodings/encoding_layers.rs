//! Encodings that were undone one after the other.

use super::TextEncoding;

/// Encodings around a text, the outermost first.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct EncodingLayers([Option<TextEncoding>; 3]);

impl EncodingLayers {
    /// Text as it is written.
    pub const NONE: Self = Self([None; 3]);

    /// Returns these layers around one more.
    pub(crate) fn with(mut self, inner: TextEncoding) -> Self {
        if let Some(free) = self.0.iter_mut().find(|layer| layer.is_none()) {
            *free = Some(inner);
        }
        self
    }

    /// Returns these layers within an outer one.
    pub(crate) fn within(self, outer: TextEncoding) -> Self {
        self.iter().fold(Self::NONE.with(outer), Self::with)
    }

    /// Returns the encodings, the outermost first.
    pub fn iter(&self) -> impl Iterator<Item = TextEncoding> {
        self.0.into_iter().flatten()
    }

    /// Returns true for text as it is written.
    #[must_use]
    pub fn is_verbatim(&self) -> bool {
        *self == Self::NONE
    }
}

impl std::fmt::Display for EncodingLayers {
    /// Writes `verbatim`, `base64` or `base64 of hex`.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_verbatim() {
            return out.write_str("verbatim");
        }
        for (depth, encoding) in self.iter().enumerate() {
            out.write_str(if depth > 0 { " of " } else { "" })?;
            out.write_str(encoding.word())?;
        }
        Ok(())
    }
}
