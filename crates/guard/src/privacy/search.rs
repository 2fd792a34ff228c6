//! Search of one text, segment by segment.

use super::segment::Segment;
use super::{MAX_SPANS, PrivacyClass, PrivacyClasses, PrivacyFindings, PrivateSpan};
use super::{credential, digit_scan, email, phone, placeholder};
use std::ops::Range;

/// Number of bytes that may be searched again after findings, per byte of the text and as a minimum per text.
const WORK_PER_BYTE: usize = 8;
const WORK: usize = 1 << 20;

/// State of the search of one text.
pub(super) struct Search<'a> {
    text: &'a str,
    classes: PrivacyClasses,
    spans: Vec<PrivateSpan>,
    /// Segments that have to be searched.
    segments: Vec<Range<usize>>,
    /// Number of bytes that may still be searched.
    work: usize,
    is_incomplete: bool,
}

impl<'a> Search<'a> {
    /// Creates the search of the segments between the placeholders that the text already has.
    pub(super) fn new(text: &'a str, classes: PrivacyClasses) -> Self {
        let segments = segments_between(text, &(0..text.len()), placeholder::places(text).into_iter());
        let work = text.len().saturating_mul(WORK_PER_BYTE).max(WORK);
        Self { text, classes, spans: Vec::new(), segments, work, is_incomplete: false }
    }

    /// Searches every segment, and the segments that its findings leave.
    pub(super) fn run(mut self) -> PrivacyFindings {
        while let Some(range) = self.segments.pop() {
            let Some(work) = self.work.checked_sub(range.len()) else {
                self.is_incomplete = true;
                break;
            };
            self.work = work;
            let found = self.search(Segment::new(self.text, range.clone()));
            if !found.is_empty() {
                let places = found.iter().map(|span| span.range.clone());
                self.segments.extend(segments_between(self.text, &range, places));
                self.spans.extend(found);
            }
            if self.spans.len() > MAX_SPANS {
                self.is_incomplete = true;
                break;
            }
        }
        self.spans.sort_unstable_by_key(|span| span.range.start);
        self.spans.truncate(MAX_SPANS);
        PrivacyFindings { spans: self.spans, is_incomplete: self.is_incomplete }
    }

    /// Returns the spans of one segment. Overlapping findings become one span.
    fn search(&mut self, segment: Segment<'_>) -> Vec<PrivateSpan> {
        let has = |class| self.classes.contains(class);
        let mut spans = Vec::new();
        if has(PrivacyClass::Credential) {
            self.is_incomplete |= !credential::find(segment, &mut spans);
        }
        if has(PrivacyClass::Email) {
            email::find(segment, &mut spans);
        }
        if has(PrivacyClass::Phone) {
            phone::find_international(segment, &mut spans);
        }
        if has(PrivacyClass::Phone) || has(PrivacyClass::Iban) || has(PrivacyClass::Card) {
            digit_scan::find(segment, self.classes, &mut spans);
        }
        spans.retain(|span| !span.range.is_empty());
        spans.sort_by_key(|span| span.range.start);
        spans.dedup_by(|next, last| {
            let is_overlap = next.range.start < last.range.end;
            if is_overlap {
                last.range.end = last.range.end.max(next.range.end);
                if next.class < last.class {
                    last.class = next.class;
                    last.placeholder = std::mem::take(&mut next.placeholder);
                }
            }
            is_overlap
        });
        spans
    }
}

/// Returns the parts of a range that the places leave. The places are in order.
///
/// A space that separates a placeholder from an opening bracket belongs to the placeholder, because redaction adds it.
fn segments_between(text: &str, range: &Range<usize>, places: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut segments = Vec::new();
    let mut start = range.start;
    for place in places {
        segments.push(start..place.start);
        let rest = text.get(place.end..).unwrap_or_default();
        let is_apart = rest.strip_prefix(' ').is_some_and(|rest| rest.starts_with(placeholder::OPENS_LINK));
        start = place.end + usize::from(is_apart);
    }
    segments.push(start..range.end);
    segments.retain(|segment| segment.start < segment.end);
    segments
}
