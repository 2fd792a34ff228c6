//! Holds docs/requirements.md against the tests, both ways. Each row names a test that says that it proves the row, a
//! script or benchmark that exists, or why it has neither. Each `Proves` of a test names a row of the page.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it wants")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Series of rows: their letters, first and last number.
const SERIES: [(&str, u32, u32); 11] = [
    ("P", 1, 30),
    ("PO", 1, 1),
    ("PO", 10, 17),
    ("G", 1, 46),
    ("GO", 1, 10),
    ("C", 1, 37),
    ("CO", 1, 16),
    ("S", 1, 77),
    ("SO", 1, 17),
    ("N", 1, 46),
    ("NO", 1, 18),
];

/// Rows about file layout, versions of crates, hours and phases. The finished program answers them.
const BY_DESIGN: [&str; 10] = ["N-5", "N-6", "N-22", "N-33", "N-34", "N-42", "S-72", "S-74", "S-76", "S-77"];

/// Beginning of the proof of a row that no test proves; what stands in for it follows.
const NO_TEST: &str = "No test of its own yet: ";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// Collects the Rust sources below a folder.
fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// Returns whether a word has the form of a row, such as `SO-12`.
fn is_row(word: &str) -> bool {
    word.split_once('-').is_some_and(|(series, number)| {
        !series.is_empty() && series.chars().all(|c| c.is_ascii_uppercase()) && number.parse::<u32>().is_ok()
    })
}

/// Returns the name of the function that a line begins.
fn function(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let begins = ["", "async ", "pub ", "pub async "].contains(&before);
    begins.then(|| after.split(['(', '<']).next()).flatten()
}

/// The functions of all crates as `crate::name`, with the rows that they prove.
fn functions() -> BTreeMap<String, BTreeSet<String>> {
    let (crates, mut sources) = (root().join("crates"), Vec::new());
    walk(&crates, &mut sources);
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in sources {
        let krate = source.strip_prefix(&crates).unwrap().iter().next().unwrap().to_string_lossy().into_owned();
        let mut rows = BTreeSet::new();
        for line in fs::read_to_string(&source).unwrap().lines().map(str::trim) {
            if let Some(listed) = line.strip_prefix("/// Proves ") {
                rows.extend(listed.split([' ', ',', '.']).filter(|word| is_row(word)).map(ToOwned::to_owned));
            } else if let Some(name) = function(line) {
                found.entry(format!("{krate}::{name}")).or_default().append(&mut rows);
            }
        }
    }
    found
}

/// The rows of the page, each with what proves it.
fn page_rows(page: &str) -> BTreeMap<&str, &str> {
    let mut rows = BTreeMap::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        if let [row, _, _, proof] = cells[..]
            && is_row(row)
        {
            assert!(rows.insert(row, proof).is_none(), "{row} is there twice");
        }
    }
    rows
}

/// Tells what is wrong with the proof of a row.
fn faults_of(row: &str, proof: &str, functions: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut faults = Vec::new();
    let quoted: Vec<&str> = proof.split('`').skip(1).step_by(2).collect();
    let is_claimed = !proof.starts_with(NO_TEST) && !BY_DESIGN.contains(&row);
    for name in &quoted {
        match functions.get(*name) {
            None if name.contains("::") => faults.push(format!("{row}: there is no test `{name}`")),
            None if !root().join(name).exists() => faults.push(format!("{row}: there is no file `{name}`")),
            Some(rows) if is_claimed && !rows.contains(row) => {
                faults.push(format!("{row}: `{name}` does not say that it proves it"));
            }
            _ => {}
        }
    }
    if BY_DESIGN.contains(&row) != (proof == "By design") {
        faults.push(format!("{row}: only the rows in this test are answered by design, and say `By design`"));
    }
    if is_claimed && quoted.is_empty() {
        faults.push(format!("{row}: nothing proves it"));
    }
    if !is_claimed && functions.values().any(|rows| rows.contains(row)) {
        faults.push(format!("{row}: a test proves it, and the page says that none does"));
    }
    faults
}

#[test]
fn every_requirement_has_a_proof_and_every_proof_a_requirement() {
    let page = fs::read_to_string(root().join("docs/requirements.md")).unwrap();
    let (rows, functions) = (page_rows(&page), functions());
    let expected: BTreeSet<String> = SERIES
        .iter()
        .flat_map(|(series, first, last)| (*first..=*last).map(move |number| format!("{series}-{number}")))
        .collect();
    let shown: BTreeSet<String> = rows.keys().map(|row| (*row).to_owned()).collect();
    let differing: Vec<&String> = expected.symmetric_difference(&shown).collect();
    assert!(differing.is_empty(), "rows that are missing on the page or unknown: {differing:?}");
    let mut faults: Vec<String> = rows.iter().flat_map(|(row, proof)| faults_of(row, proof, &functions)).collect();
    for (name, proved) in &functions {
        let unknown = proved.iter().filter(|row| !rows.contains_key(row.as_str()));
        faults.extend(unknown.map(|row| format!("`{name}` proves {row}, which is no row of the page")));
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}
