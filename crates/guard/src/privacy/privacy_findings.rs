//! Result of a search for private data.

use super::PrivateSpan;

/// Private data of a text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PrivacyFindings {
    /// Spans in order, without overlaps.
    pub spans: Vec<PrivateSpan>,
    /// True if there may be more, because the text was too long or a bound was reached.
    pub is_incomplete: bool,
}
