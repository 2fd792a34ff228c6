//! One suite over every store. Each test gets a house: an empty store that can be opened again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "all of this is a test, its helpers too")]

mod both;
mod certificates;
mod converting;
mod finding;
mod forgetting;
mod house;
mod keeping;
mod make;
mod naming;
#[allow(dead_code, reason = "the tests of the audit log stop it and have it hang")]
mod postgres_server;
mod room;
mod sealing;
mod searching;
mod telling;
mod tls;
mod version_2;
mod writing;

use house::House;

macro_rules! suite {
    ($($subject:ident :: $name:ident),* $(,)?) => {
        mod sqlite {
            $(#[test] fn $name() { super::$subject::$name(&super::House::sqlite()); })*
        }

        /// All cases, for the store that needs a server; starting one for each would take most of the time.
        const CASES: &[(&str, fn(&House))] = &[$((stringify!($name), $subject::$name)),*];
    };
}

suite![
    keeping::every_kind_of_entry_comes_back_as_it_was,
    keeping::bodies_that_refer_to_another_are_made_whole,
    keeping::bodies_of_every_size_and_sort_come_back,
    keeping::a_store_that_is_opened_again_has_everything,
    keeping::a_tape_from_elsewhere_is_kept_whole_or_not_at_all,
    keeping::many_small_bodies_come_back_after_a_dictionary_was_made,
    finding::each_field_of_a_query_narrows_it,
    finding::fields_of_a_query_narrow_it_together,
    finding::entries_come_in_order_and_page_by_page,
    finding::messages_of_an_exchange_are_found_by_how_it_ended,
    finding::several_tapes_are_one_stream_by_time,
    finding::a_tape_whose_clock_went_backwards_is_found_by_time_all_the_same,
    finding::a_tape_keeps_its_order_among_others_whatever_its_clock_did,
    finding::limits_are_kept,
    finding::the_index_and_what_is_behind_it_find_the_same,
    searching::words_and_phrases_are_found,
    searching::phrases_are_found_page_by_page_among_many_that_are_none,
    searching::the_client_side_is_searched_image_by_image_and_the_backend_side_is_not,
    searching::hostile_text_is_only_text,
    searching::other_images_of_a_message_are_found_only_where_a_word_differs,
    searching::names_are_no_patterns,
    naming::a_tape_is_named_whole_by_a_beginning_or_as_the_last,
    naming::tapes_are_listed_newest_first_with_their_number_of_entries,
    naming::sessions_are_known_by_what_was_said_last,
    telling::statistics_are_what_a_hand_computes,
    telling::statistics_of_one_tape_and_of_all,
    telling::durations_of_many_exchanges_are_told,
    writing::a_tape_that_ends_before_the_next_is_whole_and_searched_whole,
    forgetting::a_removed_tape_is_gone_and_the_others_are_not,
    forgetting::a_tape_that_is_removed_while_it_is_written_goes_on,
    forgetting::a_tape_that_is_removed_after_it_was_indexed_is_indexed_again,
    forgetting::what_is_too_old_goes,
    forgetting::what_is_too_much_goes_oldest_first,
    forgetting::a_body_whose_base_went_is_still_whole,
    version_2::everything_of_version_2_comes_back_as_it_was,
    version_2::notifications_are_counted_by_method_and_durations_on_average,
    version_2::notifications_that_are_forgotten_are_not_counted_any_more,
    version_2::a_method_of_any_length_is_counted,
    sealing::a_sealed_tape_is_valid_closed_or_not,
    sealing::every_column_of_every_entry_counts,
    sealing::every_column_of_every_derived_row_counts,
    sealing::a_name_of_another_role_or_tape_counts,
    sealing::rows_of_a_live_or_pruned_tape_are_no_faults,
    sealing::deleted_swapped_added_and_cut_entries_are_named,
    sealing::what_is_left_after_pruning_still_proves_itself,
    room::what_clients_say_of_themselves_is_counted,
    room::sessions_that_are_over_go_with_their_entries,
    room::a_tape_that_is_too_large_alone_loses_its_oldest_entries_and_says_so,
    room::a_store_stays_within_its_room_while_it_is_written,
    writing::several_writers_write_at_once,
    writing::a_batch_that_is_refused_leaves_nothing_and_the_next_one_is_kept,
    writing::a_batch_that_is_durable_is_there_for_others,
];

// The real server; see script/install-test-deps.
#[test]
fn postgres_passes_the_same_suite() {
    let Some(server) = postgres_server::PostgresServer::start() else { return };
    let mut failed = Vec::new();
    for (name, case) in CASES {
        let house = House::postgres(&server);
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case(&house))).is_err() {
            failed.push(*name);
        }
    }
    assert!(failed.is_empty(), "on PostgreSQL: {failed:?}");
}

#[test]
fn a_connection_that_was_lost_is_made_again() {
    use signalbox_engine::record::{StoreError, TapeStore};
    let Some(server) = postgres_server::PostgresServer::start() else { return };
    let url = server.database();
    let store = signalbox_store::PostgresStore::open(&url).unwrap();
    let mut writer = store.begin(&make::tape("t", 1)).unwrap();
    writer.append(&[make::request(1, "{}")], false).unwrap();
    server.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'signalbox'");
    let batch = [make::request(2, "{}")];
    let lost = writer.append(&batch, false).unwrap_err();
    assert!(
        matches!(lost, StoreError::Open { .. } | StoreError::Other(_)) && !lost.to_string().contains("s3cret"),
        "{lost}"
    );
    writer.append(&batch, false).unwrap();
    let lost = store.tapes().unwrap_err();
    assert!(!lost.to_string().contains("s3cret"), "{lost}");
    assert_eq!(make::places(&store, &make::all()), [1, 2]);
    drop((store, writer));
    let place = url.replace("dbname=", "dbname=no");
    let error = signalbox_store::PostgresStore::open(&place).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("does not exist") && !error.contains("s3cret"), "{error}");
}

#[test]
fn a_database_of_the_future_is_refused() {
    use signalbox_engine::record::StoreError;
    let Some(server) = postgres_server::PostgresServer::start() else { return };
    let url = server.database();
    drop(signalbox_store::PostgresStore::open(&url).unwrap());
    let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
    client.batch_execute("UPDATE signalbox.meta SET value = '7' WHERE key = 'version'").unwrap();
    let error = signalbox_store::PostgresStore::open(&url).map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::Future { found: 7, known: 3, .. }), "{error}");
}
