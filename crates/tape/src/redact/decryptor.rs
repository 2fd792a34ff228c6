//! Restores encrypted secrets for the owner of the key.

use super::cipher::{EncryptionKey, MARK, MAX_KEY_ID, PlaintextKind, is_of_id};
use bytes::Bytes;
use memchr::memmem;
use signalbox_engine::record::{Body, Content, DecisionEntry, Entry};
use signalbox_wire::json;
use std::sync::Arc;

/// Decrypts tokens with a set of keys. Tokens of other keys stay unchanged and are counted.
#[derive(Debug, Default)]
pub struct Decryptor {
    keys: Vec<EncryptionKey>,
    opened: u64,
    left: u64,
}

/// A token in a text.
struct Token<'a> {
    id: &'a [u8],
    sealed: &'a [u8],
    end: usize,
}

impl Decryptor {
    /// Creates a decryptor with these keys.
    #[must_use]
    pub fn new(keys: Vec<EncryptionKey>) -> Self {
        Self { keys, opened: 0, left: 0 }
    }

    /// Returns the number of restored secrets, and of those under other keys or damaged.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.opened, self.left)
    }

    /// Restores the secrets of an entry. Its body must be complete.
    #[must_use]
    pub fn entry(&mut self, mut entry: Entry) -> Entry {
        match &mut entry.content {
            Content::Message(message) => {
                self.optional(&mut message.subject);
                if let Body::Whole(bytes) = &mut message.body {
                    *bytes = self.message(bytes);
                }
            }
            Content::Finished(finished) => self.optional(&mut finished.subject),
            Content::Decisions(list) => list.iter_mut().for_each(|decision| self.decision(Arc::make_mut(decision))),
            Content::Refused(refused) => self.text(&mut refused.detail),
            Content::Rules(rules) => self.text(&mut rules.text),
            Content::Backend(seen) => {
                for (_, part) in &mut seen.parts {
                    *part = self.message(part);
                }
            }
            _ => {}
        }
        entry
    }

    fn decision(&mut self, decision: &mut DecisionEntry) {
        self.text(&mut decision.detail);
        decision.conditions = decision.conditions.iter().map(|(text, held)| (self.shared(text), *held)).collect();
        decision.inputs.iter_mut().for_each(|(_, text)| self.text(text));
    }

    fn optional(&mut self, text: &mut Option<Arc<str>>) {
        if let Some(text) = text {
            *text = self.shared(text);
        }
    }

    fn shared(&mut self, text: &Arc<str>) -> Arc<str> {
        let mut opened = text.to_string();
        self.text(&mut opened);
        if opened == **text { Arc::clone(text) } else { opened.into() }
    }

    fn text(&mut self, text: &mut String) {
        let opened = self.message(&Bytes::copy_from_slice(text.as_bytes()));
        if let Ok(opened) = String::from_utf8(opened.into()) {
            *text = opened;
        }
    }

    /// Restores the secrets of a message or any other text.
    #[must_use]
    pub fn message(&mut self, bytes: &Bytes) -> Bytes {
        // Within JSON, a restored secret must be written as JSON.
        let is_json = matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'['));
        let mut out = Vec::new();
        let mut done = 0;
        let mut at = 0;
        while let Some(found) = memmem::find(&bytes[at..], MARK.as_bytes()) {
            let start = at + found;
            let Some(token) = token(bytes, start) else {
                at = start + MARK.len();
                continue;
            };
            at = token.end;
            let Some((what, plain)) = self.open(&token) else { continue };
            let (from, to, put) = match (what, is_json, alone(bytes, start, token.end)) {
                (PlaintextKind::Json, true, Some(depth)) => {
                    let quote = 1 << depth;
                    (start - quote, token.end + quote, escaped(&plain, depth))
                }
                (PlaintextKind::Text, true, Some(depth)) => (start, token.end, escaped(&plain, depth + 1)),
                (_, true, None) => (start, token.end, escaped(&plain, 1)),
                (_, false, _) => (start, token.end, plain),
            };
            out.extend_from_slice(&bytes[done..from]);
            out.extend_from_slice(&put);
            done = to;
        }
        if done == 0 {
            return bytes.clone();
        }
        out.extend_from_slice(&bytes[done..]);
        out.into()
    }

    fn open(&mut self, token: &Token<'_>) -> Option<(PlaintextKind, Vec<u8>)> {
        let opened = self.keys.iter().find_map(|key| key.open(token.id, token.sealed));
        match &opened {
            Some(_) => self.opened += 1,
            None => self.left += 1,
        }
        opened
    }
}

/// Returns the token at this position, if there is one.
fn token(bytes: &[u8], start: usize) -> Option<Token<'_>> {
    let rest = bytes.get(start + MARK.len()..)?;
    let id = rest.iter().take(MAX_KEY_ID + 1).take_while(|byte| is_of_id(**byte)).count();
    if id == 0 || rest.get(id) != Some(&b':') {
        return None;
    }
    let sealed = rest.get(id + 1..)?;
    let is_base64 = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/".contains(*byte);
    let digits = sealed.iter().take_while(is_base64).count();
    let length = match digits % 4 {
        2 if sealed[digits..].starts_with(b"==") => digits + 2,
        3 if sealed[digits..].starts_with(b"=") => digits + 1,
        _ => return None,
    };
    let end = start + MARK.len() + id + 1 + length;
    Some(Token { id: &rest[..id], sealed: &sealed[..length], end })
}

/// Returns the nesting depth of the string that consists only of this token, in JSON within JSON. Its quotes are `"`,
/// `\"`, `\\\"` and so on.
fn alone(bytes: &[u8], start: usize, end: usize) -> Option<u32> {
    let slashes = bytes.get(end..)?.iter().take_while(|byte| **byte == b'\\').count();
    let quote = bytes.get(end..end + slashes + 1)?;
    let same = quote.ends_with(b"\"") && bytes.get(..start)?.ends_with(quote);
    let closes = !bytes.get(..start - quote.len())?.ends_with(b"\\");
    (same && closes && quote.len().is_power_of_two()).then(|| quote.len().trailing_zeros())
}

/// Escapes a text for strings of this nesting depth, without the quotes.
fn escaped(plain: &[u8], depth: u32) -> Vec<u8> {
    let mut text = plain.to_vec();
    for _ in 0..depth {
        let quoted = json::quote(&String::from_utf8_lossy(&text));
        text = quoted.as_bytes()[1..quoted.len() - 1].to_vec();
    }
    text
}
