//! Recordings of other programs, read into a tape.
//!
//! Each format has a reader that makes a [`Recording`]: who talked with whom, and what each side said. [`Entries`] makes of
//! it what a recorder would have written.

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
pub use format::{Content, ImportFormat};
pub use left_out::{LeftOut, Missing};
pub use recording::{Heard, Recording, Side, Talk};

use bytes::Bytes;

/// Largest file that is read.
pub const MAX_FILE: u64 = 256 << 20;

/// Reads a recording of this format.
///
/// # Errors
/// If it is none, or larger than is read, with the place of what is wrong.
pub fn read(file: &Bytes, format: ImportFormat) -> Result<Recording, ImportError> {
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
