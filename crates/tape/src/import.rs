//! Imports recordings of other programs into a tape.
//!
//! The reader of each format makes an [`ImportedRecording`]: the conversations and the messages of each side.
//! [`Entries`] turns it into the entries that a recorder would have written.

mod cassette;
mod conversation;
mod direction;
mod entries;
mod error;
mod format;
mod har;
mod http_exchange;
mod left_out;
mod lines;
mod mcporter;
mod mcpsnoop;
mod messages;
mod offers;
mod pcap;
mod recording;
#[cfg(test)]
mod tests;

pub use entries::Entries;
pub use error::ImportError;
pub use format::{FileContent, ImportFormat};
pub use left_out::{LeftOut, Missing};
pub use recording::{ImportedMessage, ImportedRecording, Side, Talk};

use bytes::Bytes;

/// Maximum size of a file that is read, in bytes.
pub const MAX_FILE: u64 = 256 << 20;

/// Reads a recording of the given format.
///
/// # Errors
/// Fails if the file is too large or is not of that format; the error names the place of the mistake.
pub fn read(file: &Bytes, format: ImportFormat) -> Result<ImportedRecording, ImportError> {
    if file.len() as u64 > MAX_FILE {
        return Err(ImportError::TooLarge { most: MAX_FILE >> 20 });
    }
    let recording = match format {
        ImportFormat::Har => har::read(file)?,
        ImportFormat::Pcap => pcap::read(file)?,
        ImportFormat::McpRecorder => cassette::read(file)?,
        ImportFormat::Messages | ImportFormat::McpRec => lines::read(file, messages::said)?,
        ImportFormat::Mcporter => lines::read(file, mcporter::said)?,
        ImportFormat::Mcpsnoop => lines::read(file, mcpsnoop::said)?,
    };
    if recording.heard.is_empty() {
        return Err(match &recording.left_out[..] {
            [] => ImportError::Empty(format.holds()),
            [first, others @ ..] => ImportError::AllLeftOut { first: first.to_string(), others: others.len() },
        });
    }
    Ok(recording)
}
