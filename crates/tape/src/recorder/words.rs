//! Words that come again and again, so that each is redacted once: the conditions of rules, and the names of tools.

use crate::redact::Redactor;
use signalbox_engine::keys::TextMap;
use std::sync::Arc;

/// Most words that are remembered. Beyond, all are forgotten and learned again.
const MAX_WORDS: usize = 4_096;
/// Longer texts are not worth remembering.
const MAX_LENGTH: usize = 512;

/// What may be kept of each word.
#[derive(Default, Debug)]
pub(crate) struct Words(TextMap<Arc<str>, Arc<str>>);

impl Words {
    /// What may be kept of a text.
    pub(crate) fn redacted(&mut self, text: &Arc<str>, redactor: &Redactor) -> Arc<str> {
        if let Some(kept) = self.0.get(text) {
            return Arc::clone(kept);
        }
        let redacted = redactor.text(text.to_string());
        let kept: Arc<str> = if *redacted == **text { Arc::clone(text) } else { redacted.into() };
        if text.len() <= MAX_LENGTH {
            if self.0.len() >= MAX_WORDS {
                self.0.clear();
            }
            self.0.insert(Arc::clone(text), Arc::clone(&kept));
        }
        kept
    }

    /// What may be kept of conditions.
    pub(crate) fn all_redacted(
        &mut self,
        conditions: Arc<[(Arc<str>, bool)]>,
        redactor: &Redactor,
    ) -> Arc<[(Arc<str>, bool)]> {
        let same = conditions.iter().all(|(text, _)| Arc::ptr_eq(&self.redacted(text, redactor), text));
        match same {
            true => conditions,
            false => conditions.iter().map(|(text, held)| (self.redacted(text, redactor), *held)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::RedactionSettings;

    #[test]
    fn a_word_is_redacted_the_same_each_time_and_the_memory_has_a_bound() {
        let redactor = Redactor::new(&RedactionSettings::default(), [1; 32]).unwrap();
        let mut words = Words::default();
        let secret: Arc<str> = "text contains AKIAABCDEFGHIJKLMNOP".into();
        let first = words.redacted(&secret, &redactor);
        assert!(!first.contains("AKIA"), "{first}");
        assert_eq!(words.redacted(&secret, &redactor), first);
        for number in 0..2 * MAX_WORDS {
            let word: Arc<str> = format!("tool{number}").into();
            assert_eq!(words.redacted(&word, &redactor), word);
            assert!(words.0.len() <= MAX_WORDS);
        }
        assert_eq!(words.redacted(&secret, &redactor), first);
    }
}
