//! The part of a tape that its caller was sent.
//!
//! A tape has every image of a message, including the backend's original before redaction, a rule or a block. A caller
//! that reads its own calls gets the images on its own side. Of decisions it gets their source and verdict, but not
//! their grounds, which may quote the original.

use signalbox_engine::fact::Point;
use signalbox_engine::record::{Content, DecisionEntry, Entry, TapeKind};
use std::sync::Arc;

/// Returns true if a message at this point is on the client's side, on a tape of this kind. Transparent proxies and
/// imports record each message once, on its way in, and unchanged.
#[must_use]
pub fn is_client_side(kind: TapeKind, point: Point) -> bool {
    match kind {
        TapeKind::Serve | TapeKind::Stdio => matches!(point, Point::ClientIn | Point::ClientOut),
        TapeKind::Wrap | TapeKind::Proxy | TapeKind::Import => true,
    }
}

/// Returns the entry as its caller may read it, or `None` if it only shows traffic between the gateway and a backend.
#[must_use]
pub fn as_sent(kind: TapeKind, mut entry: Entry) -> Option<Entry> {
    match &mut entry.content {
        Content::Message(message) => is_client_side(kind, message.point).then_some(entry),
        Content::Lost(lost) => is_client_side(kind, lost.point).then_some(entry),
        Content::Decisions(list) => {
            for decision in list {
                *decision = Arc::new(without_grounds(decision));
            }
            Some(entry)
        }
        Content::Finished(_) | Content::Gap(_) | Content::SessionEnded => Some(entry),
        Content::Session(_) | Content::Client(_) | Content::Backend(_) | Content::Rules(_) | Content::Refused(_) => {
            None
        }
    }
}

fn without_grounds(decision: &DecisionEntry) -> DecisionEntry {
    DecisionEntry {
        by: decision.by.clone(),
        rule: decision.rule.clone(),
        phase: decision.phase.clone(),
        verdict: decision.verdict.clone(),
        redacted: decision.redacted,
        ..DecisionEntry::default()
    }
}
