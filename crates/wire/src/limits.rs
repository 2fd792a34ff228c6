//! Limits on untrusted input. Legitimate peers stay below the defaults.

/// Default maximum size of a message in bytes.
pub const MESSAGE: usize = 16 * 1024 * 1024;
/// Default maximum nesting of objects and arrays. One less than the limit of parsers that many servers use
/// (serde_json), so that those can read whatever passes here.
pub const DEPTH: usize = 127;
/// Default maximum number of members or elements in one object or array.
pub const WIDTH: usize = 100_000;
/// Default maximum number of messages in a batch.
pub const BATCH: usize = 100;
/// Default maximum size of an SSE event, in bytes of data.
pub const SSE_EVENT: usize = 16 * 1024 * 1024;
/// Default maximum length of a line on stdio in bytes.
pub const LINE: usize = 16 * 1024 * 1024;

/// Limits for the scan and the decoders.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum size of a message in bytes.
    pub message: usize,
    /// Maximum nesting of objects and arrays.
    pub depth: usize,
    /// Maximum number of members or elements in one object or array.
    pub width: usize,
    /// Maximum number of messages in a batch.
    pub batch: usize,
    /// Maximum size of an SSE event, in bytes of data.
    pub sse_event: usize,
    /// Maximum length of a line on stdio in bytes.
    pub line: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { message: MESSAGE, depth: DEPTH, width: WIDTH, batch: BATCH, sse_event: SSE_EVENT, line: LINE }
    }
}
