//! Body of the fuzz target of flows and canaries.

use crate::canary::{self, Canary, CanaryKey, CanaryKind};
use crate::flows::{FlowKey, FlowLimits, FlowSource, FlowTracker};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// Separates the texts in the input of [`flows`].
const SEPARATOR: u8 = 0;
/// Memory of the tracker, which is small enough to be exhausted.
const MAX_BYTES: usize = 20 << 10;

static KEY: LazyLock<CanaryKey> = LazyLock::new(|| CanaryKey::new([3; 32]));

/// Records, excludes and traces the texts between zero bytes. The memory is bounded, an agreement names a recorded call
/// of the wanted class and is repeatable. A canary is found in any text, and nothing else is taken for one.
pub fn flows(data: &[u8], began: Instant) {
    let Some((settings, texts)) = data.split_first() else { return };
    let min_chars = 8 + usize::from(*settings % 40);
    let limits =
        FlowLimits { min_chars, max_bytes: MAX_BYTES, max_age: Duration::from_secs(40), ..FlowLimits::default() };
    let mut tracker = FlowTracker::new(limits, FlowKey([*settings; 16]));
    let mut now = began;
    let mut last = String::new();
    for (call, text) in (0_u64..).zip(texts.split(|byte| *byte == SEPARATOR)) {
        let text = String::from_utf8_lossy(text);
        now += Duration::from_secs(1);
        if call % 4 == 3 {
            tracker.exclude([text.as_ref()]);
        }
        let source = FlowSource { call, tool: Arc::from("a/b"), classes: 1 << (call % 2) };
        tracker.record(source, [text.as_ref(), "and a second text of it"], now);
        assert!(tracker.bytes() <= MAX_BYTES, "{} bytes", tracker.bytes());
        if let Some(found) = tracker.trace(&text, 1, now) {
            let is_known = found.source.call <= call && found.source.classes == 1;
            assert!(is_known && found.length >= 6, "{found:?} in {text:?}");
            assert_eq!(tracker.trace(&text, 1, now), Some(found), "an agreement is not repeatable");
        }
        let _ = tracker.trace_all([last.as_str(), text.as_ref()], 2, now);
        last = text.into_owned();
    }
    let canary = Canary::new(CanaryKind::Email, [*settings; 16], &last, &KEY);
    assert_eq!(canary::find(&last, &KEY), []);
    let around = format!("{last} {} {last}", canary.value());
    let found = canary::find(&around, &KEY);
    assert!(found.iter().any(|found| found.id == canary.id() && around.get(found.range.clone()).is_some()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::random_inputs::{RandomInputs, runs};

    const PIECES: &[&str] = &[
        "\0",
        "\0",
        "the vault opens with the birthday of the cat ",
        "account 30719846 ",
        "DE89 3704 0044 0532 0130 00 ",
        "anna@example.org",
        "kX9vQz2LmTrW8pYs",
        "dGhlIHZhdWx0IG9wZW5zIHdpdGggdGhlIGJpcnRoZGF5",
        "746865207661756c74206f70656e73207769746820746865",
        "%74%68%65%20%76",
        "\\u0074\\u0068",
        "\\ud83d",
        "t-h-e- -v-a-u-l-t",
        "116 104 101 32 118 97 117 108 116",
        "\"name\":",
        "https://",
        "é漢😀\u{200b}",
        "&#116;&amp;",
        "+",
        "=",
        "Kavorumi Tibesamo Lunepadi",
    ];

    #[test]
    fn the_target_holds_on_seeds_and_mutations() {
        let mut random = RandomInputs::new(0x5bd1_e995);
        for _ in 0..runs(1_000) {
            let settings = random.byte();
            flows(&random.joined(vec![settings], PIECES, 16), Instant::now());
        }
    }
}
