//! Every row of the requirements of "MCP Serialization and Canonicalization" is named by a test: P-1 to P-30, PO-1, PO-10 to PO-17.
//!
//! A test names a row in its function (`p_17_…`, `p_22_to_p_24_and_po_14_…`) or in a comment directly above it (`// P-28`).
#![expect(clippy::unwrap_used, reason = "a test may fail wherever it wants")]

use std::collections::BTreeSet;
use std::path::Path;

type Row = (&'static str, u32);

fn rows() -> BTreeSet<Row> {
    let p = (1..=30).map(|number| ("p", number));
    p.chain([("po", 1)]).chain((10..=17).map(|number| ("po", number))).collect()
}

/// The rows that a name such as `p_22_to_p_24_and_po_14_a_signed_request` begins with.
fn named(name: &str) -> BTreeSet<Row> {
    let words: Vec<&str> = name.split('_').collect();
    let mut found = BTreeSet::new();
    let (mut at, mut from) = (0, None);
    loop {
        let series = match words.get(at) {
            Some(&"p") => "p",
            Some(&"po") => "po",
            Some(&"and") => {
                at += 1;
                continue;
            }
            Some(&"to") => {
                from = found.last().copied();
                at += 1;
                continue;
            }
            _ => return found,
        };
        let Some(number) = words.get(at + 1).and_then(|word| word.parse::<u32>().ok()) else { return found };
        if let Some((before, first)) = from.take()
            && before == series
        {
            found.extend((first..number).map(|between| (series, between)));
        }
        found.insert((series, number));
        at += 2;
    }
}

/// The rows that the tests of a file name.
fn in_file(text: &str) -> BTreeSet<Row> {
    let mut found = BTreeSet::new();
    let mut comment = BTreeSet::new();
    for line in text.lines().map(str::trim) {
        if let Some(words) = line.strip_prefix("// ").or_else(|| line.strip_prefix("/// ")) {
            comment.extend(named(&words.to_lowercase().replace(['-', ' ', ','], "_").replace("__", "_")));
        } else if let Some(name) = line.strip_prefix("fn ") {
            found.extend(named(name.split('(').next().unwrap()));
            found.append(&mut comment);
        } else if !line.starts_with("#[") {
            comment.clear();
        }
    }
    found
}

fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("rows.rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_row_has_a_test_that_names_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    files(&root.join("src"), &mut sources);
    files(&root.join("tests"), &mut sources);
    let mut covered = BTreeSet::new();
    for source in sources {
        covered.extend(in_file(&std::fs::read_to_string(source).unwrap()));
    }
    let missing: Vec<_> = rows().difference(&covered).copied().collect();
    assert!(missing.is_empty(), "no test names {missing:?}");
}

#[test]
fn names_are_read_as_they_are_written() {
    assert_eq!(named("p_17_keys"), [("p", 17)].into());
    assert_eq!(named("p_2_to_p_4_and_po_1_messages"), [("p", 2), ("p", 3), ("p", 4), ("po", 1)].into());
    assert_eq!(named("po_13_p_9"), [("po", 13), ("p", 9)].into());
    assert_eq!(named("a_p_5"), [].into());
    assert_eq!(in_file("// P-28, P-29\n#[test]\nfn x() {}\n// P-1\nlet a;\nfn y() {}"), [("p", 28), ("p", 29)].into());
}
