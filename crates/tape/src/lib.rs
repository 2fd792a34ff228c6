//! Tapes: recording what passes, taking secrets out of it, files that carry it elsewhere, and what people read of it.

pub mod glob;
pub mod recorder;
pub mod redact;

pub use recorder::{Anchor, Recorder, RecorderSettings};
pub use redact::{RedactionSettings, Redactor};
