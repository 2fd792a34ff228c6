//! The rows about the audit log and about web pages that offer tools.

use super::Most::{Bytes, Count, Time};
use super::{Row, row};
use signalbox_audit::{MAX_ARGUMENTS, MAX_OPEN, MAX_WAITING};
use signalbox_relay::buckets::MAX_KEYS;
use signalbox_relay::routes::{MAX_ERROR, MAX_PROGRESS};
use signalbox_relay::store::{EVENT_QUEUE, MAX_ANSWERED};
use signalbox_relay::tools::MAX_PAGE_TOOLS;
use signalbox_relay::{RelayLimits, RelaySettings};

const AUDIT_LOST: &str = "signalbox_audit_lost_total";
const TOO_OFTEN: &str = "signalbox_relay_rate_limited_total";
const COME_LATER: &str = "HTTP 429 with `Retry-After`";

pub(super) fn of_audit() -> Vec<Row> {
    vec![
        row("intents and facts that wait to be written", vec![Count(MAX_WAITING, "of both")], None)
            .answer("counted, and reported by a record; calls leave without an intent, or get the error `not_recorded` if a sink is required")
            .metric(AUDIT_LOST)
            .shown(&["what_had_no_room_is_told_by_a_record"]),
        row("records that wait in the data folder for sinks", vec![Bytes(256 << 20)], Some("mcp.protocol.audit.spool_max"))
            .answer("a sink that is further behind gets a signed gap in place of the oldest")
            .metric("signalbox_audit_skipped_total")
            .shown(&["a_sink_that_is_behind_by_more_than_spool_max_gets_a_signed_gap"]),
        row("age of stored data, in days", vec![], Some("mcp.protocol.audit.retention_days"))
            .answer("older files and rows are deleted")
            .metric("signalbox_audit_waiting")
            .shown(&["there_is_a_file_a_day_and_old_ones_go", "records_older_than_retention_days_give_way_to_a_checkpoint"]),
        row("arguments in a record, with `payloads`", vec![Bytes(MAX_ARGUMENTS)], None)
            .answer("only their size is in the record")
            .metric(AUDIT_LOST)
            .shown(&["arguments_that_are_too_large_are_left_out_with_their_size"]),
        row("calls in flight with remembered decisions", vec![Count(MAX_OPEN, "calls")], None)
            .answer("outcomes of further calls name no decisions")
            .metric(AUDIT_LOST)
            .shown(&["exchanges_that_never_end_are_not_remembered_without_bound"]),
    ]
}

pub(super) fn of_relay() -> Vec<Row> {
    let RelaySettings { ttl, limits, .. } = RelaySettings::default();
    let mut rows = of_addresses(&limits);
    rows.extend([
        row("sessions of the relay", vec![Count(limits.max_sessions, "sessions")], Some("relay.limits.max_sessions"))
            .answer("HTTP 503 with the error `too_many_sessions`")
            .metric("signalbox_relay_sessions")
            .shown(&["a_session_ends_after_its_time_and_its_subscribers_hear_of_it"]),
        row("an idle session of the relay", vec![Time(ttl)], Some("relay.ttl"))
            .answer("HTTP 404 with the error -32002; legacy clients get 404 or 410")
            .metric("signalbox_relay_sessions")
            .shown(&["an_expired_session_is_told_in_the_specified_form"]),
        row(
            "calls of a session that wait for its page",
            vec![Count(limits.queue, "calls")],
            Some("relay.limits.queue"),
        )
        .answer("a result with `isError` that says so")
        .metric("signalbox_relay_delivered_total")
        .shown(&["sessions_are_kept_in_memory"]),
        row(
            "time that a page may take for a call",
            vec![Time(limits.request_timeout)],
            Some("relay.limits.request_timeout"),
        )
        .answer("a result with `isError`; the page gets `cancel`, and its late answer gets HTTP 404")
        .metric("signalbox_relay_timeouts_total")
        .shown(&["slow_late_double_and_foreign_answers_are_refused"]),
        row(
            "time for which a legacy call is kept for its page",
            vec![Time(limits.request_ttl)],
            Some("relay.limits.request_ttl"),
        )
        .answer("an error on the client's stream; the page gets `cancel`")
        .metric("signalbox_relay_timeouts_total")
        .shown(&["a_queued_request_lives_as_long_as_its_key_says"]),
        row("a body of a legacy route", vec![Bytes(limits.body)], Some("relay.limits.body"))
            .answer("HTTP 413")
            .metric(r#"signalbox_refused_total{limit="message_size"}"#)
            .shown(&["malformed_requests_are_refused_by_the_names_that_clients_know"]),
        row("tools that a page brings", vec![Count(MAX_PAGE_TOOLS, "tools")], None)
            .answer("HTTP 400 with the error `validation_error`")
            .metric("signalbox_relay_workers")
            .shown(&["a_page_brings_tools_whose_names_are_free"]),
        row("progress and an error of a page about a call", vec![Bytes(MAX_PROGRESS), Bytes(MAX_ERROR)], None)
            .answer("HTTP 400 with the error `validation_error`")
            .metric("signalbox_relay_unknown_answers_total")
            .shown(&["progress_and_errors_have_a_bound"]),
        row("events that wait for one stream or call", vec![Count(EVENT_QUEUE, "events")], None)
            .answer("the stream or call ends; a page comes back and gets its unanswered requests")
            .metric("signalbox_relay_redelivered_total")
            .shown(&["who_does_not_keep_up_is_let_go"]),
        row("remembered answered requests of a session", vec![Count(MAX_ANSWERED, "requests")], None)
            .answer("a second answer to an older one gets HTTP 404 in place of 409")
            .metric("signalbox_relay_unknown_answers_total")
            .shown(&["sessions_are_kept_in_memory"]),
    ]);
    rows
}

/// What an address may do in a minute.
fn of_addresses(limits: &RelayLimits) -> Vec<Row> {
    let count = |count: u64, what| vec![Count(usize::try_from(count).unwrap(), what)];
    vec![
        row(
            "sessions that an address opens",
            count(limits.sessions_per_minute, "in a minute"),
            Some("relay.limits.sessions_per_minute"),
        )
        .answer(COME_LATER)
        .metric(TOO_OFTEN)
        .shown(&["guesses_and_floods_are_slowed_down"]),
        row(
            "legacy calls of an address in a session",
            count(limits.requests_per_minute, "in a minute"),
            Some("relay.limits.requests_per_minute"),
        )
        .answer(COME_LATER)
        .metric(TOO_OFTEN)
        .shown(&["guesses_and_floods_are_slowed_down"]),
        row(
            "messages of an address to `/api/mcp`",
            count(limits.mcp_requests_per_minute, "in a minute"),
            Some("relay.limits.mcp_requests_per_minute"),
        )
        .answer("HTTP 429 with `Retry-After` and the error -32429")
        .metric(TOO_OFTEN)
        .shown(&["too_many_mcp_messages_are_refused_with_a_code_of_their_own"]),
        row(
            "wrong session codes of an address",
            count(limits.wrong_codes_per_minute, "in a minute"),
            Some("relay.limits.wrong_codes_per_minute"),
        )
        .answer("HTTP 429 with `Retry-After`, to right ones too")
        .metric("signalbox_relay_wrong_codes_total")
        .shown(&["guesses_and_floods_are_slowed_down"]),
        row("counted addresses, for each of these", vec![Count(MAX_KEYS, "addresses")], None)
            .answer("those without a count are dropped first, then those with the smallest")
            .metric(TOO_OFTEN)
            .shown(&["each_key_has_a_bucket_of_its_own_and_their_number_is_bounded"]),
    ]
}
