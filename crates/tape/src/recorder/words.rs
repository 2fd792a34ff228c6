//! Cache of redacted texts that recur: names of tools, conditions of rules, and whole rulings.

use crate::redact::Redactor;
use signalbox_engine::chain::{Ruling, Rulings};
use signalbox_engine::keys::{KeyMap, TextMap};
use signalbox_engine::record::DecisionEntry;
use std::sync::Arc;

/// Maximum number of remembered texts, and of rulings. Beyond it the cache is cleared.
const MAX_WORDS: usize = 4_096;
/// Maximum number of remembered groups of rulings.
const MAX_GROUPS: usize = 256;
/// Maximum length of a text that is worth remembering.
const MAX_LENGTH: usize = 512;

/// Redacted forms of texts, rulings and groups.
#[derive(Default, Debug)]
pub(crate) struct Words {
    texts: TextMap<Arc<str>, Arc<str>>,
    /// Entries by the address of the ruling. Holding the ruling keeps its address from being reused.
    rulings: KeyMap<usize, (Arc<Ruling>, Arc<DecisionEntry>)>,
    /// Entries by the address of the group.
    groups: KeyMap<usize, Group>,
}

/// Rulings that many messages share, with their entries.
type Group = (Arc<[Arc<Ruling>]>, Vec<Arc<DecisionEntry>>);

impl Words {
    /// Returns the redacted form of a text.
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

    /// Appends the entries of rulings.
    pub(crate) fn all_told(
        &mut self,
        by: &'static str,
        phase: &'static str,
        rulings: &Rulings,
        redactor: &Redactor,
        out: &mut Vec<Arc<DecisionEntry>>,
    ) {
        let shared = match rulings {
            Rulings::Many(shared) if Arc::strong_count(shared) > 1 => shared,
            own => return out.extend(own.iter().map(|ruling| self.told(by, phase, ruling, redactor))),
        };
        let place = Arc::as_ptr(shared).cast::<()>() as usize;
        if let Some((_, told)) = self.groups.get(&place)
            && told.first().is_some_and(|first| first.by == by && first.phase == phase)
        {
            return out.extend(told.iter().cloned());
        }
        let told: Vec<_> = shared.iter().map(|ruling| self.told(by, phase, ruling, redactor)).collect();
        out.extend(told.iter().cloned());
        if self.groups.len() >= MAX_GROUPS {
            self.groups.clear();
        }
        self.groups.insert(place, (Arc::clone(shared), told));
    }

    /// Returns the entry of a ruling.
    fn told(
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
        // A ruling without another owner does not recur.
        if Arc::strong_count(ruling) > 1 {
            if self.rulings.len() >= MAX_WORDS {
                self.rulings.clear();
            }
            self.rulings.insert(place, (Arc::clone(ruling), Arc::clone(&told)));
        }
        told
    }

    fn read(&mut self, by: &'static str, phase: &'static str, ruling: &Ruling, redactor: &Redactor) -> DecisionEntry {
        let mut redacted = false;
        let mut text = |text: &String| {
            let kept = if text.is_empty() { String::new() } else { redactor.text(text.clone()) };
            redacted |= kept != *text;
            kept
        };
        let detail = text(&ruling.detail);
        let inputs = ruling.inputs.iter().map(|(name, input)| ((*name).into(), text(input))).collect();
        let mut condition = |(text, held): &(Arc<str>, bool)| {
            let kept = self.redacted(text, redactor);
            redacted |= kept != *text;
            (kept, *held)
        };
        let conditions = ruling.conditions.iter().map(&mut condition).collect();
        DecisionEntry {
            by: by.into(),
            rule: ruling.rule.clone(),
            phase: phase.into(),
            verdict: ruling.verdict.into(),
            detail,
            conditions,
            inputs,
            redacted,
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
        assert!(!first.detail.contains("AKIA") && first.redacted, "what was taken out is marked");
        assert!(words.rulings.is_empty(), "nobody else holds it");
        let shared = Arc::clone(&ruling);
        let told = words.told("rules", "request", &shared, &redactor);
        assert!(Arc::ptr_eq(&told, &words.told("rules", "request", &ruling, &redactor)));
        assert_eq!(words.told("rules", "response", &ruling, &redactor).phase, "response");
    }

    #[test]
    fn a_group_that_is_shared_is_read_once_for_each_phase_and_their_number_has_a_bound() {
        let redactor = Redactor::new(&RedactionSettings::default(), [1; 32]).unwrap();
        let mut words = Words::default();
        let group = |text: &str| -> Rulings {
            ["count", "pass"].map(|word| Arc::new(Ruling::of(word, text.to_owned()))).to_vec().into()
        };
        let mut told = |phase, rulings: &Rulings| {
            let mut out = Vec::new();
            words.all_told("rules", phase, rulings, &redactor, &mut out);
            (out, words.groups.len())
        };
        let rulings = group("AKIAABCDEFGHIJKLMNOP");
        assert_eq!(told("request", &rulings).1, 0, "nobody else holds it");
        let shared = rulings.clone();
        let ((first, _), (second, _)) = (told("request", &rulings), told("request", &shared));
        assert_eq!(first.len(), 2);
        assert!(first.iter().all(|entry| !entry.detail.contains("AKIA")));
        assert!(first.iter().zip(&second).all(|(first, second)| Arc::ptr_eq(first, second)));
        assert!(told("response", &rulings).0.iter().all(|entry| entry.phase == "response"));
        for number in 0..2 * MAX_GROUPS {
            let one = group(&number.to_string());
            let (_shared, (entries, groups)) = (one.clone(), told("request", &one));
            assert_eq!(entries[0].detail, number.to_string());
            assert!(groups <= MAX_GROUPS);
        }
        assert_eq!(told("request", &rulings).0, first);
    }
}
