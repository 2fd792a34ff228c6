//! Tapes: recording of traffic, redaction, tape files, exports, imports, and readable views of a tape.

pub mod analysis;
pub mod bodies;
mod excerpt;
pub mod explain;
pub mod export;
pub mod file;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod gather;
pub mod glob;
pub mod import;
pub mod marks;
pub mod moment;
mod pretty;
pub mod recorder;
pub mod redact;
#[cfg(test)]
mod sample;
pub mod seal;
pub mod seen;
pub mod sent;
pub mod source;
pub mod story;
mod strict_json;
mod times;

pub use bodies::Bodies;
pub use excerpt::excerpt;
pub use explain::explain;
pub use file::{Select, TapeFile, TapeFileError, TapeFileWriter};
pub use gather::{Gather, Piece};
pub use pretty::pretty;
pub use recorder::{Anchor, Recorder, RecorderSettings};
pub use redact::{RedactionSettings, Redactor};
pub use seal::{HeadInterval, SealSettings};
pub use source::TapeSource;
pub use story::Story;
