//! Place of private data in a text.

use super::PrivacyClass;
use std::borrow::Cow;
use std::ops::Range;

/// Place of private data in a text, with the placeholder that replaces it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrivateSpan {
    /// Class of the data.
    pub class: PrivacyClass,
    /// Byte range in the text. Both ends are boundaries of characters.
    pub range: Range<usize>,
    /// Replacement of the data, such as `[email removed]`.
    pub placeholder: Cow<'static, str>,
}
