//! Formats of recordings, and their detection from the content.

use super::error::ImportError;
use super::pcap::is_capture;
use crate::export::jsonl;
use crate::file;
use signalbox_wire::json;

/// Readable formats of recordings.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ImportFormat {
    /// HTTP Archive, version 1.2.
    Har,
    /// Packet capture, pcap or pcapng.
    Pcap,
    /// One MCP message per line, bare or in an object with its direction and time.
    Messages,
    /// NDJSON of `mcporter record`.
    Mcporter,
    /// JSON lines of `mcp-rec record`.
    McpRec,
    /// Cassette that `mcp-recorder` wrote.
    McpRecorder,
    /// Session log of `mcpsnoop`.
    Mcpsnoop,
}

/// Kind of content of a file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum FileContent {
    /// A tape file of Signalbox.
    Tape,
    /// Lines as [`jsonl`] writes them.
    Jsonl,
    /// A recording of another program.
    Other(ImportFormat),
}

impl ImportFormat {
    /// Returns the name of the format in messages and in the head of a tape.
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

    /// Returns where messages are searched, for the user whose file holds none.
    pub(super) fn holds(self) -> &'static str {
        match self {
            Self::Har => "messages are looked for in the bodies of POST requests and their answers",
            Self::Pcap => "messages are looked for in plain HTTP/1 and WebSocket, on every port",
            Self::McpRecorder => "messages are looked for in `interactions`",
            _ => "one JSON-RPC message is looked for in each line",
        }
    }
}

impl FileContent {
    /// Detects the kind of `file` from its content alone.
    ///
    /// # Errors
    /// Fails if the content matches no known format.
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
        // A document that is printed over many lines has no complete value in the first line.
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
