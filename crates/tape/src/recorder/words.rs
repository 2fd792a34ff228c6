//! Words that come again and again, so that each is redacted once: the names of tools, the conditions of rules, and whole
//! rulings.

use crate::redact::Redactor;
use signalbox_engine::chain::Ruling;
use signalbox_engine::keys::{KeyMap, TextMap};
use signalbox_engine::record::DecisionEntry;
use std::sync::Arc;

/// Most words, and most rulings, that are remembered. Beyond, all are forgotten and learned again.
const MAX_WORDS: usize = 4_096;
/// Longer texts are not worth remembering.
const MAX_LENGTH: usize = 512;

/// What may be kept of each.
#[derive(Default, Debug)]
pub(crate) struct Words {
    texts: TextMap<Arc<str>, Arc<str>>,
    /// By where the ruling stands. It is held, so that nothing else can come to stand there.
    rulings: KeyMap<usize, (Arc<Ruling>, Arc<DecisionEntry>)>,
}

impl Words {
    /// What may be kept of a text.
    pub(crate) fn redacted(&mut self, text: &Arc<str>, redactor: &Redactor) -> Arc<str> {
        if let Some(kept) = self.texts.get(text) {
            return Arc::clone(kept);
        }
        let kept: Arc<str> = redactor.text(text.to_string()).into();
        if text.len() <= MAX_LENGTH {
            if self.texts.len() >= MAX_WORDS {
                self.texts.clear();
            }
            self.texts.insert(Arc::clone(text), Arc::clone(&kept));
        }
        kept
    }

    /// What is told of a ruling.
    pub(crate) fn told(
        &mut self,
        by: &'static str,
        phase: &'static str,
        ruling: &Arc<Ruling>,
        redactor: &Redactor,
    ) -> Arc<DecisionEntry> {
        let place = Arc::as_ptr(ruling) as usize;
        if let Some((_, told)) = self.rulings.get(&place)
            && told.by == by
            && told.phase == phase
        {
            return Arc::clone(told);
        }
        let told = Arc::new(self.read(by, phase, ruling, redactor));
        // One that nobody else holds does not come again.
        if Arc::strong_count(ruling) > 1 {
            if self.rulings.len() >= MAX_WORDS {
                self.rulings.clear();
            }
            self.rulings.insert(place, (Arc::clone(ruling), Arc::clone(&told)));
        }
        told
    }

    fn read(&mut self, by: &'static str, phase: &'static str, ruling: &Ruling, redactor: &Redactor) -> DecisionEntry {
        let text = |text: &String| if text.is_empty() { String::new() } else { redactor.text(text.clone()) };
        DecisionEntry {
            by: by.into(),
            rule: ruling.rule.clone(),
            phase: phase.into(),
            verdict: ruling.verdict.into(),
            detail: text(&ruling.detail),
            inputs: ruling.inputs.iter().map(|(name, input)| ((*name).into(), text(input))).collect(),
            conditions: ruling.conditions.iter().map(|(text, held)| (self.redacted(text, redactor), *held)).collect(),
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
            assert!(words.texts.len() <= MAX_WORDS);
        }
        assert_eq!(words.redacted(&secret, &redactor), first);
    }

    #[test]
    fn a_ruling_that_is_shared_is_read_once_and_one_that_is_not_is_forgotten() {
        let mut words = Words::default();
        let ruling = Arc::new(Ruling::of("count", "AKIAABCDEFGHIJKLMNOP".to_owned()));
        let redactor = Redactor::new(&RedactionSettings::default(), [1; 32]).unwrap();
        let first = words.told("rules", "request", &ruling, &redactor);
        assert!(!first.detail.contains("AKIA"));
        assert!(words.rulings.is_empty(), "nobody else holds it");
        let shared = Arc::clone(&ruling);
        let told = words.told("rules", "request", &shared, &redactor);
        assert!(Arc::ptr_eq(&told, &words.told("rules", "request", &ruling, &redactor)));
        assert_eq!(words.told("rules", "response", &ruling, &redactor).phase, "response");
    }
}
