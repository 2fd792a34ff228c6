//! The checks that are known not to pass, each with its reason, read from a page that people read too.
//!
//! The page has a heading `## NAME` for each run, and under it a table with the columns scenario, check, verdict,
//! reason. A check that comes several times in a scenario has its place behind its name: `id#1` is the second.

use super::{CheckKey, RunnerVerdict, Status};
use anyhow::{Context as _, bail};
use std::collections::BTreeMap;

/// The shortest text that counts as a reason.
const SHORTEST_REASON: usize = 20;

/// What is known of one run.
#[derive(Clone, Debug, Default)]
pub struct Known {
    rows: BTreeMap<CheckKey, Status>,
}

impl Known {
    /// Reads what a page says about one run.
    ///
    /// # Errors
    /// When the page has no such run, or a row that cannot be understood or gives no reason.
    pub fn read(page: &str, run: &str) -> anyhow::Result<Self> {
        let heading = format!("## {run}");
        let mut lines = page.lines().skip_while(|line| *line != heading);
        lines.next().with_context(|| format!("the page has no heading `{heading}`"))?;
        let section = lines.take_while(|line| !line.starts_with("## "));
        let table = section.filter(|line| line.starts_with('|')).skip(2);
        let mut known = Self::default();
        for line in table {
            let (key, status) = row(line).with_context(|| format!("cannot read the row {line}"))?;
            if known.rows.insert(key, status).is_some() {
                bail!("twice: {line}");
            }
        }
        Ok(known)
    }

    /// Returns the differences of a run from the page: failing checks that the page lacks, and listed checks that pass,
    /// fail in another way or are gone.
    pub fn unlike(&self, verdict: &RunnerVerdict) -> Vec<String> {
        let passes = |status: Status| matches!(status, Status::Success | Status::Info);
        let mut unlike = Vec::new();
        for (key, status) in verdict.checks.iter().filter(|(_, status)| !passes(**status)) {
            if self.rows.get(key) != Some(status) {
                let message = verdict.messages.get(key).map_or("", String::as_str);
                let page = self.rows.get(key).map_or_else(|| "nothing".to_owned(), |known| format!("{known:?}"));
                unlike.push(format!("{key} is {status:?}, the page says {page}: {message}"));
            }
        }
        for (key, known) in &self.rows {
            match verdict.checks.get(key) {
                Some(status) if !passes(*status) => {}
                status => unlike.push(format!("{key} is {status:?} now, the page says {known:?}")),
            }
        }
        unlike
    }
}

fn row(line: &str) -> anyhow::Result<(CheckKey, Status)> {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [scenario, check, status, reason] = cells[..] else { bail!("a row has four cells") };
    if reason.len() < SHORTEST_REASON {
        bail!("the reason is missing");
    }
    let status = match status {
        "failure" => Status::Failure,
        "warning" => Status::Warning,
        "skipped" => Status::Skipped,
        other => bail!("no verdict: {other}"),
    };
    let (id, occurrence) = match check.split_once('#') {
        Some((id, place)) => (id, place.parse()?),
        None => (check, 0),
    };
    Ok((CheckKey { scenario: scenario.to_owned(), id: id.to_owned(), occurrence }, status))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Page\n\n## one run\n\nWords.\n\n| scenario | check | verdict | reason |\n|---|---|---|---|\n\
        | s | a | failure | the server has no such tool |\n| s | b#1 | warning | the server has no such tool |\n\n\
        ## other run\n\n| scenario | check | verdict | reason |\n|---|---|---|---|\n";

    fn verdict(checks: &[(&str, usize, Status)]) -> RunnerVerdict {
        let key = |id: &str, occurrence| CheckKey { scenario: "s".to_owned(), id: id.to_owned(), occurrence };
        let checks = checks.iter().map(|(id, occurrence, status)| (key(id, *occurrence), *status)).collect();
        RunnerVerdict { checks, messages: BTreeMap::new() }
    }

    #[test]
    fn what_is_on_the_page_is_no_surprise() {
        let known = Known::read(PAGE, "one run").unwrap();
        let as_known = [("a", 0, Status::Failure), ("b", 0, Status::Success), ("b", 1, Status::Warning)];
        assert_eq!(known.unlike(&verdict(&as_known)), Vec::<String>::new());
    }

    #[test]
    fn a_new_failure_a_worse_one_and_a_cured_one_are_told() {
        let known = Known::read(PAGE, "one run").unwrap();
        let found = known.unlike(&verdict(&[("b", 1, Status::Failure), ("c", 0, Status::Failure)]));
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("s/b#1 is Failure, the page says Warning"), "{found:?}");
        assert!(found[1].starts_with("s/c#0 is Failure, the page says nothing"), "{found:?}");
        assert!(found[2].starts_with("s/a#0 is None now"), "{found:?}");
        let found = known.unlike(&verdict(&[("a", 0, Status::Success), ("b", 1, Status::Warning)]));
        assert_eq!(found, ["s/a#0 is Some(Success) now, the page says Failure"]);
    }

    #[test]
    fn a_page_without_the_run_or_a_row_without_a_reason_is_refused() {
        assert!(Known::read(PAGE, "third run").is_err());
        let bare = PAGE.replacen("the server has no such tool", "no", 1);
        assert!(Known::read(&bare, "one run").is_err());
        assert!(Known::read(&bare, "other run").unwrap().rows.is_empty());
    }
}
