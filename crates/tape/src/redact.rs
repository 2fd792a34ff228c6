//! Takes secrets out of messages before they are stored.
//!
//! Redaction works on the original bytes: everything that no rule names stays unchanged, byte for byte.

mod action;
mod changes;
mod cipher;
mod decryptor;
mod escape_map;
mod keys;
mod patterns;
mod pointers;
mod settings;
#[cfg(test)]
mod tests;
mod walk;

pub use action::Action;
pub use cipher::{BadKey, EncryptionKey, MAX_KEY_ID};
pub use decryptor::Decryptor;
pub use settings::{BadRedaction, KeyRule, PathRule, PatternRule, RedactionSettings};

use action::Hashing;
pub(crate) use action::REPLACEMENT;
use bytes::Bytes;
use changes::Changes;
use keys::Keys;
use patterns::Patterns;
use pointers::Pointers;
use signalbox_engine::message_redactor::{MessageRedactor, RedactedMessage};
use signalbox_wire::{Envelope, Span, json};
use std::sync::Arc;
use walk::{Walk, WalkOutcome};

/// Compiled redaction rules. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Redactor(Option<Arc<Rules>>);

#[derive(Debug)]
struct Rules {
    keys: Arc<Keys>,
    pointers: Arc<Pointers>,
    patterns: Arc<Patterns>,
    hashing: Hashing,
    describe: Vec<String>,
}

/// Result of the redaction of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Redaction {
    /// The message needs no redaction.
    Same,
    /// The message after redaction.
    Changed(Bytes),
    /// The redaction would leave no valid message, so none of it may be kept.
    Withheld,
}

impl Redactor {
    /// Creates a redactor that keeps every byte.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    /// Compiles these rules. The key is for hashes: equal values have equal hashes only under one key, so each tape
    /// should have its own.
    ///
    /// # Errors
    /// Returns the first invalid rule.
    pub fn new(settings: &RedactionSettings, key: [u8; 32]) -> Result<Self, BadRedaction> {
        let rules = Rules {
            keys: Arc::new(Keys::new(&settings.keys)?),
            pointers: Arc::new(Pointers::new(&settings.paths)?),
            patterns: Arc::new(Patterns::new(settings)?),
            hashing: Hashing::new(key),
            describe: settings.describe(),
        };
        Ok(Self((!rules.describe.is_empty()).then(|| Arc::new(rules))))
    }

    /// Returns the same rules with another key for hashes, as another tape needs it.
    #[must_use]
    pub fn with_key(&self, key: [u8; 32]) -> Self {
        let rules = self.0.as_ref().map(|rules| Rules {
            keys: Arc::clone(&rules.keys),
            pointers: Arc::clone(&rules.pointers),
            patterns: Arc::clone(&rules.patterns),
            hashing: Hashing::new(key),
            describe: rules.describe.clone(),
        });
        Self(rules.map(Arc::new))
    }

    /// Describes the rules, one per line, for the head of a tape.
    #[must_use]
    pub fn describe(&self) -> Vec<String> {
        self.0.as_ref().map(|rules| rules.describe.clone()).unwrap_or_default()
    }

    /// Returns true if the redaction of a message depends on its method.
    #[must_use]
    pub(crate) fn asks_for_method(&self) -> bool {
        self.0.as_ref().is_some_and(|rules| rules.pointers.ask_for_method())
    }

    /// Returns true if rules name places in messages.
    #[must_use]
    pub fn has_path_rules(&self) -> bool {
        self.0.as_ref().is_some_and(|rules| !rules.pointers.is_empty())
    }

    /// Redacts a message. `method` is its own, or that of the request that it answers.
    #[must_use]
    pub fn message(&self, bytes: &Bytes, method: Option<&str>) -> Redaction {
        match &self.0 {
            None => Redaction::Same,
            Some(rules) => rules.message(bytes, method),
        }
    }

    /// Redacts bytes that are not a message. Returns true if they have changed.
    #[must_use]
    pub fn bytes(&self, bytes: &Bytes) -> (Bytes, bool) {
        match self.message(bytes, None) {
            Redaction::Same => (bytes.clone(), false),
            Redaction::Changed(bytes) => (bytes, true),
            Redaction::Withheld => (Bytes::from_static(action::REPLACEMENT.as_bytes()), true),
        }
    }

    /// Redacts a text: JSON like a message, any other text by the patterns.
    #[must_use]
    pub fn text(&self, text: String) -> String {
        let Some(rules) = &self.0 else { return text };
        let bytes = Bytes::from(text);
        let kept = match rules.message(&bytes, None) {
            Redaction::Same => bytes,
            Redaction::Changed(bytes) => bytes,
            Redaction::Withheld => Bytes::from_static(action::REPLACEMENT.as_bytes()),
        };
        String::from_utf8(kept.into()).unwrap_or_else(|_| action::REPLACEMENT.to_owned())
    }
}

impl MessageRedactor for Redactor {
    fn redact(&self, message: &Bytes, method: Option<&str>) -> RedactedMessage {
        match self.message(message, method) {
            Redaction::Same => RedactedMessage::Same,
            Redaction::Changed(bytes) => RedactedMessage::Changed(bytes),
            Redaction::Withheld => RedactedMessage::Withheld,
        }
    }
}

impl Rules {
    fn message(&self, bytes: &Bytes, method: Option<&str>) -> Redaction {
        if u32::try_from(bytes.len()).is_err() {
            return Redaction::Withheld;
        }
        let mut changes = Changes::default();
        let mut walk = Walk::new(self, bytes, method);
        let walked = walk.run(&mut changes);
        match walked {
            WalkOutcome::Json => {}
            WalkOutcome::NotJson(at) => {
                walk.documents(at, &mut changes);
                self.patterns.raw(bytes, &self.hashing, &mut changes);
            }
            WalkOutcome::TooDeep => return Redaction::Withheld,
        }
        if changes.incomplete {
            return Redaction::Withheld;
        }
        if changes.is_empty() {
            return Redaction::Same;
        }
        let changed = changes.into_edits().apply(bytes);
        if walked == WalkOutcome::Json && !still_valid(bytes, &changed) {
            return Redaction::Withheld;
        }
        Redaction::Changed(changed)
    }
}

/// Final check before storage: JSON must have stayed JSON, and a message must have stayed a message.
fn still_valid(before: &Bytes, after: &Bytes) -> bool {
    if Envelope::parse(before.clone()).is_ok() {
        return Envelope::parse(after.clone()).is_ok();
    }
    let start = json::skip_whitespace(after, 0);
    json::skip_value(after, start).is_some_and(|end| json::skip_whitespace(after, end) == after.len())
}

/// Position of a value that a rule names.
#[derive(Copy, Clone, Debug)]
struct Place {
    /// Span of the whole member, from its key to its end.
    whole: Span,
    /// Span of the value.
    value: Span,
    /// End of the last preceding member or element that stays.
    before: Option<u32>,
}
