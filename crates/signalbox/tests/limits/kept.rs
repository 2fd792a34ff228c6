//! The rows about what is kept and what is held: recording, rules, held messages, webhooks.

use super::Most::{Bytes, Count, Time};
use super::{OVERLOADED, Row, row};
use signalbox_assembly::live_feed;
use signalbox_assembly::recording::MAX_WAITING_ANCHORS;
use signalbox_engine::dialect::answer::MAX_ERROR_TEXT;
use signalbox_engine::dialect::security_context::MAX_PERMISSIONS;
use signalbox_govern::call_limits::MAX_BUCKETS;
use signalbox_rules::limits;
use signalbox_runtime::gateway::{MAX_ADDRESS_REFUSALS, MAX_REFUSALS, MAX_REFUSED_SOURCES, MAX_UNPROVED_REFUSALS};
use signalbox_runtime::{breakpoints, holds, webhooks};
use signalbox_tape::file::MAX_SMALL_FILE;
use signalbox_tape::recorder::{MAX_BARRIERS, MAX_EXCHANGES, RecorderSettings};
use signalbox_tape::seen;

const RULE: &str = "the rules are rejected; the error names the place";
const RELOADS: &str = "signalbox_config_reloads_total";

fn of_rule_files() -> Vec<Row> {
    vec![
        row(
            "rules",
            vec![Count(limits::RULES, "rules"), Bytes(limits::FILE), Count(limits::PATTERNS, "patterns")],
            None,
        )
        .answer(RULE)
        .metric(RELOADS)
        .shown(&["everything_has_a_bound"]),
        row(
            "a rule",
            vec![
                Count(limits::CONDITIONS, "conditions"),
                Count(limits::DEPTH, "levels"),
                Count(limits::ACTIONS, "actions"),
            ],
            None,
        )
        .answer(RULE)
        .metric(RELOADS)
        .shown(&["everything_has_a_bound"]),
        row(
            "mock files",
            vec![Bytes(limits::MOCK_FILE), Bytes(limits::MOCK_FILES), Count(limits::MOCK_RESULTS, "results in one")],
            None,
        )
        .answer(RULE)
        .metric(RELOADS)
        .shown(&[
            "a_file_that_cannot_be_used_is_told_with_the_rule_and_the_place_in_it",
            "all_files_together_are_bounded",
        ]),
    ]
}

pub(super) fn of_rules() -> Vec<Row> {
    let mut rows = of_rule_files();
    rows.extend([
        row("bytes of a message that all conditions read", vec![Bytes(limits::WORK)], None)
            .answer("the message is refused")
            .metric(super::BY_OUTCOME)
            .shown(&["a_message_that_would_take_too_long_to_judge_is_refused"]),
        row("keys of all rate limits", vec![Count(limits::LIMITER_KEYS, "keys")], None)
            .answer("a caller gets only free keys; its further keys of a rule share one bucket")
            .metric(r#"signalbox_rules_overflows_total{of="limiter_keys"}"#)
            .shown(&["beyond_the_bound_the_keys_of_a_caller_share_a_bucket_and_free_buckets_make_room"]),
        row(
            "permissions that a message of the governed dialect names",
            vec![Count(MAX_PERMISSIONS, "permissions")],
            None,
        )
        .answer("the error `invalid_security_context`")
        .metric(super::BY_OUTCOME)
        .shown(&["a_message_names_no_more_permissions_than_anybody_needs"]),
        row("the text of a tool's error in the governed dialect", vec![Count(MAX_ERROR_TEXT, "characters")], None)
            .answer("only its beginning is sent")
            .metric(super::BY_OUTCOME)
            .shown(&["the_text_of_a_tools_error_has_an_end"]),
        row("callers and tools with rate limits", vec![Count(MAX_BUCKETS, "of each kind")], None)
            .answer("further ones share one limit")
            .metric(super::BY_OUTCOME)
            .shown(&["beyond_the_bound_new_callers_share_a_bucket_until_others_are_full_again"]),
        row("answers that rules cache", vec![Bytes(limits::CACHE_BYTES), Bytes(limits::CACHE_ENTRY)], None)
            .answer("the oldest are dropped; a larger one is not cached")
            .metric(r#"signalbox_rules_overflows_total{of="cache_entries"}"#)
            .shown(&["a_cache_keeps_no_errors_nothing_unfinished_and_no_more_than_it_may"]),
        row(
            "requests that rules about answers remember",
            vec![Count(limits::REMEMBERED, "requests"), Bytes(limits::REMEMBERED_BYTES)],
            None,
        )
        .answer("a rule about the answer sees no request")
        .metric(r#"signalbox_rules_overflows_total{of="remembered"}"#)
        .shown(&["no_more_requests_are_remembered_than_there_is_room_for"]),
        row("calls known to rate limits of rules", vec![Count(limits::COUNTED_CALLS, "calls")], None)
            .answer("the oldest is forgotten, and its next round is counted again")
            .metric(super::BY_OUTCOME)
            .shown(&["calls_that_do_not_end_are_bounded_and_calls_that_end_make_room"]),
    ]);
    rows
}

pub(super) fn of_holds() -> Vec<Row> {
    vec![
        row(
            "messages that wait for a person",
            vec![Count(holds::MAX_HELD, "messages"), Count(holds::MAX_HELD_EACH, "of one caller")],
            None,
        )
        .answer(OVERLOADED)
        .metric("signalbox_held_messages")
        .shown(&["one_message_too_many_for_a_person_is_refused_by_the_bound_that_it_met"]),
        row("time that they wait", vec![Time(breakpoints::WITHIN), Time(breakpoints::LONGEST)], None)
            .answer("error `hold_expired`, or release, as the rule says")
            .metric("signalbox_holds_total")
            .shown(&["a_client_that_gave_a_progress_token_hears_that_it_waits_until_its_time_is_over"]),
        row("breakpoints", vec![Count(breakpoints::MAX_BREAKPOINTS, "breakpoints")], None)
            .answer("refused to the caller that sets it")
            .metric("signalbox_held_messages")
            .shown(&["what_makes_no_sense_is_refused_and_there_is_a_limit"]),
        row("webhook questions at a time", vec![Count(webhooks::MAX_ASKED, "questions")], None)
            .answer(
                "one caller has at most half of them; further ones wait for as long as the rule's `timeout`, and then get \
                 the error `overloaded`, whatever `on_failure` says",
            )
            .metric("signalbox_refused_total{limit=\"webhooks\"}")
            .shown(&["a_caller_asks_half_of_the_questions_and_waits_for_more"]),
        row("webhook notices at a time", vec![Count(webhooks::MAX_TOLD, "messages")], None)
            .answer("further ones are dropped")
            .metric("signalbox_dropped_total")
            .shown(&["only_so_many_web_addresses_are_told_at_a_time"]),
        row(
            "a message for a webhook, and its answer",
            vec![Bytes(limits::WEBHOOK_MESSAGE), Bytes(limits::WEBHOOK_ANSWER)],
            None,
        )
        .answer("of a larger message only the length is sent; a larger answer counts as none, and the rule's `on_failure` decides")
        .metric("signalbox_webhooks_failed_total")
        .shown(&["a_webhook_that_fails_or_lies_blocks_or_is_passed_over_as_its_rule_says"]),
        row(
            "watchers of one process",
            vec![
                Count(live_feed::MAX_WATCHERS, "watchers"),
                Count(live_feed::MAX_QUEUED, "facts for each"),
                Bytes(live_feed::MAX_QUEUED_BYTES),
            ],
            None,
        )
        .answer("a further watcher is refused; facts are dropped, and the stream says how many")
        .metric("signalbox_dropped_total")
        .shown(&["there_is_room_for_so_many_watchers", "a_slow_watcher_loses_facts_and_is_told_how_many"]),
    ]
}

#[expect(clippy::too_many_lines, reason = "a table, one row after the other")]
pub(super) fn of_recording() -> Vec<Row> {
    let settings = RecorderSettings::default();
    vec![
        row(
            "records of requests refused before there is a session, in a second",
            vec![
                Count(MAX_REFUSALS as usize, "of a proved caller"),
                Count(MAX_ADDRESS_REFUSALS as usize, "of an address"),
                Count(MAX_UNPROVED_REFUSALS as usize, "of all addresses, and one of each besides"),
                Count(MAX_REFUSED_SOURCES, "callers and as many addresses are told apart"),
            ],
            None,
        )
        .answer("the requests are refused all the same, and only their number is recorded")
        .metric("signalbox_dropped_total")
        .shown(&["a_flood_from_one_address_does_not_hide_others", "many_addresses_together_are_bounded"]),
        row("lists of a backend on a tape", vec![Bytes(seen::MAX_PART), Bytes(seen::MAX_PARTS)], None)
            .answer("a list that is larger is left out, and the tape says so")
            .metric("signalbox_tape_entries_total")
            .shown(&["a_list_that_is_too_large_is_left_out_and_said_so"]),
        row("facts that wait to be written", vec![Count(settings.queue_facts, "facts")], Some("record.queue"))
            .answer("a counted gap on the tape, or calls wait, as `record.on_full` says")
            .metric("signalbox_tape_gaps_total")
            .shown(&["a_full_queue_leaves_a_counted_gap", "by_choice_whoever_takes_messages_waits_for_room"]),
        row("bytes of them", vec![Bytes(settings.queue_bytes)], Some("record.queue_bytes"))
            .answer("the same")
            .metric("signalbox_tape_gaps_total")
            .shown(&["bytes_have_a_bound_too"]),
        row("answers that wait for the disk, with `record.durability`", vec![Count(MAX_BARRIERS, "answers")], None)
            .answer("an error in place of the answer, which says that it is not recorded")
            .metric("signalbox_dropped_total")
            .shown(&["one_answer_too_many_does_not_wait_for_the_disk"]),
        row("a message on a tape", vec![Bytes(settings.max_body)], Some("record.max_body"))
            .answer("only its length is kept")
            .metric("signalbox_tape_bytes_total")
            .shown(&["bodies_may_be_left_out_and_large_ones_are"]),
        row(
            "exchanges that a recorder remembers",
            vec![Count(MAX_EXCHANGES, "exchanges"), Time(settings.orphan_after)],
            None,
        )
        .answer("the longest silent ones are forgotten; a later message begins another")
        .metric("signalbox_tape_orphans_total")
        .shown(&["the_table_has_a_bound", "an_exchange_without_an_end_is_forgotten_and_counted"]),
        row(
            "entries that wait for the verdict of sampling",
            vec![Count(settings.hold.entries, "entries"), Bytes(settings.hold.bytes), Time(settings.hold.open_for)],
            None,
        )
        .answer("the oldest exchange is kept, or dropped from a ring")
        .metric("signalbox_tape_sampled_out_total")
        .shown(&["a_ring_is_written_when_something_fires"]),
        row(
            "unpacked size of the head, the index or the entries of a tape file, without messages",
            vec![Bytes(MAX_SMALL_FILE)],
            None,
        )
        .answer("the file is damaged; a larger file may unpack to 200 times its size besides")
        .metric("signalbox_backend_up")
        .shown(&["empty_members_are_weighed_before_they_are_decoded", "a_small_file_does_not_unpack_to_hours_of_work"]),
        row("signed heads that wait for one place of `seal.anchor`", vec![Count(MAX_WAITING_ANCHORS, "heads")], None)
            .answer("the oldest are dropped; later ones cover the same entries")
            .metric(r#"signalbox_anchors_total{outcome="dropped"}"#)
            .shown(&["what_a_dead_place_never_took_is_bounded_and_counted"]),
        row("age of stored data, in days", vec![], Some("record.max_age_days"))
            .answer("the oldest goes first")
            .metric("signalbox_tape_entries_total")
            .shown(&["what_is_too_old_goes"]),
        row("bytes of all tapes", vec![], Some("record.max_size"))
            .answer("the oldest goes first")
            .metric("signalbox_tape_bytes_total")
            .shown(&["what_is_too_much_goes_oldest_first"]),
    ]
}
