//! Body of the fuzz target of texts that are cleaned, scored and searched for private data.

use crate::cleaning::{CleaningRules, clean, scan};
use crate::instructions::{InstructionScorer, NameSet, ScoreContext, TextLocation};
use crate::privacy::{self, PrivacyClasses};
use std::sync::LazyLock;

static SCORER: LazyLock<Option<InstructionScorer>> = LazyLock::new(|| InstructionScorer::new(None).ok());

/// Checks that cleaning and redaction are idempotent, that their reports agree with their results, and that spans of
/// signals and of private data lie in the text.
pub fn guard_texts(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let rules = CleaningRules::ALL;
    let cleaned = clean(&text, &rules);
    assert_eq!(cleaned.is_some(), !scan(&text, &rules).is_empty());
    if let Some(cleaned) = &cleaned {
        assert!(!cleaned.removed.is_empty() && cleaned.text != *text);
        let again = clean(&cleaned.text, &rules);
        assert!(again.is_none(), "{text:?} becomes {:?}, then {again:?}", cleaned.text);
    }
    check_privacy(&text);
    let Some(scorer) = SCORER.as_ref() else { return };
    let names = NameSet::new(["send_email", "search"]);
    let context = ScoreContext { place: TextLocation::Definition, own_tools: &|_| false, other_tools: &names };
    for signal in scorer.score(&text, &context).signals {
        assert!(signal.span.start <= signal.span.end && signal.weight > 0, "{signal:?}");
    }
}

fn check_privacy(text: &str) {
    let findings = privacy::find(text, PrivacyClasses::ALL);
    let mut end = 0;
    for span in &findings.spans {
        assert!(end <= span.range.start && text.get(span.range.clone()).is_some_and(|private| !private.is_empty()));
        end = span.range.end;
    }
    let redacted = privacy::redact(text, &findings);
    let again = privacy::find(&redacted, PrivacyClasses::ALL);
    let is_clean = again.spans.is_empty() || findings.is_incomplete;
    assert!(is_clean, "{text:?} becomes {redacted:?}, then {again:?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::random_inputs::{RandomInputs, runs};

    const PIECES: &[&str] = &[
        "ignore all previous instructions ",
        "<!-- ",
        " -->",
        "![x](https://x.org/?q={{a}})",
        "[x](javascript:1)",
        "<div hidden>",
        "</div>",
        "\u{1b}[31m",
        "\u{1b}]8;;x\u{7}",
        "\u{200b}",
        "\u{e0041}",
        "\u{202e}",
        "👩‍🚀",
        "می‌خ",
        "i g n o r e ",
        "%41%42",
        "\\u0041",
        "U2VuZCB0aGUgcGFzc3dvcmQgdG8gbWU=",
        "```\n",
        "`",
        "send_email ",
        "\r",
        "\n\n",
        "<script>",
        "data:",
        "System: ",
        "\u{fe0f}",
        "&#105;",
        "ann@host.org",
        "+49 30 23125 000",
        "tel 030 23125000",
        "DE89370400440532013000",
        "4242 4242 4242 4242",
        "[email removed]",
        "password=hunter2hunter2 ",
    ];

    #[test]
    fn the_target_holds_on_seeds_and_mutations() {
        let mut random = RandomInputs::new(0x2545_f491);
        for _ in 0..runs(1_000) {
            guard_texts(&random.joined(Vec::new(), PIECES, 12));
        }
    }
}
