//! The page that tells what was measured.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::cell::CellVerdict;
use super::feature::{Expected, Feature, expected};
use super::places::{BackTransport, FrontTransport};
use super::plan::Measured;
use crate::revision::Revision;

const INTRODUCTION: &str = "# Every revision meets every other

Look up your client and your server to see whether they can work together through Signalbox. A test writes this page from its
measurements and checks it (`crates/e2e/tests/protocol/matrix.rs`). A client that speaks exactly one revision of MCP reaches
a server that speaks exactly one revision, through a real gateway process. Both are strict: a message that their revision does
not allow fails the cell, and so does a tool that ran twice. Neither shares code with the gateway.

The test tries all of these in every cell:

| feature | measurement |
|---|---|
";

const FRONTS: &str = "
## Clients over every transport

The server is a child process of the gateway (stdio). Rows are clients, columns are servers. `all` means that everything above
works; numbers are the notes at the end of this page.

";

const BACKS: &str = "
## Servers over every transport

The client reaches the gateway over the HTTP transport of its revision: HTTP+SSE for 2024-11-05, Streamable HTTP for all
others. Rows are servers, columns are clients.

";

const NOTES: &str = "
## Notes

A revision cannot carry a feature that it does not have. The gateway then refuses with an error that names the feature, or
passes on a form that the revision has:

";

/// The page.
pub fn page(measured: &[Measured]) -> String {
    let notes = notes();
    let mut page = INTRODUCTION.to_owned();
    for feature in Feature::ALL {
        line(&mut page, &[feature.name(), feature.meaning()]);
    }
    page.push_str(FRONTS);
    head(&mut page, "client");
    for client in Revision::ALL {
        for front in FrontTransport::ALL.into_iter().filter(|front| front.fits(client)) {
            let cells =
                Revision::ALL.map(|server| cell(measured, (client, front, server, BackTransport::Stdio), &notes));
            row(&mut page, client, front.name(), &cells);
        }
    }
    page.push_str(BACKS);
    head(&mut page, "server");
    for server in Revision::ALL {
        for back in BackTransport::ALL.into_iter().filter(|back| back.fits(server)) {
            let cells = Revision::ALL
                .map(|client| cell(measured, (client, FrontTransport::main(client), server, back), &notes));
            row(&mut page, server, back.name(), &cells);
        }
    }
    page.push_str(NOTES);
    for (number, note) in notes.iter().enumerate() {
        let (Expected::Text(why) | Expected::Refused(why)) = note else { continue };
        let how = if matches!(note, Expected::Text(_)) { "as text" } else { "refused" };
        // Writing to a string does not fail.
        let _ = writeln!(page, "{}. {how}: {why}", number + 1);
    }
    page
}

/// Everything that is expected not to work as such, in the order of the features.
fn notes() -> Vec<Expected> {
    let mut seen = BTreeSet::new();
    let mut notes = Vec::new();
    for feature in Feature::ALL {
        for (client, server) in Revision::ALL.iter().flat_map(|one| Revision::ALL.iter().map(move |other| (one, other)))
        {
            let note = expected(feature, *client, *server);
            if note != Expected::Works && seen.insert(note) {
                notes.push(note);
            }
        }
    }
    notes
}

fn head(page: &mut String, who: &str) {
    let mut words = vec![who, "over"];
    words.extend(Revision::ALL.map(Revision::name));
    line(page, &words);
    line(page, &vec!["---"; words.len()]);
}

fn row(page: &mut String, revision: Revision, over: &str, cells: &[String]) {
    let mut words = vec![revision.name(), over];
    words.extend(cells.iter().map(String::as_str));
    line(page, &words);
}

fn line(page: &mut String, words: &[&str]) {
    let _ = writeln!(page, "| {} |", words.join(" | "));
}

/// One cell in a few words.
fn cell(
    measured: &[Measured],
    place: (Revision, FrontTransport, Revision, BackTransport),
    notes: &[Expected],
) -> String {
    let found = measured.iter().find(|cell| (cell.client, cell.front, cell.server, cell.back) == place);
    let Some(found) = found else { return "not measured".to_owned() };
    let mut numbers = Vec::new();
    let mut failed = Vec::new();
    for (feature, verdict) in &found.verdicts {
        match verdict {
            CellVerdict::Fits(Expected::Works) => {}
            CellVerdict::Fits(note) => {
                let number = notes.iter().position(|known| known == note).map_or(0, |place| place + 1);
                numbers.push(number.to_string());
            }
            CellVerdict::Fails(_) => failed.push(feature.name()),
        }
    }
    if failed.len() == Feature::ALL.len() {
        return "FAILS".to_owned();
    }
    if !failed.is_empty() {
        return format!("FAILS: {}", failed.join(", "));
    }
    if numbers.is_empty() { "all".to_owned() } else { format!("all but {}", numbers.join(", ")) }
}
