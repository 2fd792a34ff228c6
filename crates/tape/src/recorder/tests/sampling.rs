//! Calls that are kept and left out: shares, errors, slow calls and rings (S-33, SO-9).

use super::*;

fn sampled(sampling: Sampling, say: impl FnOnce(&Facts)) -> (Vec<Entry>, RecorderStats) {
    recorded(RecorderSettings { sampling, ..RecorderSettings::default() }, say)
}

/// Proves S-33 and SO-9.
#[test]
fn a_share_keeps_whole_exchanges_and_errors_always() {
    let always = SamplingTrigger { errors: true, ..SamplingTrigger::default() };
    let (entries, stats) = sampled(Sampling::Share { share: 0.2, seed: 3, always }, |facts| {
        for id in 0..200 {
            let outcome = if id % 50 == 0 { Outcome::ToolError } else { Outcome::Ok };
            facts.call(1, id, &format!("t{id}"), outcome);
        }
    });
    let kept = tools(&entries);
    assert!((20..80).contains(&kept.len()), "{kept:?}");
    assert!(["t0", "t50", "t100", "t150"].iter().all(|tool| kept.iter().any(|kept| kept == tool)));
    assert_eq!(entries.len(), kept.len() * 5, "an exchange is there whole or not at all");
    assert!(entries.iter().enumerate().all(|(index, entry)| entry.seq == index as u64 + 1));
    assert!(entries.is_sorted_by_key(|entry| entry.at));
    assert_eq!(stats.sampled_out, 1_000 - entries.len() as u64);
    assert!(stats.gaps.iter().all(|(_, facts)| *facts == 0), "what is left out on purpose is no gap");
}

/// Proves SO-9.
#[test]
fn an_adaptive_share_keeps_little_of_much_and_errors_always() {
    let always = SamplingTrigger { errors: true, ..SamplingTrigger::default() };
    let adaptive = |always| Sampling::Adaptive { target: 10.0, seed: 3, always };
    let crowd = |facts: &Facts| {
        for call in 1..=2_000 {
            let (tool, outcome) = if call % 100 == 0 { ("broken", Outcome::ToolError) } else { ("well", Outcome::Ok) };
            facts.call(1, call, tool, outcome);
        }
    };
    let (entries, _) = sampled(adaptive(always), crowd);
    let kept = tools(&entries);
    assert_eq!(kept.iter().filter(|tool| *tool == "broken").count(), 20);
    let well = kept.iter().filter(|tool| *tool == "well").count();
    // All come within moments: however many seconds that takes, most are left out.
    assert!((10..1_500).contains(&well), "{well}");
    let (few, _) = sampled(adaptive(SamplingTrigger::default()), |facts| {
        (1..=9).for_each(|call| facts.call(1, call, "well", Outcome::Ok))
    });
    assert_eq!(tools(&few).len(), 9);
}

/// Proves SO-9.
#[test]
fn what_has_priority_has_a_share_of_its_own_and_errors_are_kept_of_it_too() {
    let rule = |tool: &str, share| Priority { methods: vec![], tools: vec![Glob::new(tool)], share };
    let priorities = |errors| Priorities {
        rules: vec![rule("imp*", 1.0), rule("nothing", 0.0), rule("broken", 0.0), rule("*", 0.5)],
        seed: 1,
        always: SamplingTrigger { errors, ..SamplingTrigger::default() },
    };
    let say = |facts: &Facts| {
        for call in 0..200 {
            facts.call(1, call * 4 + 1, "important", Outcome::Ok);
            facts.call(1, call * 4 + 2, "nothing", Outcome::Ok);
            facts.call(1, call * 4 + 3, "broken", Outcome::ToolError);
            facts.call(1, call * 4 + 4, "half", Outcome::Ok);
        }
    };
    for (sampling, errors, broken) in [
        (Sampling::All, true, 200),
        (Sampling::All, false, 0),
        (Sampling::Share { share: 0.0, seed: 1, always: SamplingTrigger::default() }, false, 0),
    ] {
        let settings = RecorderSettings { sampling, priorities: priorities(errors), ..RecorderSettings::default() };
        let (entries, _) = recorded(settings, say);
        let count = |name: &str| tools(&entries).iter().filter(|tool| *tool == name).count();
        assert_eq!((count("important"), count("nothing"), count("broken")), (200, 0, broken));
        assert!((60..140).contains(&count("half")), "{}", count("half"));
    }
    let settings = RecorderSettings { priorities: priorities(true), ..RecorderSettings::default() };
    assert_eq!(settings.sampling_words(), "imp*: share 1; nothing: share 0; broken: share 0; *: share 0.5; all");
}

/// Proves SO-9.
#[test]
fn every_nth_is_kept() {
    let (entries, _) = sampled(Sampling::EveryNth { n: 3, always: SamplingTrigger::default() }, |facts| {
        (1..=7).for_each(|id| facts.call(1, id, &format!("t{id}"), Outcome::Ok));
    });
    assert_eq!(tools(&entries), ["t1", "t4", "t7"]);
}

/// Proves S-33 and SO-9.
#[test]
fn errors_are_kept_with_their_neighbours() {
    let (entries, _) = sampled(Sampling::Errors { before: 2, after: 1 }, |facts| {
        for id in 0..10 {
            let outcome = if id == 5 { Outcome::BackendError } else { Outcome::Ok };
            facts.call(1, id, &format!("t{id}"), outcome);
        }
    });
    assert_eq!(tools(&entries), ["t3", "t4", "t5", "t6"]);
    assert_eq!(entries.len(), 4 * 5);
    assert!(messages(&entries).iter().any(|message| matches!(message.body, Body::Like { .. })));
}

/// Proves S-33 and SO-9.
#[test]
fn only_slow_ones_are_kept() {
    let (entries, _) = sampled(Sampling::Slow { took: Duration::from_millis(100) }, |facts| {
        for id in 0..4u64 {
            facts.images(1, id, &format!("t{id}"));
            facts.finished(1, id, &format!("t{id}"), Outcome::Ok, Duration::from_millis(60 * id));
        }
    });
    assert_eq!(tools(&entries), ["t2", "t3"]);
}

/// Proves SO-9.
#[test]
fn a_ring_is_written_when_something_fires() {
    let on = SamplingTrigger { verdicts: vec!["refuse".into()], ..SamplingTrigger::default() };
    let ring = |on: &SamplingTrigger| Sampling::Ring { exchanges: 3, within: None, after: 1, on: on.clone() };
    let calls = |facts: &Facts, ids: std::ops::Range<u64>| {
        ids.for_each(|id| facts.call(1, id, &format!("t{id}"), Outcome::Ok));
    };
    let (entries, stats) = sampled(ring(&on), |facts| calls(facts, 0..9));
    assert!(entries.is_empty() && stats.sampled_out == 45, "{stats:?}");
    let (entries, _) = sampled(ring(&on), |facts| {
        calls(facts, 0..9);
        facts.decision(1, 9, "refuse");
        calls(facts, 9..15);
    });
    assert_eq!(tools(&entries), ["t6", "t7", "t8", "t9", "t10"]);

    // What is decided about a call after its end, such as that it differs from a baseline, fires too.
    let (entries, _) = sampled(ring(&on), |facts| {
        calls(facts, 0..9);
        facts.decision(1, 8, "refuse");
        calls(facts, 9..15);
    });
    assert_eq!(tools(&entries), ["t6", "t7", "t8", "t9"]);
    assert!(entries.iter().any(|entry| entry.exchange == Some(8) && matches!(entry.content, Content::Decisions(_))));

    let memory = Memory::default();
    let settings = RecorderSettings { sampling: ring(&SamplingTrigger::default()), ..RecorderSettings::default() };
    let recorder = memory.record(settings, Redactor::none());
    calls(&Facts::new(&recorder), 0..9);
    assert_eq!(recorder.barrier().wait(LONG), Ok(()));
    assert!(memory.entries().is_empty());
    recorder.trigger();
    eventually(|| tools(&memory.entries()) == ["t6", "t7", "t8"]);
}

/// A ring of the last calls is not filled by handshakes.
#[test]
fn a_ring_counts_calls_and_keeps_the_handshakes_around_them() {
    let on = SamplingTrigger { verdicts: vec!["refuse".into()], ..SamplingTrigger::default() };
    let ring = Sampling::Ring { exchanges: 2, within: None, after: 0, on };
    let (entries, _) = sampled(ring, |facts| {
        (0..3).for_each(|id| facts.call(1, id, &format!("t{id}"), Outcome::Ok));
        for id in 10..20 {
            let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
            facts.message(1, Some(id), Point::ClientIn, hello);
            facts.finished(1, id, "hello", Outcome::Ok, Duration::from_millis(1));
        }
        facts.decision(1, 30, "refuse");
        facts.call(1, 30, "t30", Outcome::Ok);
    });
    let kept = tools(&entries);
    assert_eq!(kept.iter().filter(|tool| tool.starts_with('t')).collect::<Vec<_>>(), ["t1", "t2", "t30"], "{kept:?}");
    assert_eq!(kept.len(), 13, "{kept:?}");
}
