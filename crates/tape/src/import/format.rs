//! Which program wrote a recording, and how that is told from its content.

use super::error::ImportError;
use super::pcap::is_capture;
use crate::export::jsonl;
use crate::file;
use signalbox_wire::json;

/// Recordings of other programs that can be read.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ImportFormat {
    /// HTTP Archive 1.2.
    Har,
    /// A packet capture, pcap or pcapng.
    Pcap,
    /// One MCP message a line, bare, or in an object that tells its direction and time.
    Messages,
    /// NDJSON of `mcporter record`.
    Mcporter,
    /// JSON lines of `mcp-rec record`.
    McpRec,
    /// A cassette of `mcp-recorder`.
    McpRecorder,
    /// A session log of `mcpsnoop`.
    Mcpsnoop,
}

/// What the content of a file is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// A tape file.
    Tape,
    /// The lines that [`jsonl`] writes.
    Jsonl,
    /// A recording of another program.
    Other(ImportFormat),
}

impl ImportFormat {
    /// The word for it in messages and in the head of a tape.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Har => "har",
            Self::Pcap => "pcap",
            Self::Messages => "messages",
            Self::Mcporter => "mcporter",
            Self::McpRec => "mcp-rec",
            Self::McpRecorder => "mcp-recorder",
            Self::Mcpsnoop => "mcpsnoop",
        }
    }

    /// Where messages are looked for, for a person who has a file without any.
    pub(super) fn holds(self) -> &'static str {
        match self {
            Self::Har => "messages are looked for in the bodies of POST requests and their answers",
            Self::Pcap => "messages are looked for in plain HTTP/1 and WebSocket, on every port",
            Self::McpRecorder => "messages are looked for in `interactions`",
            _ => "one JSON-RPC message is looked for in each line",
        }
    }
}

impl Content {
    /// What this is, told from the content alone.
    ///
    /// # Errors
    /// If it is nothing that is known.
    pub fn of(file: &[u8]) -> Result<Self, ImportError> {
        if file.starts_with(&file::frame::MAGIC) {
            return Ok(Self::Tape);
        }
        if is_capture(file) {
            return Ok(Self::Other(ImportFormat::Pcap));
        }
        let text = file.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(file);
        let first = text.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty()).unwrap_or_default();
        let first = first.trim_ascii();
        // A document that is printed over many lines has no whole value in the first.
        let whole = json::skip_value(first, 0) == Some(first.len()) && !first.is_empty();
        let object = if whole { first } else { text };
        let is_document = |name| json::member(object, name).is_some();
        if is_document("log") {
            return Ok(Self::Other(ImportFormat::Har));
        }
        if is_document("interactions") {
            return Ok(Self::Other(ImportFormat::McpRecorder));
        }
        if whole { Ok(Self::of_line(first)) } else { Err(ImportError::Unknown) }
    }

    fn of_line(line: &[u8]) -> Self {
        let has = |path: &[&str]| json::path(line, path).is_some();
        let text = |name| json::member(line, name).and_then(|span| json::string(span.of(line)));
        if text("format").is_some_and(|format| format == jsonl::FORMAT) {
            return Self::Jsonl;
        }
        Self::Other(if has(&["_meta", "dir"]) && has(&["_meta", "ts"]) {
            ImportFormat::Mcporter
        } else if has(&["session_id"]) && has(&["direction"]) && has(&["seq"]) {
            ImportFormat::Mcpsnoop
        } else if has(&["ts"]) && has(&["dir"]) && has(&["msg"]) {
            ImportFormat::McpRec
        } else {
            ImportFormat::Messages
        })
    }
}
