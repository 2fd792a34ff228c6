//! Changes to a message, or to JSON within one of its strings.

use super::escape_map::EscapeMap;
use super::patterns::{Hit, inner};
use signalbox_wire::{Edits, Span};

/// Changes at positions of one text.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    all: Vec<(Span, String)>,
    /// True if the search may have missed something, so that nothing may be kept.
    pub(crate) incomplete: bool,
}

impl Changes {
    pub(crate) fn replace(&mut self, span: Span, text: impl Into<String>) {
        self.all.push((span, text.into()));
    }

    pub(crate) fn remove(&mut self, span: Span) {
        self.replace(span, "");
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn into_edits(self) -> Edits {
        let mut edits = Edits::new();
        self.all.into_iter().for_each(|(span, text)| edits.replace(span, text));
        edits
    }

    /// Adds matches in the text to the changes of its JSON. If two overlap, the replacement of the first stands for
    /// both.
    pub(crate) fn beside(&mut self, others: Vec<Hit>) {
        let others = others.into_iter().map(|(from, to, text)| (Span::new(from, to), text));
        let all = &mut self.all;
        all.extend(others);
        all.sort_by_key(|(span, _)| (span.start, std::cmp::Reverse(span.end)));
        all.dedup_by(|(next, _), (kept, _)| {
            let overlap = next.start < kept.end;
            if overlap {
                kept.end = kept.end.max(next.end);
            }
            overlap
        });
    }

    /// Takes over the changes to the JSON within a string, and what else was found in its text.
    pub(crate) fn within(&mut self, mut embedded: Self, others: Vec<Hit>, written: &EscapeMap) {
        self.incomplete |= embedded.incomplete;
        embedded.beside(others);
        for (span, text) in embedded.all {
            self.replace(written.span(span.start as usize, span.end as usize), inner(&text));
        }
    }
}
