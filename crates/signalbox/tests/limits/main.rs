//! `docs/limits.md`: every limit on what comes from outside, what the other side gets at it, and where it is counted.
//!
//! The page is written from the table below, whose figures come from the code. `MCP_TEST_BLESS=1` writes it again.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod audit_and_relay;
mod kept;

use signalbox_assembly::assemble::{StateFiles, assemble};
use signalbox_assembly::data_dir::DataDir;
use signalbox_assembly::recording::Recording;
use signalbox_config::keys::{KEYS, KeyKind};
use signalbox_config::{Config, ConfigLocation, Overrides};
use signalbox_control::{metrics, open_files};
use signalbox_engine::bridge::bridged_call;
use signalbox_engine::budget;
use signalbox_engine::operations::{
    MAX_OPERATION_BYTES, MAX_OPERATION_BYTES_EACH, MAX_OPERATIONS, MAX_OPERATIONS_EACH,
};
use signalbox_engine::profile::MAX_CLAIMED;
use signalbox_engine::record::TapeKind;
use signalbox_engine::task_calls::{MAX_TASK_CALLS, MAX_TASK_ID};
use signalbox_engine::{Limit, Principal, catalog, front};
use signalbox_oauth_client::page_host::PageHost;
use signalbox_runtime::backend::idle::SHARED_IDLE;
use signalbox_runtime::backend::{MAX_POOLED, MAX_WATCHES, MAX_WATCHES_EACH};
use signalbox_runtime::list_wait::{DECLARED_LIST_WAIT, EARLY_LIST_WAIT, KNOWN_LIST_WAIT};
use signalbox_runtime::{FailureRules, Settings, lists, outbox, parked_calls, session_store, task_directory};
use signalbox_seal::canonical;
use signalbox_transport::admission::RESERVE;
use signalbox_transport::file_budget::UNLIMITED_BACKENDS;
use signalbox_transport::http_front::{self, FrontSpec};
use signalbox_transport::{child, places, router, send_queue, tcp_front, turned_away, unknown_caller};
use signalbox_wire::limits;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What may be limited by a number of something, of bytes, or in time.
enum Most {
    Count(usize, &'static str),
    Bytes(usize),
    Time(Duration),
}

use Most::{Bytes, Count, Time};

/// A row of the page.
struct Row {
    what: &'static str,
    most: Vec<Most>,
    /// The key that sets the first of them.
    key: Option<&'static str>,
    answer: &'static str,
    metric: &'static str,
    /// The tests that show the answer.
    shown: &'static [&'static str],
}

fn row(what: &'static str, most: Vec<Most>, key: Option<&'static str>) -> Row {
    Row { what, most, key, answer: "", metric: "", shown: &[] }
}

impl Row {
    fn answer(self, answer: &'static str) -> Self {
        Self { answer, ..self }
    }

    fn metric(self, metric: &'static str) -> Self {
        Self { metric, ..self }
    }

    fn shown(self, shown: &'static [&'static str]) -> Self {
        Self { shown, ..self }
    }
}

const OVERLOADED: &str = "error `overloaded`, which may be tried again";
const BY_OUTCOME: &str = "signalbox_requests_total";

#[expect(clippy::too_many_lines, reason = "a table, one row after the other")]
fn of_connections() -> Vec<Row> {
    let (spec, share) = (FrontSpec::default(), 100 / places::LEAST_HOLDERS);
    vec![
        row("connections", vec![Count(spec.admission.most(), "connections")], Some("gateway.max_connections"))
            .answer("HTTP 503 with `Retry-After`; over TCP one line with the error `overloaded`; then closed")
            .metric("signalbox_connections_refused_total")
            .shown(&[
                "one_connection_too_many_hears_503_though_it_has_sent_its_request",
                "one_session_or_connection_too_many_is_told_so",
            ]),
        row("an idle connection, while every place is taken", vec![Time(http_front::IDLE)], None)
            .answer(
                "closed to make room for another one: the idlest first, and unproved ones before proved ones",
            )
            .metric(r#"signalbox_refused_total{limit="idle"}"#)
            .shown(&[
                "idle_connections_give_way_to_new_ones",
                "connections_in_use_do_not_give_way",
                "idle_strangers_give_way_before_callers_who_proved_themselves",
            ]),
        row(
            "connections of one proved caller, while every place is taken",
            vec![Count(share, "% of the places at most")],
            None,
        )
        .answer(
            "its newest streams and calls end to make room for others: HTTP 503, the error `overloaded` as last event, WebSocket close 1013; \
             the share is the places divided by the number of proved callers, all unproved connections counting as one more",
        )
        .metric(r#"signalbox_refused_total{limit="connection_share"}"#)
        .shown(&[
            "listens_of_one_caller_give_way_to_others_and_probes",
            "the_newest_streams_of_a_caller_above_its_share_end_and_no_more",
        ]),
        row(
            "connections of one address without proof, while every place is taken",
            vec![Count(share, "% of the places of all unproved connections at most")],
            None,
        )
        .answer(
            "its newest streams end to make room for others, before those of proved callers; the share is the places of unproved connections \
             divided by the number of their addresses (of IPv6 the first 64 bits)",
        )
        .metric(r#"signalbox_refused_total{limit="connection_share"}"#)
        .shown(&[
            "streams_of_pages_give_way_to_proved_callers_and_probes",
            "many_addresses_have_one_share_together_toward_proved_callers",
        ]),
        row("connections beyond the limit whose first request is read", vec![Count(RESERVE, "connections")], None)
            .answer("the oldest of the address with the most of them is closed")
            .metric("signalbox_connections_refused_total")
            .shown(&[
                "silent_websockets_without_a_credential_give_way_to_proved_callers_and_probes",
                "the_address_with_the_most_connections_in_the_reserve_gives_way",
            ]),
        row("open files of the process", vec![Count(open_files::WANTED as usize, "files")], None)
            .answer(
                "the limit of the system counts if it is lower (`ulimit -Hn`): there are then fewer places for connections than \
                 `gateway.max_connections`, which a warning at the start, `status` and `doctor` report",
            )
            .metric("signalbox_connections_refused_total")
            .shown(&["small_limits_lower_the_places", "the_limit_of_a_running_gateway_is_the_one_that_counts"]),
        row("reports of a holder above its share", vec![Time(places::REPORT_EACH)], None)
            .answer("one warning in the log and one record in the audit log for each in this time")
            .metric(r#"signalbox_refused_total{limit="connection_share"}"#)
            .shown(&["listens_of_one_caller_give_way_to_others_and_probes"]),
        row("refused connections that get this reply at a time", vec![Count(turned_away::MAX_TOLD, "connections")], None)
            .answer("closed without a reply")
            .metric("signalbox_connections_refused_total")
            .shown(&["only_so_many_are_told_at_a_time"]),
        row("the head of a request", vec![Time(spec.header_timeout)], None)
            .answer("closed")
            .metric(r#"signalbox_refused_total{limit="head_time"}"#)
            .shown(&["a_client_that_sends_no_head_in_time_is_cut_and_counted"]),
        row("the first byte over TCP", vec![Time(tcp_front::FIRST_BYTE)], None)
            .answer("closed")
            .metric(r#"signalbox_refused_total{limit="head_time"}"#)
            .shown(&["a_connection_that_says_nothing_is_closed_and_counted"]),
        row(
            "the size of a head",
            vec![Bytes(http_front::MAX_HEAD), Count(http_front::MAX_HEADERS, "header lines")],
            None,
        )
        .answer("HTTP 431, then closed")
        .metric(r#"signalbox_refused_total{limit="head_size"}"#)
        .shown(&["a_head_that_is_too_large_gets_431_and_is_counted"]),
        row("the body of a request", vec![Time(spec.body_timeout)], None)
            .answer("HTTP 408; a WebSocket is closed after three ticks of 15 s")
            .metric(r#"signalbox_refused_total{limit="message_time"}"#)
            .shown(&["a_client_that_sends_no_body_in_time_gets_408_and_is_counted"]),
        row("the body of a request outside MCP", vec![Bytes(router::MAX_BODY)], None)
            .answer("HTTP 413; a message that replaces a held one may have 64 MiB")
            .metric(r#"signalbox_refused_total{limit="message_size"}"#)
            .shown(&["a_body_beyond_the_limit_of_its_route_gets_413_and_is_counted"]),
        row("a client that reads nothing of its written data", vec![Time(spec.reader_timeout)], None)
            .answer("closed; the client can resume an event stream if its revision supports that")
            .metric(r#"signalbox_refused_total{limit="slow_reader"}"#)
            .shown(&[
                "a_client_that_asks_and_never_reads_is_cut_and_counted",
                "a_reader_that_takes_nothing_is_given_up_and_a_slow_one_is_not",
            ]),
    ]
}

fn of_messages() -> Vec<Row> {
    let settings = Settings::default();
    vec![
        row("a message", vec![Bytes(limits::MESSAGE)], Some("gateway.max_message"))
            .answer("HTTP 413; a WebSocket is closed with 1009; a line is skipped and answered with -32600")
            .metric(r#"signalbox_refused_total{limit="message_size"}"#)
            .shown(&[
                "a_body_that_is_too_large_gets_413_and_is_counted",
                "a_body_that_is_too_large_is_not_read",
                "what_cannot_be_read_is_answered_and_the_next_line_works",
            ]),
        row("a message of a caller that only its signature proves", vec![Bytes(unknown_caller::UNKNOWN_CALLER)], None)
            .answer("the same, and the error says so; JSON only if `seal.require` is `*`")
            .metric(r#"signalbox_refused_total{limit="unknown_caller"}"#)
            .shown(&["little_is_read_of_callers_whom_only_their_signature_proves"]),
        row(
            "messages of 4 KiB and more that the process holds, wherever they wait",
            vec![Bytes(settings.memory)],
            Some("gateway.memory"),
        )
        .answer(
            "a new message waits 5 s for room, then HTTP 503 with `Retry-After`, a WebSocket is closed with 1013, a line or \
             a call gets the error `overloaded`",
        )
        .metric(r#"signalbox_refused_total{limit="memory"}"#)
        .shown(&[
            "one_greedy_session_leaves_room_for_the_next_and_that_for_a_third",
            "whoever_makes_the_gateway_hold_much_hurts_nobody_else",
        ]),
        row(
            "bytes of them that each client may use while any are left",
            vec![Bytes(budget::MINIMUM)],
            None,
        )
        .answer("accepted although others hold their share")
        .metric("signalbox_message_bytes")
        .shown(&["the_minimum_is_there_until_the_budget_is_used_up"]),
        row(
            "the shape of a message",
            vec![Count(limits::DEPTH, "levels"), Count(limits::WIDTH, "members"), Count(limits::BATCH, "in a batch")],
            None,
        )
        .answer("error -32600")
        .metric("signalbox_malformed_total")
        .shown(&["size_depth_and_width_are_bounded"]),
        row(
            "the canonical form of a signed message",
            vec![Count(canonical::MAX_GROWTH, "times the message"), Bytes(canonical::SPARE)],
            None,
        )
        .answer("error `no_canonical_form`; the bytes are added to what the message allows")
        .metric("signalbox_signatures_refused_total")
        .shown(&[
            "short_messages_with_long_numbers_have_no_canonical_form",
            "a_forged_signature_over_long_numbers_is_refused_at_every_way_in",
        ]),
    ]
}

#[expect(clippy::too_many_lines, reason = "a table, one row after the other")]
fn of_sessions() -> Vec<Row> {
    let settings = Settings::default();
    vec![
        row(
            "sessions",
            vec![Count(settings.max_sessions, "sessions")],
            Some("mcp.protocol.security.max_concurrent_sessions"),
        )
        .answer(
            "the caller's session that was idle longest ends, if it was idle for a minute; otherwise HTTP 503 with `Retry-After` and the error `overloaded`",
        )
        .metric("signalbox_sessions_refused_total")
        .shown(&[
            "one_session_too_many_is_refused_until_another_ends",
            "at_the_limit_the_idlest_session_of_a_caller_gives_way",
            "one_session_or_connection_too_many_is_refused",
        ]),
        row("the introduction of a client", vec![Bytes(MAX_CLAIMED)], None)
            .answer("error -32602, which names the member that is too long")
            .metric(BY_OUTCOME)
            .shown(&["a_client_that_says_too_much_of_itself_is_refused"]),
        row("an idle session", vec![Time(settings.session_timeout)], Some("mcp.protocol.security.session_timeout"))
            .answer("the next request gets HTTP 404 and initializes again")
            .metric("signalbox_sessions")
            .shown(&["every_call_gets_one_right_answer_or_a_clear_error_and_nothing_is_left_behind"]),
        row("event streams of a session", vec![Count(settings.max_streams, "streams")], Some("gateway.max_streams"))
            .answer(
                "a GET gets HTTP 429 with `Retry-After`; a POST gets its answer as JSON, without messages before it",
            )
            .metric(r#"signalbox_refused_total{limit="streams"}"#)
            .shown(&["a_session_at_its_limit_of_event_streams_still_gets_answers"]),
        row(
            "unanswered requests of a session",
            vec![Count(settings.max_in_flight, "requests")],
            Some("gateway.max_in_flight"),
        )
        .answer(OVERLOADED)
        .metric(r#"signalbox_refused_total{limit="in_flight"}"#)
        .shown(&["one_request_too_many_of_a_session_is_refused_and_counted"]),
        row(
            "messages that wait for a client that does not read",
            vec![Count(outbox::OUTBOX_BOUND, "messages"), Count(outbox::OUTBOX_LIMIT, "with answers")],
            None,
        )
        .answer("progress and log messages are dropped; nothing more is read of a pipe; then the stream ends")
        .metric("signalbox_dropped_total")
        .shown(&["a_full_stream_drops_progress_and_never_an_answer", "a_pipe_that_is_never_read_ends"]),
        row("a client of HTTP+SSE that posts and does not read", vec![Count(outbox::OUTBOX_BOUND, "messages")], None)
            .answer("HTTP 429 with `Retry-After` after 5 s")
            .metric(r#"signalbox_refused_total{limit="behind"}"#)
            .shown(&["a_client_that_does_not_read_is_held_up_and_then_gets_everything"]),
        row("resources in one listen request", vec![Count(front::MAX_FOLLOWED, "resources")], None)
            .answer("the rest is left out of the acknowledgement")
            .metric(r#"signalbox_refused_total{limit="subscriptions"}"#)
            .shown(&["listen_requests_past_the_bound_are_told_that_nothing_is_followed_for_them"]),
        row(
            "resources that a session follows on a backend",
            vec![Count(MAX_WATCHES_EACH, "resources"), Count(MAX_WATCHES, "of all sessions")],
            None,
        )
        .answer(OVERLOADED)
        .metric(BY_OUTCOME)
        .shown(&["one_session_follows_so_many_resources_and_others_still_can"]),
        row("event streams that wait for their client to come back", resting(), None)
            .answer("the oldest ended one is dropped; resuming it gets HTTP 410")
            .metric("signalbox_dropped_total")
            .shown(&["a_session_keeps_so_many_streams_and_the_oldest_go_first"]),
        row("a session that is kept for the next process", stored(), None)
            .answer("after a restart the next request gets HTTP 404 and initializes again")
            .metric("signalbox_dropped_total")
            .shown(&["what_is_stored_is_read_again_and_what_is_over_is_removed"]),
    ]
}

fn stored() -> Vec<Most> {
    vec![Bytes(session_store::MAX_STORED_BYTES), Count(session_store::MAX_STORED, "sessions")]
}

fn resting() -> Vec<Most> {
    vec![
        Count(http_front::MAX_PARKED, "streams"),
        Count(http_front::MAX_PARKED_PER_SESSION, "of one session"),
        Bytes(http_front::MAX_PARKED_BYTES),
        Time(http_front::PARKED_FOR),
    ]
}

fn states() -> Vec<Most> {
    vec![
        Count(MAX_OPERATIONS, "states"),
        Count(MAX_OPERATIONS_EACH, "of one caller"),
        Bytes(MAX_OPERATION_BYTES),
        Bytes(MAX_OPERATION_BYTES_EACH),
    ]
}

fn of_calls() -> Vec<Row> {
    let settings = Settings::default();
    vec![
        row("remembered states of calls of 2026-07-28, which join their rounds", states(), None)
            .answer(
                "the oldest of the caller with the most is forgotten, and its next round counts as a call of its own",
            )
            .metric(BY_OUTCOME)
            .shown(&["a_caller_with_many_states_loses_its_own"]),
        row(
            "tasks whose call is remembered, so that rules judge their results",
            vec![Count(MAX_TASK_CALLS, "tasks"), Bytes(MAX_TASK_ID)],
            None,
        )
        .answer("the oldest is forgotten, and a rule that may match refuses its result")
        .metric(BY_OUTCOME)
        .shown(&["the_oldest_are_forgotten"]),
        row("a call", vec![], Some("gateway.call_timeout"))
            .answer("error `timed_out`")
            .metric(BY_OUTCOME)
            .shown(&["a_backend_that_does_not_answer_in_time_delays_nobody_else"]),
        row(
            "calls that wait for input of their clients",
            vec![
                Count(parked_calls::MAX_PARKED, "calls"),
                Count(parked_calls::MAX_PARKED_EACH, "of one principal"),
                Bytes(parked_calls::MAX_PARKED_BYTES),
                Bytes(settings.max_parked_bytes),
            ],
            None,
        )
        .answer(OVERLOADED)
        .metric("signalbox_parked_bytes")
        .shown(&["parked_calls_are_bounded_in_bytes"]),
        row("time that they wait", vec![Time(settings.park_timeout)], Some("gateway.park_timeout"))
            .answer("the backend's call is cancelled; a client that comes back gets the error -32602")
            .metric("signalbox_dropped_total")
            .shown(&["a_client_that_never_comes_back_is_given_up_and_the_backend_is_told"]),
        row(
            "messages of a backend about a call that waits",
            vec![Count(bridged_call::MAX_HEARD, "messages"), Bytes(bridged_call::MAX_HEARD_BYTES)],
            None,
        )
        .answer("dropped")
        .metric("signalbox_dropped_total")
        .shown(&["what_happens_while_nobody_waits_is_kept_and_bounded"]),
        row(
            "questions of backends",
            vec![
                Count(front::MAX_ASKED, "open in a session"),
                Count(bridged_call::MAX_ROUNDS as usize, "rounds in a call"),
            ],
            None,
        )
        .answer("the backend gets an error")
        .metric(r#"signalbox_refused_total{limit="questions"}"#)
        .shown(&["questions_of_calls_that_are_over_do_not_use_up_the_bound", "rounds_and_questions_are_bounded"]),
        row(
            "remembered tasks",
            vec![Count(task_directory::MAX_TASKS, "tasks"), Count(task_directory::MAX_TASKS_EACH, "of one principal")],
            None,
        )
        .answer(OVERLOADED)
        .metric(BY_OUTCOME)
        .shown(&["the_oldest_are_forgotten_when_there_are_too_many_or_too_much"]),
    ]
}

#[expect(clippy::too_many_lines, reason = "a table, one row after the other")]
fn of_backends() -> Vec<Row> {
    vec![
        row("a message of a backend", vec![Bytes(limits::SSE_EVENT)], Some("gateway.max_message"))
            .answer("the call gets the error `backend_garbage`")
            .metric("signalbox_backend_strays_total")
            .shown(&[
                "a_hostile_http_backend_hurts_only_its_own_calls",
                "a_hostile_child_hurts_only_its_own_calls",
            ]),
        row(
            "a list of a backend",
            vec![Count(lists::MAX_ITEMS, "entries"), Count(lists::MAX_PAGES, "pages"), Bytes(lists::MAX_BYTES)],
            None,
        )
        .answer("the list is rejected; `signalbox status` says why")
        .metric("signalbox_backend_strays_total")
        .shown(&[
            "a_list_without_an_end_is_given_up_after_so_many_pages",
            "a_list_of_large_entries_is_given_up_after_so_many_bytes",
        ]),
        row(
            "lists that a backend shows only to clients of some capabilities, or to one caller",
            vec![Count(catalog::MAX_VIEWS, "kinds of clients"), Count(catalog::MAX_PRIVATE_VIEWS, "callers"), Bytes(catalog::VIEW_BYTES)],
            None,
        )
        .answer("the least recently read are forgotten; equal lists count once; the bytes are a quarter of `gateway.memory`")
        .metric("signalbox_backend_up")
        .shown(&[
            "equal_lists_of_invented_capability_sets_are_kept_once",
            "differing_lists_of_invented_capability_sets_are_bounded_in_bytes",
        ]),
        row("lines on a child's standard error", vec![Count(child::STDERR_LINES as usize, "logged in a second")], None)
            .answer("the rest is read and not logged")
            .metric(r#"signalbox_backend_dropped_total{backend="one",reason="stderr_unlogged"}"#)
            .shown(&["a_flood_is_counted_and_not_logged"]),
        row(
            "messages that wait for a backend to read",
            vec![Count(send_queue::QUEUE, "messages"), Bytes(send_queue::QUEUE_BYTES)],
            None,
        )
        .answer(OVERLOADED)
        .metric(BY_OUTCOME)
        .shown(&["a_backend_that_does_not_read_fills_the_queue_and_no_more", "the_queue_is_bounded_in_bytes_too"]),
        row(
            "calls that wait for a backend to start",
            vec![Count(FailureRules::default().max_queue, "calls")],
            Some("backends.NAME.max_queue"),
        )
        .answer(OVERLOADED)
        .metric("signalbox_backend_queue_refused_total")
        .shown(&["calls_beyond_the_queue_are_refused_by_name_and_number", "calls_that_wait_for_a_restart_are_bounded"]),
        row("processes of a local backend", vec![], Some("backends.NAME.max_children"))
            .answer(
                "error `overloaded` once the call has waited in vain; one caller gets all of these except one for the gateway and a quarter for others (half, if others have any), and the error names that share",
            )
            .metric("signalbox_backend_connections")
            .shown(&["with_no_process_left_a_call_waits_for_one", "a_caller_with_many_sessions_leaves_processes_to_others"]),
        row("a list for a client with `list_changed`, while a backend starts", vec![Time(EARLY_LIST_WAIT)], None)
            .answer("the lists of the others, and `list_changed` when there is more; other clients wait for `gateway.first_list_wait`")
            .metric("signalbox_backend_up")
            .shown(&["an_old_client_with_a_general_stream_gets_the_others_lists_early_and_is_told_of_the_rest"]),
        row(
            "a list while only another process of its backend, of the other era for example, has listed anything",
            vec![Time(KNOWN_LIST_WAIT), Time(DECLARED_LIST_WAIT)],
            None,
        )
        .answer(
            "the list of that process, and `list_changed` when there is more. The longer time is for clients that declare \
             capabilities, if that process is of their own era; such clients without `list_changed` wait for \
             `gateway.first_list_wait`",
        )
        .metric("signalbox_backend_up")
        .shown(&[
            "an_old_client_is_shown_what_the_process_of_the_new_era_listed",
            "an_old_client_that_declares_capabilities_is_shown_them_too",
            "a_client_that_declares_capabilities_waits_for_lists_of_its_own_kind",
        ]),
        row("an idle shared connection", vec![Time(SHARED_IDLE)], None)
            .answer("it ends, and is opened again for the next call")
            .metric("signalbox_backend_up")
            .shown(&["the_connection_of_a_principal_who_came_once_ends_and_is_opened_again_when_he_comes_back"]),
        row("connections to all HTTP backends that carry a request", vec![Count(UNLIMITED_BACKENDS, "connections")], None)
            .answer(
                "fewer if the limit of open files leaves fewer (a quarter of them at least); one caller has at most half; a \
                 further call waits for 5 s, and then gets the error `overloaded`",
            )
            .metric("signalbox_backend_connections_refused_total")
            .shown(&["a_caller_with_many_calls_leaves_connections_to_others"]),
        row("pooled connections to a backend", vec![Count(MAX_POOLED, "connections")], None)
            .answer(OVERLOADED)
            .metric("signalbox_backend_connections")
            .shown(&["a_full_pool_does_not_end_the_parked_calls_of_another_principal"]),
    ]
}

fn parts() -> [(&'static str, Vec<Row>); 10] {
    [
        ("Connections", of_connections()),
        ("Messages", of_messages()),
        ("Sessions", of_sessions()),
        ("Calls", of_calls()),
        ("Backends", of_backends()),
        ("Rules", kept::of_rules()),
        ("Held messages and webhooks", kept::of_holds()),
        ("Recording", kept::of_recording()),
        ("Audit log", audit_and_relay::of_audit()),
        ("Relay", audit_and_relay::of_relay()),
    ]
}

fn rows() -> impl Iterator<Item = Row> {
    parts().into_iter().flat_map(|(_, rows)| rows)
}

impl Most {
    fn text(&self) -> String {
        match self {
            Count(count, what) => format!("{count} {what}"),
            Bytes(bytes) if bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
            Bytes(bytes) => format!("{} KiB", bytes >> 10),
            Time(time) => format!("{} s", time.as_secs_f64()),
        }
    }

    fn number(&self) -> f64 {
        match self {
            Count(count, _) | Bytes(count) => f64::from(u32::try_from(*count).unwrap()),
            Time(time) => time.as_secs_f64(),
        }
    }
}

/// The default of a key, as a number.
fn default_of(key: &str) -> f64 {
    match KEYS.iter().find(|known| known.path == key).unwrap_or_else(|| panic!("no key {key}")).kind {
        KeyKind::Count { default, .. } => f64::from(u32::try_from(default).unwrap()),
        KeyKind::Seconds { default, .. } => default.unwrap(),
        other => panic!("{key} is {other:?}"),
    }
}

fn page() -> String {
    let mut page = "# Limits\n\n\
        Look up a limit to see its default, the key that sets it, the answer that the other side gets at it, and the metric that shows\n\
        it. Signalbox bounds everything that comes from outside. A test writes this page from the figures in the code.\n"
        .to_owned();
    for (title, rows) in parts() {
        write!(page, "\n## {title}\n\n| what | limit | key | answer | metric |\n|---|---|---|---|---|\n").unwrap();
        for row in rows {
            let mut most: Vec<String> = row.most.iter().map(Most::text).collect();
            if let (true, Some(key)) = (most.is_empty(), row.key) {
                let unit = if key.ends_with("timeout") { " s" } else { "" };
                most.push(format!("{}{unit}", default_of(key)));
            }
            let key = row.key.map(|key| format!("`{key}`")).unwrap_or_default();
            let metric = row.metric.replace(r#"backend="one","#, "");
            writeln!(page, "| {} | {} | {key} | {} | `{metric}` |", row.what, most.join(", "), row.answer).unwrap();
        }
    }
    page
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

#[test]
fn the_page_is_what_the_code_has() {
    let file = root().join("docs/limits.md");
    if std::env::var("MCP_TEST_BLESS").as_deref() == Ok("1") {
        std::fs::write(&file, page()).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(written == page(), "docs/limits.md is not what the code has; MCP_TEST_BLESS=1 writes it anew:\n{}", page());
}

#[test]
fn every_key_on_the_page_exists_and_has_the_default_that_the_page_says() {
    for row in rows() {
        let Some(key) = row.key else { continue };
        let default = default_of(key);
        if let Some(most) = row.most.first() {
            assert!(
                (most.number() - default).abs() < f64::EPSILON,
                "{key}: {default}, and {} in the code",
                most.text()
            );
        }
    }
}

#[test]
fn every_metric_on_the_page_is_on_the_metrics_page_of_a_gateway_that_has_just_begun() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("signalbox.toml");
    let text = "[seal]\nanchor = [\"a.jsonl\"]\n[mcp.protocol.audit]\nenabled = true\n[relay]\nenabled = true\n\
                [backends.one]\ncommand = \"true\"\n";
    std::fs::write(&file, text).unwrap();
    let overrides = Overrides { data_dir: Some(root.path().into()), ..Overrides::default() };
    let config = Config::load(&ConfigLocation::File(file), &|_| None, &overrides).unwrap().config;
    let data_dir = DataDir::prepare(root.path()).unwrap();
    let recording = Recording::start(&config, TapeKind::Serve, &data_dir).unwrap();
    let app = assemble(&config, Principal::anonymous(), StateFiles::default(), recording, PageHost::Person).unwrap();
    let mut shown = metrics::render(&app, metrics::VisibleNames::All);
    let relay = app.relay.as_ref().unwrap();
    shown.push_str(&relay.counts.page(relay.settings.phase, relay.store.counts()));
    for row in rows() {
        let sample =
            if row.metric.contains('{') { format!("\n{} ", row.metric) } else { format!("# TYPE {} ", row.metric) };
        assert!(shown.contains(&sample), "{} is not there:\n{shown}", row.metric);
    }
    for limit in Limit::ALL {
        let metric = format!("signalbox_refused_total{{limit=\"{}\"}}", limit.word());
        assert!(rows().any(|row| row.metric == metric), "{metric} is on no row");
    }
}

#[test]
fn every_row_names_tests_that_exist() {
    fn sources(folder: &Path, all: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                sources(&path, all);
            } else if path.extension().is_some_and(|end| end == "rs") {
                all.push_str(&std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut all = String::new();
    for name in [
        "wire",
        "engine",
        "runtime",
        "transport",
        "rules",
        "govern",
        "store",
        "tape",
        "audit",
        "relay",
        "seal",
        "config",
        "assembly",
        "control",
        "signalbox",
        "testkit",
        "e2e",
    ] {
        sources(&root().join("crates").join(name), &mut all);
    }
    for row in rows() {
        assert!(!row.shown.is_empty(), "{} is shown by no test", row.what);
        for test in row.shown {
            assert!(all.contains(&format!("fn {test}(")), "{}: there is no test {test}", row.what);
        }
    }
}
