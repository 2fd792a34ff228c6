//! Decides which grams say enough to be recorded.

/// Maximum number of informative characters that a gram needs.
const MAX_WANTED: usize = 16;

/// Window over the latest characters of a text that counts those which carry information: letters and digits outside
/// of common phrases and of names of members.
pub(super) struct InformationWindow {
    /// Latest characters, reduced to a byte; `None` for those without information.
    latest: Vec<Option<u8>>,
    oldest: usize,
    counts: [u16; 256],
    informative: usize,
    distinct: usize,
}

impl InformationWindow {
    /// Creates a window of this length, at most 1024.
    pub(super) fn new(length: usize) -> Self {
        Self { latest: vec![None; length], oldest: 0, counts: [0; 256], informative: 0, distinct: 0 }
    }

    /// Adds the next character, which pushes out the oldest one.
    pub(super) fn push(&mut self, character: char, is_common: bool) {
        let code = u32::from(character);
        let is_informative = !is_common && character.is_alphanumeric();
        let new = is_informative.then_some((code ^ code >> 8) as u8);
        let Some(slot) = self.latest.get_mut(self.oldest) else { return };
        let old = std::mem::replace(slot, new);
        self.oldest = if self.oldest + 1 == self.latest.len() { 0 } else { self.oldest + 1 };
        if let Some(count) = old.and_then(|old| self.counts.get_mut(usize::from(old))) {
            *count -= 1;
            self.informative -= 1;
            self.distinct -= usize::from(*count == 0);
        }
        if let Some(count) = new.and_then(|new| self.counts.get_mut(usize::from(new))) {
            *count += 1;
            self.informative += 1;
            self.distinct += usize::from(*count == 1);
        }
    }

    /// Returns true if the characters of the window say enough.
    pub(super) fn is_informative(&self) -> bool {
        let length = self.latest.len();
        self.informative >= (length / 3).min(MAX_WANTED) && self.distinct >= (length / 4).clamp(3, 6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_informative(text: &str) -> bool {
        let mut window = InformationWindow::new(21);
        text.chars().for_each(|character| window.push(character, false));
        window.is_informative()
    }

    #[test]
    fn repetition_and_punctuation_say_nothing() {
        for text in [
            "aaaaaaaaaaaaaaaaaaaaa",
            "| --- | --- | --- | --- |",
            "0000-0000-0000-0000-0001",
            "\"},{\"\":[],\"\":{},\"a\":1",
        ] {
            assert!(!is_informative(text), "{text}");
        }
        for text in ["the key is under the mat", "秘密の鍵は玄関マットの下にあります秘密の鍵は", "3f:9a:00:12:7b:44:e1"]
        {
            assert!(is_informative(text), "{text}");
        }
    }

    #[test]
    fn characters_that_left_the_window_do_not_count() {
        assert!(!is_informative(&format!("the key is under the mat{}", "-".repeat(15))));
    }
}
