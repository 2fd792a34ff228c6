//! Entries of a recording, in the order in which they go to a tape.

use super::conversation::{Conversation, Draft, ImportState};
use super::recording::{ImportedMessage, ImportedRecording, Side, Talk};
use crate::recorder::SessionHash;
use crate::redact::Redactor;
use signalbox_engine::Principal;
use signalbox_engine::record::{Content, Entry};
use signalbox_wire::{json, meta};
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of server offers that are written; each may have megabytes.
const MAX_OFFERS: usize = 100;
/// Maximum length of a server name that is taken from its own description.
const MAX_NAME: usize = 64;

/// Iterator that makes entries of a recording, message by message.
pub struct Entries {
    conversations: Vec<Conversation>,
    heard: std::vec::IntoIter<ImportedMessage>,
    shared: ImportState,
    principal: Arc<str>,
    drafts: Vec<Draft>,
    ready: VecDeque<Entry>,
    seq: u64,
    at: u64,
    ended: bool,
}

impl Entries {
    /// Creates the entries of `recording`, redacted by `redactor`. A message before the first known time is given the
    /// time `started`. Without a hash, session ids are left out.
    #[must_use]
    pub fn new(mut recording: ImportedRecording, redactor: Redactor, hash: Option<&SessionHash>, started: u64) -> Self {
        name_servers(&mut recording, &redactor);
        let conversation = |(number, talk): (u64, Talk)| Conversation::new(number, talk, hash);
        Self {
            conversations: (1..).zip(recording.talks).map(conversation).collect(),
            heard: recording.heard.into_iter(),
            shared: ImportState { redactor, exchanges: 0, offers: MAX_OFFERS },
            principal: Arc::from(Principal::anonymous().as_str()),
            drafts: Vec::new(),
            ready: VecDeque::new(),
            seq: 0,
            at: started,
            ended: false,
        }
    }

    fn step(&mut self, heard: &ImportedMessage) {
        // The clock of a tape must not go backwards.
        self.at = self.at.max(heard.at.unwrap_or(0));
        let Some(conversation) = self.conversations.get_mut(heard.talk) else { return };
        conversation.heard(self.at, heard, &mut self.shared, &mut self.drafts);
        let session = conversation.session();
        for (exchange, content) in self.drafts.drain(..) {
            self.seq += 1;
            // Offers and callers belong to no session.
            let session = session.filter(|_| !matches!(content, Content::Backend(_)));
            let entry = Entry::new(self.seq, self.at, Arc::clone(&self.principal), content);
            self.ready.push_back(Entry { session, exchange, ..entry });
        }
    }

    fn end(&mut self) {
        for session in self.conversations.iter().filter_map(Conversation::session) {
            self.seq += 1;
            let entry = Entry::new(self.seq, self.at, Arc::clone(&self.principal), Content::SessionEnded);
            self.ready.push_back(Entry { session: Some(session), ..entry });
        }
    }
}

impl Iterator for Entries {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        loop {
            if let Some(entry) = self.ready.pop_front() {
                return Some(entry);
            }
            match self.heard.next() {
                Some(heard) => self.step(&heard),
                None if self.ended => return None,
                None => {
                    self.ended = true;
                    self.end();
                }
            }
        }
    }
}

/// Names servers that the file does not name after their own description.
fn name_servers(recording: &mut ImportedRecording, redactor: &Redactor) {
    let mut nameless = recording.talks.iter().filter(|talk| talk.server.is_none()).count();
    for heard in recording.heard.iter().filter(|heard| heard.from == Side::Server) {
        if nameless == 0 {
            return;
        }
        let Some(talk) = recording.talks.get_mut(heard.talk).filter(|talk| talk.server.is_none()) else { continue };
        let paths = [["result", "serverInfo", "name"].as_slice(), &["result", meta::META, meta::SERVER_INFO, "name"]];
        let name = paths.iter().find_map(|path| json::path(&heard.bytes, path));
        let name = name.and_then(|span| json::string(span.of(&heard.bytes)));
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            talk.server = Some(redactor.text(name.chars().take(MAX_NAME).collect()));
            nameless -= 1;
        }
    }
}
