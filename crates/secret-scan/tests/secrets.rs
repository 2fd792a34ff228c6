//! Counts how many secrets of a list are found, where one is named.
//!
//! `MCP_TEST_SECRETS=FILE` names a list: one secret on each line, as its kind, a tab and a text with `«` and `»` around
//! the secret, where `␤` stands for the end of a line. Misses are shown with `MCP_TEST_SECRETS_SHOW=1` only, so that a
//! part of a list can be held out. Lists are not part of the repository: they hold what looks like live credentials.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it wants")]

use signalbox_secret_scan::Scanner;
use std::collections::BTreeMap;
use std::fs;

/// True if the findings cover the whole secret.
fn is_found(marked: &str) -> bool {
    let start = marked.find('«').unwrap();
    let end = marked.find('»').unwrap() - '«'.len_utf8();
    let text = marked.replace(['«', '»'], "");
    let findings = Scanner::built_in().find(text.as_bytes());
    let covers =
        |at: usize, found: &signalbox_secret_scan::CredentialMatch<'_>| match found.start <= at && at < found.end {
            true => found.end,
            false => at,
        };
    findings.found.iter().fold(start, covers) >= end
}

#[test]
fn secrets_of_a_list_are_counted_where_one_is_named() {
    let Some(file) = std::env::var_os("MCP_TEST_SECRETS") else { return };
    let show = std::env::var_os("MCP_TEST_SECRETS_SHOW").is_some();
    let list = fs::read_to_string(file).unwrap();
    let mut kinds: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for line in list.lines().filter(|line| !line.is_empty()) {
        let (kind, marked) = line.split_once('\t').unwrap();
        let found = is_found(&marked.replace('␤', "\n"));
        let (good, all) = kinds.entry(kind).or_default();
        *good += usize::from(found);
        *all += 1;
        if !found && show {
            println!("missed: {line}");
        }
    }
    let sum = |pick: fn(&(usize, usize)) -> usize| kinds.values().map(pick).sum::<usize>();
    let (good, all) = (sum(|(good, _)| *good), sum(|(_, all)| *all));
    let full = kinds.values().filter(|(good, all)| good == all).count();
    println!("{good} of {all} secrets, {full} of {} kinds in full", kinds.len());
    assert!(all > 0, "the list is empty");
}
