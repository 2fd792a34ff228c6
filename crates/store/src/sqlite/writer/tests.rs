//! A file that may not grow.

use super::*;
use crate::sqlite::connection;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, MessageEntry, MessageKind, TapeKind};
use std::time::Duration;

fn entry(seq: u64) -> Entry {
    let noise: Vec<u8> = (0..2_000u64).map(|n| ((n + seq).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
    let content = Content::Message(MessageEntry {
        method: Some(format!("m{seq}").into()),
        ..MessageEntry::new(Point::ClientIn, MessageKind::Raw, 2_000, Body::Whole(noise.into()))
    });
    Entry { exchange: Some(seq), ..Entry::new(seq, seq, "local".into(), content) }
}

#[test]
fn a_full_file_keeps_nothing_of_the_batch_and_all_of_it_later() {
    let folder = tempfile::TempDir::new().unwrap();
    let place = Place::new(&folder.path().join("tapes.db"), Duration::from_secs(5));
    let connection = connection::create(&place).unwrap();
    let info = TapeInfo::new("t".into(), TapeKind::Serve, String::new(), 1);
    let mut writer = SqliteWriter::begin(place, connection, &info, false, None).unwrap();
    let limit = |writer: &SqliteWriter, pages: u32| {
        writer.connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).unwrap();
    };
    let count = |writer: &SqliteWriter, table: &str| -> i64 {
        writer.connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    writer.append(&[entry(1)], false).unwrap();
    limit(&writer, 60);
    let batch: Vec<Entry> = (2..=400).map(entry).collect();
    for _ in 0..2 {
        assert!(matches!(writer.append(&batch, true), Err(StoreError::Full(_))));
        for table in ["tape_entries", "exchanges"] {
            assert_eq!(count(&writer, table), 1, "{table}");
        }
    }
    limit(&writer, 1_000_000);
    writer.append(&batch, true).unwrap();
    assert_eq!(count(&writer, "tape_entries"), 400);
    assert_eq!(count(&writer, "names WHERE role = 'm'"), 400, "names of the failed batch were not taken for kept");
    writer.end(9).unwrap();
}
