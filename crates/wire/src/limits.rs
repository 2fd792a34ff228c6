//! Bounds on what is accepted from outside. Each has a name, and a default that no honest peer meets.

/// Largest message, in bytes.
pub const MESSAGE: usize = 16 * 1024 * 1024;
/// Deepest nesting of objects and arrays: one less than where parsers that many servers use (serde_json) give up, so that
/// what passes here is read there too.
pub const DEPTH: usize = 127;
/// Most members or elements in one object or array.
pub const WIDTH: usize = 100_000;
/// Most messages in one batch.
pub const BATCH: usize = 100;
/// Largest SSE event, in bytes of data.
pub const SSE_EVENT: usize = 16 * 1024 * 1024;
/// Longest line on stdio, in bytes.
pub const LINE: usize = 16 * 1024 * 1024;

/// The bounds in force, for the scan and the decoders.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Largest message, in bytes.
    pub message: usize,
    /// Deepest nesting of objects and arrays.
    pub depth: usize,
    /// Most members or elements in one object or array.
    pub width: usize,
    /// Most messages in one batch.
    pub batch: usize,
    /// Largest SSE event, in bytes of data.
    pub sse_event: usize,
    /// Longest line on stdio, in bytes.
    pub line: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { message: MESSAGE, depth: DEPTH, width: WIDTH, batch: BATCH, sse_event: SSE_EVENT, line: LINE }
    }
}
