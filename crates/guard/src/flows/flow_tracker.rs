//! Remembers what tools returned and recognises it in arguments.

use super::fingerprint_table::FingerprintTable;
use super::gram_hasher::GramHasher;
use super::gram_scan::GramScan;
use super::plain_form::plain_form;
use super::recorded_calls::RecordedCalls;
use super::result_fingerprints::ResultFingerprints;
use super::{FlowKey, FlowLimits, FlowMatch, FlowSource, value_scan};
use crate::encodings::{TextEncoding, visit_encoded_text, visit_parts};
use std::ops::ControlFlow;
use std::time::Instant;

/// Shares of the memory for calls and for what callers wrote themselves, in sixteenths. The rest is for fingerprints.
const CALLS_SHARE: usize = 1;
const EXCLUDED_SHARE: usize = 3;
/// Maximum length of a string that is joined with others, in bytes.
const MAX_PIECE: usize = 128;
/// Maximum length of joined strings, in bytes.
const MAX_JOINED: usize = 64 << 10;

/// Fingerprints of what the tools of one scope returned: of a session, or of a caller.
///
/// Recording and tracing take linear time. The memory grows as it is needed, up to [`FlowLimits::max_bytes`].
pub struct FlowTracker {
    limits: FlowLimits,
    hasher: GramHasher,
    calls: RecordedCalls,
    fingerprints: FingerprintTable,
    /// Fingerprints of what callers wrote themselves.
    excluded: FingerprintTable,
}

/// Best agreement of one text.
#[derive(Copy, Clone)]
struct Agreement {
    call: u32,
    length: usize,
    is_value: bool,
}

impl FlowTracker {
    /// Creates a tracker. Limits out of their range are moved into it.
    #[must_use]
    pub fn new(limits: FlowLimits, key: FlowKey) -> Self {
        let limits = limits.clamped();
        let share = |sixteenths: usize| limits.max_bytes / 16 * sixteenths;
        Self {
            hasher: GramHasher::new(key, &limits),
            calls: RecordedCalls::new(share(CALLS_SHARE)),
            fingerprints: FingerprintTable::new(share(16 - CALLS_SHARE - EXCLUDED_SHARE)),
            excluded: FingerprintTable::new(share(EXCLUDED_SHARE)),
            limits,
        }
    }

    /// Records the strings of a result. What is excluded does not count. Base64 and hex that hold text are recorded
    /// decoded, too.
    pub fn record<'t>(&mut self, source: FlowSource, texts: impl IntoIterator<Item = &'t str>, now: Instant) {
        if self.calls.is_out_of_numbers() {
            self.forget_all();
        }
        self.calls.expire(self.limits.max_age, now);
        let classes = source.classes;
        let call = self.calls.push(source, now);
        self.fingerprints.forget_before(self.calls.first());
        let Self { limits, hasher, calls, fingerprints, excluded } = self;
        let results = ResultFingerprints { hasher, limits, excluded };
        let mut is_recorded = false;
        let mut add = |fingerprint| {
            is_recorded = true;
            let is_equivalent = |other| calls.get(other).is_some_and(|source| source.classes == classes);
            if let Some(evicted) = fingerprints.insert(fingerprint, call, is_equivalent) {
                calls.mark_cut(evicted);
            }
        };
        for text in texts {
            results.visit(text, &mut add);
            visit_encoded_text(text, &mut |part| results.visit(part, &mut add));
        }
        if !is_recorded {
            self.calls.pop_last();
        }
    }

    /// Excludes what the caller wrote itself, usually the arguments of a call before its result is recorded: a tool
    /// that returns it tells nothing new. Texts that were recorded before stay recorded.
    pub fn exclude<'t>(&mut self, texts: impl IntoIterator<Item = &'t str>) {
        for text in texts {
            let mut scan = GramScan::new(self.hasher);
            for fingerprint in plain_form(text).filter_map(|(_, character)| scan.push(character)) {
                self.excluded.insert(fingerprint, 0, |_| true);
            }
            value_scan::visit(text, &self.limits, true, &mut |value| {
                self.excluded.insert(value.hash(&self.hasher), 0, |_| true);
            });
        }
    }

    /// Returns the longest agreement of an argument with what tools of the wanted classes returned. Encodings of the
    /// argument are undone only if it does not agree as it is written.
    #[must_use]
    pub fn trace(&self, text: &str, wanted_classes: u32, now: Instant) -> Option<FlowMatch> {
        let first = self.calls.first_since(self.limits.max_age, now);
        let accept =
            |call| call >= first && self.calls.get(call).is_some_and(|source| source.classes & wanted_classes != 0);
        if self.fingerprints.len() == 0 {
            return None;
        }
        let mut found = None;
        let _ = visit_parts(text, &mut |part| {
            let Some(agreement) = self.compare(part.text, &accept) else { return ControlFlow::Continue(()) };
            found = self.calls.get(agreement.call).map(|source| FlowMatch {
                source: source.clone(),
                length: agreement.length,
                form: part.layers,
                is_value: agreement.is_value,
            });
            ControlFlow::Break(())
        });
        found
    }

    /// Returns the first agreement of several arguments of a call. Short ones are joined as well, so that a text in
    /// many pieces is recognised.
    #[must_use]
    pub fn trace_all<'t>(
        &self,
        texts: impl IntoIterator<Item = &'t str>,
        wanted_classes: u32,
        now: Instant,
    ) -> Option<FlowMatch> {
        let mut joined = String::new();
        let mut pieces = 0;
        for text in texts {
            if let Some(found) = self.trace(text, wanted_classes, now) {
                return Some(found);
            }
            if text.len() <= MAX_PIECE && joined.len() <= MAX_JOINED {
                joined.push_str(text);
                pieces += 1;
            }
        }
        let found = if pieces > 1 { self.trace(&joined, wanted_classes, now)? } else { return None };
        Some(FlowMatch { form: found.form.within(TextEncoding::Split), ..found })
    }

    /// Forgets what is older than [`FlowLimits::max_age`], and frees its memory. Recording does the same.
    pub fn expire(&mut self, now: Instant) {
        self.calls.expire(self.limits.max_age, now);
        self.fingerprints.forget_before(self.calls.first());
    }

    /// Returns the number of calls that were forgotten before their time, wholly or in part, because memory was short.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.calls.dropped
    }

    /// Returns the memory in use, in bytes. Names of tools are shared and do not count.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.calls.bytes() + self.fingerprints.bytes() + self.excluded.bytes()
    }

    /// Returns the longest agreement of a text as it is.
    fn compare(&self, text: &str, accept: &impl Fn(u32) -> bool) -> Option<Agreement> {
        let gram = self.hasher.gram();
        let mut best: Option<Agreement> = None;
        let mut keep = |agreement: Agreement| {
            if best.is_none_or(|best| best.length < agreement.length) {
                best = Some(agreement);
            }
        };
        // Run of grams that agree with texts of one call, as its call and its range of characters.
        let mut run: Option<(u32, usize, usize)> = None;
        let mut scan = GramScan::new(self.hasher);
        // A text has no more characters than bytes.
        for (_, character) in plain_form(text).take(if text.len() < gram { 0 } else { usize::MAX }) {
            let Some(fingerprint) = scan.push(character) else { continue };
            let Some(call) = self.fingerprints.find(fingerprint, accept) else {
                run = None;
                continue;
            };
            let end = scan.count();
            let start = run.filter(|(other, _, last)| *other == call && end - gram <= *last).map(|(_, start, _)| start);
            let start = start.unwrap_or(end - gram);
            run = Some((call, start, end));
            keep(Agreement { call, length: end - start, is_value: false });
        }
        value_scan::visit(text, &self.limits, true, &mut |value| {
            if let Some(call) = self.fingerprints.find(value.hash(&self.hasher), accept) {
                keep(Agreement { call, length: value.length(), is_value: true });
            }
        });
        best
    }

    fn forget_all(&mut self) {
        let fresh = Self::new(self.limits, FlowKey([0; 16]));
        let dropped = self.calls.dropped + 1;
        (self.calls, self.fingerprints) = (fresh.calls, fresh.fingerprints);
        self.calls.dropped = dropped;
    }
}

impl std::fmt::Debug for FlowTracker {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fingerprints = self.fingerprints.len();
        out.debug_struct("FlowTracker").field("limits", &self.limits).field("fingerprints", &fingerprints).finish()
    }
}
