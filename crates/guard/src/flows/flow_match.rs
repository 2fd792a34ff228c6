//! Agreement of an argument with a recorded text.

use super::FlowSource;
use crate::encodings::EncodingLayers;

/// Agreement of an argument with a recorded text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowMatch {
    /// Latest call of the wanted classes that returned the text.
    pub source: FlowSource,
    /// Number of characters that agree, with white space collapsed. A run can be longer by a few characters.
    pub length: usize,
    /// Encodings that were undone in the argument.
    pub form: EncodingLayers,
    /// True for a distinctive value, such as a number or an e-mail address, instead of a run of characters.
    pub is_value: bool,
}
