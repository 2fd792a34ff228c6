//! Entries of facts that are no messages: lost messages, refused connections, backends and rules.

use super::EntryBuilder;
use signalbox_engine::fact::{LostFact, RefusedFact};
use signalbox_engine::record::{BackendOffer, Content, Entry, LostEntry, RefusedEntry, RulesEntry};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

impl EntryBuilder {
    pub(super) fn lost(&mut self, lost: &LostFact, out: &mut Vec<Entry>) {
        let at = self.clock.at(lost.at);
        let number = lost.exchange.map(|id| id.0);
        if self.sampling_buffer.drops(number) {
            self.counters.sampled_out.fetch_add(1, Relaxed);
            return;
        }
        let content = Content::Lost(LostEntry { number: lost.number, point: lost.point, reason: lost.reason.into() });
        let session = self.session(lost.session);
        self.put(at, session, number, lost.caller.principal().shared(), content, out);
    }

    pub(super) fn refused(&mut self, refused: &RefusedFact, out: &mut Vec<Entry>) {
        let at = self.clock.at(refused.at);
        let client = Some(self.client(at, &refused.caller, None));
        let detail = self.redactor.text(refused.detail.clone());
        let (status, reason) = (refused.status, refused.reason.into());
        let content = Content::Refused(RefusedEntry { status, reason, detail, client });
        let session = self.session(refused.session);
        self.put(at, session, None, refused.caller.principal().shared(), content, out);
    }

    pub(super) fn backend(&mut self, at: Instant, mut seen: BackendOffer, out: &mut Vec<Entry>) {
        let at = self.clock.at(at);
        for (_, part) in &mut seen.parts {
            let (kept, redacted) = self.redactor.bytes(part);
            *part = kept;
            seen.redacted |= redacted;
        }
        self.put(at, None, None, Arc::default(), Content::Backend(Box::new(seen)), out);
    }

    pub(super) fn rules(&mut self, at: Instant, mut rules: RulesEntry, out: &mut Vec<Entry>) {
        let at = self.clock.at(at);
        let kept = self.redactor.text(rules.text.clone());
        rules.redacted |= kept != rules.text;
        rules.text = kept;
        self.put(at, None, None, Arc::default(), Content::Rules(rules), out);
    }
}
