//! Proof embedded in the report of a sealed tape: the tape as JSON lines, and its signed heads in a readable table.

use super::escape;
use crate::export::{ExportError, jsonl};
use crate::times::rfc3339;
use signalbox_engine::record::{Entry, SessionInfo, TapeInfo};
use signalbox_seal::{EntrySeal, Head, HeadKind, TapeSeal, hex};
use std::fmt::Write as _;

/// Maximum number of signed heads that are shown: the first ones and the last.
const MAX_HEADS: usize = 20;

/// Gathers the proof while the report is written.
pub(super) struct Proof {
    seal: Option<TapeSeal>,
    /// JSON lines of the tape. `None` once they exceed the maximum size.
    lines: Option<String>,
    most: usize,
    /// First signed heads between entries, their total number, and the last one.
    heads: Vec<Head>,
    count: usize,
    last: Option<Head>,
}

impl Proof {
    /// Starts with the head of the tape. The JSON lines may have at most `most` bytes.
    pub(super) fn new(info: &TapeInfo, sessions: &[(u64, SessionInfo)], most: usize) -> Result<Self, ExportError> {
        let seal = info.seal.as_deref().and_then(TapeSeal::from_bytes);
        let mut proof = Self { seal, lines: None, most, heads: vec![], count: 0, last: None };
        if proof.seal.is_some() {
            proof.lines = Some(String::new());
            proof.line(&jsonl::head_text(info, sessions)?);
        }
        Ok(proof)
    }

    /// Adds the next entry.
    pub(super) fn add(&mut self, entry: &Entry) {
        if self.seal.is_none() {
            return;
        }
        let head = entry.seal.as_deref().and_then(EntrySeal::from_bytes).and_then(|seal| seal.details.head);
        if let Some(head) = head {
            self.count += 1;
            if self.heads.len() < MAX_HEADS {
                self.heads.push(head.clone());
            }
            self.last = Some(head);
        }
        if self.lines.is_some() {
            match jsonl::value(entry) {
                Ok(value) => self.line(&value.to_string()),
                Err(_) => self.lines = None,
            }
        }
    }

    /// Adds a line. Text in a script element ends at the next tag; JSON has `<` only in strings, where it can be
    /// escaped.
    fn line(&mut self, text: &str) {
        let Some(lines) = &mut self.lines else { return };
        lines.push_str(&text.replace('<', "\\u003c"));
        lines.push('\n');
        if lines.len() > self.most {
            self.lines = None;
        }
    }

    /// Returns the section of the page, empty for a tape that was never sealed.
    pub(super) fn html(&self) -> String {
        let Some(seal) = &self.seal else { return String::new() };
        let mut out = "<section id=\"seal\"><h2>Seal</h2>\n".to_owned();
        out.push_str(
            "<p>The tape is sealed: each entry has a hash that depends on all entries before it, and the heads below are signed. \
             What this page shows is made of the tape; the proof is in the tape itself, and its sender can change what the page \
             shows. Know the key from elsewhere.</p>\n",
        );
        out.push_str("<table><thead><tr><th>head<th>entry<th>signed<th>key<th>hash</tr></thead><tbody>\n");
        let row = |out: &mut String, kind: HeadKind, head: &Head| {
            // Writing to a text cannot fail.
            let _ = writeln!(
                out,
                "<tr><td>{}<td>{}<td>{}<td><code>{}</code> <code>{}</code><td><code>{}</code></tr>",
                kind.name(),
                head.seq,
                rfc3339(head.at),
                escape(&head.key_id),
                hex(&head.public_key),
                hex(&head.hash)
            );
        };
        for (kind, head) in [(HeadKind::Opening, &seal.opening), (HeadKind::Checkpoint, &seal.checkpoint)] {
            head.iter().for_each(|head| row(&mut out, kind, head));
        }
        self.heads.iter().for_each(|head| row(&mut out, HeadKind::Interim, head));
        if self.count > self.heads.len() {
            let more = self.count - self.heads.len() - 1;
            if more > 0 {
                let _ = writeln!(out, "<tr><td colspan=\"5\">and {more} more</tr>");
            }
            self.last.iter().for_each(|head| row(&mut out, HeadKind::Interim, head));
        }
        seal.closing.iter().for_each(|head| row(&mut out, HeadKind::Closing, head));
        out.push_str("</tbody></table>\n");
        match &self.lines {
            Some(lines) => {
                out.push_str(
                    "<p>This file holds the whole tape as JSON lines: <code>examples/verify-seal/tape.py</code> of Signalbox verifies \
                     it as it is (not the page around it), and <code>tape import</code> takes the lines between the two tags of the script element \
                     <code>tape</code>.</p>\n<script type=\"application/x-ndjson\" id=\"tape\">\n",
                );
                out.push_str(lines);
                out.push_str("</script>\n");
            }
            None => out.push_str(
                "<p class=\"note\">The tape is too large to be in this file, so that the page alone proves nothing. Export it as JSON \
                 lines or as a tape file, which carry the proof.</p>\n",
            ),
        }
        out.push_str("</section>\n");
        out
    }
}
