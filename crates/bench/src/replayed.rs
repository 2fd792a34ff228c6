//! Check that a tape answers as fast as the live path: Signalbox playing recorded calls, relative to Signalbox in front
//! of the recorded server.

use std::fs;
use std::io;
use std::process::ExitCode;

use crate::args::usage;
use crate::results::{MeasuredServer, Results, named};

/// Name of the set-up with the server.
const LIVE: &str = "live";
/// Name of the set-up with the tape.
const TAPE: &str = "tape";
/// Minimum rate of a tape, relative to the live rate.
const LEAST: f64 = 1.0;

/// Reads a file of results and prints the table. Fails if a tape is slower.
pub fn run(mut words: impl Iterator<Item = String>) -> io::Result<ExitCode> {
    let path = words.next().ok_or_else(|| usage("replayed needs a file".to_owned()))?;
    let (table, met) = render(&fs::read_to_string(path)?)?;
    print!("{table}");
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

const HEADER: &str = "\
| live backend | bytes | era | connections | calls/s live | calls/s tape | rate ÷ live | p99 ÷ live | CPU µs/call live | CPU µs/call tape | at least 1 |
|---|--:|---|--:|--:|--:|--:|--:|--:|--:|---|
";

fn render(lines: &str) -> io::Result<(String, bool)> {
    let results = Results::read(lines)?;
    let mut text = format!("\n{HEADER}");
    let mut all_met = !results.0.is_empty();
    for (cell, servers) in &results.0 {
        let (Some(live), Some(tape)) = (named(servers, LIVE), named(servers, TAPE)) else {
            all_met = false;
            continue;
        };
        let ratio = tape.ratio(Some(live), |run| run.rate);
        let clean =
            |server: &MeasuredServer| server.failure.is_none() && server.runs.iter().all(|run| run.errors == 0.0);
        let met = clean(live) && clean(tape) && ratio.is_some_and(|ratio| ratio >= LEAST);
        all_met &= met;
        text += &format!(
            "| {} | {} | {} | {} | {:.0} | {:.0} | {:.2} | {:.2} | {:.1} | {:.1} | {} |\n",
            cell.backend,
            cell.payload,
            cell.era,
            cell.connections,
            live.median(|run| run.rate),
            tape.median(|run| run.rate),
            ratio.unwrap_or(0.0),
            tape.ratio(Some(live), |run| run.p99).unwrap_or(0.0),
            live.median(|run| run.cpu),
            tape.median(|run| run.cpu),
            if met { "met" } else { "NOT met" },
        );
    }
    text += if all_met {
        "\nA tape answers at least as fast: met.\n"
    } else {
        "\nA tape answers at least as fast: NOT met.\n"
    };
    Ok((text, all_met))
}

#[cfg(test)]
mod tests {
    use super::render;
    use crate::results::tests::line;

    #[test]
    fn a_tape_that_is_slower_or_fails_does_not_pass() {
        let live = line("live", "http", 1, 10.0);
        assert!(render(&(live.clone() + &line("tape", "http", 1, 10.0))).unwrap().1);
        assert!(!render(&(live.clone() + &line("tape", "http", 1, 9.0))).unwrap().1);
        let failed = line("tape", "http", 1, 20.0).replace(r#""errors":0"#, r#""errors":3"#);
        assert!(!render(&(live.clone() + &failed)).unwrap().1);
        assert!(!render(&live).unwrap().1, "without the tape nothing is shown");
        assert!(!render("").unwrap().1);
    }
}
