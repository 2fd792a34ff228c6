//! Errors of reading a recording.

/// Error of reading a recording.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ImportError {
    /// The file is invalid at this place.
    #[error("{place}: {why}")]
    At {
        /// Place of the mistake: `line 17`, `log.entries[3]`, `packet 4`.
        place: String,
        /// Description of the mistake.
        why: String,
    },
    /// The file holds no MCP message.
    #[error("the file holds no MCP messages; {0}")]
    Empty(&'static str),
    /// Every MCP message of the file is unreadable.
    #[error("the file holds no MCP messages that can be read: {first}{}", also(*.others))]
    AllLeftOut {
        /// Description of the first omission.
        first: String,
        /// Number of further omissions.
        others: usize,
    },
    /// The content does not match any known format.
    #[error(
        "the format cannot be told from the content; name it with --format (har, pcap, messages, mcporter, mcp-rec, mcp-recorder, mcpsnoop)"
    )]
    Unknown,
    /// The file is too large.
    #[error("the file is larger than {most} MiB, the most that can be imported at once")]
    TooLarge {
        /// Maximum size in MiB.
        most: u64,
    },
    /// The file holds too many items of one kind.
    #[error("the file holds more than {most} {what}, the most that can be imported at once")]
    TooMany {
        /// Kind of the items.
        what: &'static str,
        /// Maximum number of items.
        most: usize,
    },
}

impl ImportError {
    /// Creates an error at a line, counted from 1.
    pub(super) fn line(number: usize, why: impl Into<String>) -> Self {
        Self::At { place: format!("line {number}"), why: why.into() }
    }
}

fn also(others: usize) -> String {
    if others == 0 { String::new() } else { format!(", and {others} more like that") }
}
