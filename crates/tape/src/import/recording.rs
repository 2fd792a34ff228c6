//! Recorded conversations, independent of the format they were stored in.

use super::error::ImportError;
use super::left_out::LeftOut;
use bytes::Bytes;
use signalbox_engine::fact::TransportData;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of messages that are read.
pub const MAX_MESSAGES: usize = 1_000_000;
/// Maximum number of conversations that are read.
pub const MAX_TALKS: usize = 100_000;

/// Sender of a message.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Side {
    Client,
    Server,
}

/// One conversation of a client and a server, as far as the file describes it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Talk {
    /// Session id that the server assigned.
    pub external: Option<String>,
    /// Name of the transport; empty if the file does not state it.
    pub transport: &'static str,
    /// Name of the server.
    pub server: Option<String>,
    /// Revision named in HTTP headers.
    pub revision: Option<String>,
    /// True for requests of the new era over HTTP, which belong to no session.
    pub stateless: bool,
}

/// One message of a recording.
#[derive(Clone, Debug)]
pub struct ImportedMessage {
    /// Time in nanoseconds since 1970, if the file states it.
    pub at: Option<u64>,
    /// Index of the conversation in [`ImportedRecording::talks`].
    pub talk: usize,
    /// Sender of the message.
    pub from: Side,
    pub bytes: Bytes,
    /// Id of the request in whose event stream the message came.
    pub during: Option<Bytes>,
    /// Name of the server, if one conversation has several.
    pub server: Option<Arc<str>>,
    /// Data of the transport about the message.
    pub carried: Option<Arc<TransportData>>,
}

impl ImportedMessage {
    /// Creates a message with its mandatory properties only.
    #[must_use]
    pub fn new(talk: usize, from: Side, at: Option<u64>, bytes: Bytes) -> Self {
        Self { at, talk, from, bytes, during: None, server: None, carried: None }
    }
}

/// All conversations of a file.
#[derive(Clone, Default, Debug)]
pub struct ImportedRecording {
    pub talks: Vec<Talk>,
    /// Messages in the order of the file.
    pub heard: Vec<ImportedMessage>,
    /// Omitted parts of the file; only the first ones if there are many.
    pub left_out: Vec<LeftOut>,
    by_key: HashMap<String, usize>,
}

impl ImportedRecording {
    /// Returns the conversation of this key, and creates it if it is new.
    ///
    /// # Errors
    /// Fails if there are too many conversations.
    pub fn talk(&mut self, key: &str, make: impl FnOnce() -> Talk) -> Result<usize, ImportError> {
        if let Some(known) = self.by_key.get(key) {
            return Ok(*known);
        }
        if self.talks.len() >= MAX_TALKS {
            return Err(ImportError::TooMany { what: "sessions", most: MAX_TALKS });
        }
        self.talks.push(make());
        self.by_key.insert(key.to_owned(), self.talks.len() - 1);
        Ok(self.talks.len() - 1)
    }

    /// Adds a message.
    ///
    /// # Errors
    /// Fails if there are too many messages.
    pub fn push(&mut self, heard: ImportedMessage) -> Result<(), ImportError> {
        if self.heard.len() >= MAX_MESSAGES {
            return Err(ImportError::TooMany { what: "messages", most: MAX_MESSAGES });
        }
        self.heard.push(heard);
        Ok(())
    }

    /// Returns the first and the last time, if the file states times.
    #[must_use]
    pub fn times(&self) -> Option<(u64, u64)> {
        let times = || self.heard.iter().filter_map(|heard| heard.at);
        Some((times().min()?, times().max()?))
    }
}
