//! Cost of recording and rules: Signalbox with both, relative to Signalbox without.

use std::fs;
use std::io;
use std::process::ExitCode;

use crate::args::usage;
use crate::results::{MeasuredServer, Results, Run, named};

/// Name of the set-up without recording and rules.
const PLAIN: &str = "plain";
/// Name of the set-up with both.
const RECORDED: &str = "recorded";
/// Limits of requirement S-65 at a fixed rate: on the median latency, the 99th percentile, and added processor time.
const MOST_P50: f64 = 1.05;
const MOST_P99: f64 = 1.20;
const MOST_CPU_US: f64 = 60.0;

/// Requirement S-57: 10,000 messages are 5,000 calls a second, less what a turn loses at its ends.
const FAST: &str = "fast";
const LEAST_FAST: f64 = 4_950.0;

/// Reads a file of results and prints the table. Fails if the cost is too high.
pub fn run(mut words: impl Iterator<Item = String>) -> io::Result<ExitCode> {
    let path = words.next().ok_or_else(|| usage("record needs a file".to_owned()))?;
    let (table, met) = render(&fs::read_to_string(path)?)?;
    print!("{table}");
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

const HEADER: &str = "\
| load | era | calls/s plain | calls/s recorded | p50 ÷ plain | p99 ÷ plain | CPU µs/call plain | CPU µs added | S-65, S-57 |
|---|---|--:|--:|--:|--:|--:|--:|---|
";

/// Renders the table. Rounds at the fixed rate of S-65 have the backend `paced`, those of S-57 `fast`. Rounds at full
/// speed have `full`, and only their ratio is shown.
fn render(lines: &str) -> io::Result<(String, bool)> {
    let results = Results::read(lines)?;
    let mut text = format!("\n{HEADER}");
    let mut all_met = !results.0.is_empty();
    for (cell, servers) in &results.0 {
        let (Some(plain), Some(recorded)) = (named(servers, PLAIN), named(servers, RECORDED)) else {
            all_met = false;
            continue;
        };
        let p50 = recorded.ratio(Some(plain), |run| run.p50);
        let p99 = recorded.ratio(Some(plain), |run| run.p99);
        let cpu = |server: &MeasuredServer| server.median(|run| run.cpu);
        let added = cpu(recorded) - cpu(plain);
        let clean =
            |server: &MeasuredServer| server.failure.is_none() && server.runs.iter().all(|run| run.errors == 0.0);
        let within = |ratio: Option<f64>, most: f64| ratio.is_some_and(|ratio| ratio <= most);
        let rate: fn(&Run) -> f64 = |run| run.rate;
        let kept = match &*cell.backend {
            "full" => true,
            FAST => recorded.median(rate) >= LEAST_FAST,
            _ => within(p50, MOST_P50) && within(p99, MOST_P99) && added <= MOST_CPU_US,
        };
        let met = clean(plain) && clean(recorded) && kept;
        all_met &= met;
        text += &format!(
            "| {} | {} | {:.0} | {:.0} | {:.3} | {:.3} | {:.1} | {added:.1} | {} |\n",
            cell.backend,
            cell.era,
            plain.median(rate),
            recorded.median(rate),
            p50.unwrap_or(0.0),
            p99.unwrap_or(0.0),
            cpu(plain),
            if cell.backend == "full" {
                "–"
            } else if met {
                "met"
            } else {
                "NOT met"
            },
        );
    }
    text += if all_met { "\nS-65 and S-57: met.\n" } else { "\nS-65 or S-57: NOT met.\n" };
    Ok((text, all_met))
}

#[cfg(test)]
mod tests {
    use super::render;
    use crate::results::tests::line;

    #[test]
    fn what_is_added_is_told_and_judged_at_a_fixed_rate_only() {
        let plain = line("plain", "paced", 1, 10.0);
        let (table, met) = render(&(plain.clone() + &line("recorded", "paced", 1, 10.0))).unwrap();
        assert!(met, "{table}");
        let dear = line("recorded", "paced", 1, 10.0).replace("5.5", "95.5");
        assert!(!render(&(plain + &dear)).unwrap().1);
        let slow = line("plain", "fast", 1, 10.0) + &line("recorded", "fast", 1, 10.0);
        assert!(!render(&slow).unwrap().1, "ten calls a second are not 5,000");
        let full = line("plain", "full", 1, 10.0) + &dear.replace("paced", "full");
        assert!(render(&full).unwrap().1, "at saturation the ratio is only told");
        assert!(!render("").unwrap().1, "nothing measured is nothing met");
    }
}
