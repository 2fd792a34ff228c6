//! What was overheard, in whatever file it was written down.

use super::error::ImportError;
use super::left_out::LeftOut;
use bytes::Bytes;
use signalbox_engine::fact::Carried;
use std::collections::HashMap;
use std::sync::Arc;

/// Most messages that are read.
pub const MAX_MESSAGES: usize = 1_000_000;
/// Most conversations that are read.
pub const MAX_TALKS: usize = 100_000;

/// Which side sent something.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Side {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// One conversation of a client and a server, as far as the file tells of it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Talk {
    /// The session id that the client was given.
    pub external: Option<String>,
    /// The transport; empty if the file does not tell.
    pub transport: &'static str,
    /// A name for the server.
    pub server: Option<String>,
    /// The revision that HTTP headers name.
    pub revision: Option<String>,
    /// True for requests of the new era over HTTP, which belong to no session.
    pub stateless: bool,
}

/// One message.
#[derive(Clone, Debug)]
pub struct Heard {
    /// When, in nanoseconds since 1970, if the file tells.
    pub at: Option<u64>,
    /// The conversation, by its place in [`Recording::talks`].
    pub talk: usize,
    /// Who sent it.
    pub from: Side,
    /// The message.
    pub bytes: Bytes,
    /// The id of the request in whose event stream it came.
    pub during: Option<Bytes>,
    /// The server, where one conversation is with several.
    pub server: Option<Arc<str>>,
    /// The transport's data about it.
    pub carried: Option<Arc<Carried>>,
}

impl Heard {
    /// A message of which nothing else is known.
    #[must_use]
    pub fn new(talk: usize, from: Side, at: Option<u64>, bytes: Bytes) -> Self {
        Self { at, talk, from, bytes, during: None, server: None, carried: None }
    }
}

/// All that a file tells.
#[derive(Clone, Default, Debug)]
pub struct Recording {
    /// The conversations.
    pub talks: Vec<Talk>,
    /// The messages, in their order.
    pub heard: Vec<Heard>,
    /// What could not be read, the first things if there are many.
    pub left_out: Vec<LeftOut>,
    by_key: HashMap<String, usize>,
}

impl Recording {
    /// The conversation of this key, begun if it is new.
    ///
    /// # Errors
    /// If there are too many.
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
    /// If there are too many.
    pub fn push(&mut self, heard: Heard) -> Result<(), ImportError> {
        if self.heard.len() >= MAX_MESSAGES {
            return Err(ImportError::TooMany { what: "messages", most: MAX_MESSAGES });
        }
        self.heard.push(heard);
        Ok(())
    }

    /// When it begins and ends, if the file tells.
    #[must_use]
    pub fn times(&self) -> Option<(u64, u64)> {
        let times = || self.heard.iter().filter_map(|heard| heard.at);
        Some((times().min()?, times().max()?))
    }
}
