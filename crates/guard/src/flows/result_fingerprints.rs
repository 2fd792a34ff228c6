//! Fingerprints of what a tool returned.

use super::fingerprint_table::FingerprintTable;
use super::gram_hasher::GramHasher;
use super::gram_scan::GramScan;
use super::information_window::InformationWindow;
use super::plain_form::plain_form;
use super::{FlowLimits, common_text, value_scan};
use std::ops::Range;

/// Selects the fingerprints of a result that say something new.
pub(super) struct ResultFingerprints<'t> {
    pub(super) hasher: &'t GramHasher,
    pub(super) limits: &'t FlowLimits,
    /// Fingerprints of what callers wrote themselves.
    pub(super) excluded: &'t FingerprintTable,
}

impl ResultFingerprints<'_> {
    /// Calls `add` with each fingerprint of a text.
    pub(super) fn visit(&self, text: &str, add: &mut dyn FnMut(u64)) {
        // A text has no more characters than bytes.
        if text.len() >= self.hasher.gram() {
            self.visit_grams(text, add);
        }
        value_scan::visit(text, self.limits, false, &mut |value| {
            let fingerprint = value.hash(self.hasher);
            if !self.is_excluded(fingerprint) {
                add(fingerprint);
            }
        });
    }

    fn visit_grams(&self, text: &str, add: &mut dyn FnMut(u64)) {
        let mut common = common_text::find(text).into_iter().peekable();
        let mut excluded = self.excluded_places(text).into_iter().peekable();
        let (mut common_end, mut excluded_end) = (0, 0);
        let mut window = InformationWindow::new(self.hasher.gram());
        let mut scan = GramScan::new(*self.hasher);
        for (index, (at, character)) in plain_form(text).enumerate() {
            while let Some(place) = common.next_if(|place| place.start <= at) {
                common_end = common_end.max(place.end);
            }
            while let Some(place) = excluded.next_if(|place| place.start <= index) {
                excluded_end = excluded_end.max(place.end);
            }
            window.push(character, at < common_end || index < excluded_end);
            if let Some(fingerprint) = scan.push(character)
                && window.is_informative()
            {
                add(fingerprint);
            }
        }
    }

    /// Returns the places of what callers wrote themselves, in characters. They count as common, so that a name in a
    /// folder that was asked for does not make the whole path new.
    fn excluded_places(&self, text: &str) -> Vec<Range<usize>> {
        let mut places: Vec<Range<usize>> = Vec::new();
        if self.excluded.len() == 0 {
            return places;
        }
        let gram = self.hasher.gram();
        let mut scan = GramScan::new(*self.hasher);
        for (_, character) in plain_form(text) {
            let is_excluded = scan.push(character).is_some_and(|fingerprint| self.is_excluded(fingerprint));
            let end = scan.count();
            match places.last_mut() {
                _ if !is_excluded => {}
                Some(last) if end - gram <= last.end => last.end = end,
                _ => places.push(end - gram..end),
            }
        }
        places
    }

    fn is_excluded(&self, fingerprint: u64) -> bool {
        self.excluded.find(fingerprint, |_| true).is_some()
    }
}
