//! Why a recording could not be read.

/// Why a recording could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ImportError {
    /// Something at this place makes no sense.
    #[error("{place}: {why}")]
    At {
        /// Where: `line 17`, `log.entries[3]`, `packet 4`.
        place: String,
        /// What is wrong there.
        why: String,
    },
    /// Nothing in it is an MCP message.
    #[error("the file holds no MCP messages; {0}")]
    Empty(&'static str),
    /// Nothing that is an MCP message could be read.
    #[error("the file holds no MCP messages that can be read: {first}{}", also(*.others))]
    AllLeftOut {
        /// What was left out first.
        first: String,
        /// How many things more were left out.
        others: usize,
    },
    /// The content is that of no known format.
    #[error(
        "the format cannot be told from the content; name it with --format (har, pcap, messages, mcporter, mcp-rec, mcp-recorder, mcpsnoop)"
    )]
    Unknown,
    /// The file is larger than is read.
    #[error("the file is larger than {most} MiB, the most that can be imported at once")]
    TooLarge {
        /// How large it may be, in MiB.
        most: u64,
    },
    /// There is more in it than is read.
    #[error("the file holds more than {most} {what}, the most that can be imported at once")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        most: usize,
    },
}

impl ImportError {
    /// An error at a line, from 1.
    pub(super) fn line(number: usize, why: impl Into<String>) -> Self {
        Self::At { place: format!("line {number}"), why: why.into() }
    }
}

fn also(others: usize) -> String {
    if others == 0 { String::new() } else { format!(", and {others} more like that") }
}
