//! Spellings of paths and hosts, against the readings of other programs. The tables say where they come from.

use serde_json::json;
use signalbox_guard::argument_filters::{FilterKind, FindingRisk, Meanings, SsrfTarget, examine};

#[test]
fn each_spelling_of_a_traversal_is_found() {
    let rows: Vec<&str> =
        include_str!("data/traversal_spellings.txt").lines().filter(|row| !row.starts_with('#')).collect();
    let path = |row: &str| serde_json::from_str::<String>(row).unwrap();
    let is_found = |row: &&&str| {
        let found = examine(&json!({ "path": path(row) }), &Meanings::default());
        found.iter().any(|one| one.kind == FilterKind::PathTraversal)
    };
    let missed: Vec<&&str> = rows.iter().filter(|row| !is_found(row)).collect();
    assert!(rows.len() >= 300 && missed.is_empty(), "{} of {} missed: {missed:#?}", missed.len(), rows.len());
}

#[test]
fn each_spelling_of_an_address_is_found() {
    let rows: Vec<&str> = include_str!("data/ssrf_spellings.txt").lines().filter(|row| !row.starts_with('#')).collect();
    let is_found = |row: &&&str| {
        let [url, _, class, _] = row.split('\t').collect::<Vec<_>>()[..] else { panic!("{row}") };
        let expected = match class {
            "metadata" => SsrfTarget::Metadata,
            "private" => SsrfTarget::Private,
            _ => SsrfTarget::Loopback,
        };
        let url: String = serde_json::from_str(url).unwrap();
        let found = examine(&json!({ "url": url }), &Meanings::default());
        found
            .iter()
            .any(|one| one.kind == FilterKind::Ssrf(expected) && (class != "metadata" || one.risk == FindingRisk::High))
    };
    let missed: Vec<&&str> = rows.iter().filter(|row| !is_found(row)).collect();
    assert!(rows.len() >= 200 && missed.is_empty(), "{} of {} missed: {missed:#?}", missed.len(), rows.len());
}
