//! Check that a set-up keeps its share of the rate of the smallest one. Rates are compared within a round.

use std::fs;
use std::io;
use std::process::ExitCode;

use crate::args::usage;
use crate::results::{Results, Run, named};

/// Name of the set-up that the others are compared with.
const BASE: &str = "base";

const HEADER: &str = "\
| set-up | era | calls/s | ÷ base | p50 µs | p99 µs | p99 ÷ base | CPU ÷ base | share of the rate |
|---|---|--:|--:|--:|--:|--:|--:|---|
";

/// Reads a file of results and the minimum share of the rate, and prints the table. Fails if a set-up is below that.
pub fn run(mut words: impl Iterator<Item = String>) -> io::Result<ExitCode> {
    let wanted = || usage("rates needs a file and the least share of the rate, such as 0.9".to_owned());
    let path = words.next().ok_or_else(wanted)?;
    let least = words.next().and_then(|word| word.parse().ok()).ok_or_else(wanted)?;
    let (table, met) = render(&Results::read(&fs::read_to_string(path)?)?, least);
    print!("{table}");
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn render(results: &Results, least: f64) -> (String, bool) {
    let mut text = format!("\n{HEADER}");
    let mut all_met = !results.0.is_empty();
    for (cell, servers) in &results.0 {
        for server in servers {
            let ratio = |value: fn(&Run) -> f64| server.ratio(named(servers, BASE), value);
            let shown = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3}"));
            let share = ratio(|run| run.rate);
            let clean = server.failure.is_none() && server.runs.iter().all(|run| run.errors == 0.0);
            let met = clean && share.is_some_and(|share| share >= least);
            all_met &= met;
            text += &format!(
                "| {} | {} | {:.0} | {} | {:.0} | {:.0} | {} | {} | {} |\n",
                server.name.replace('_', " "),
                cell.era,
                server.median(|run| run.rate),
                shown(share),
                server.median(|run| run.p50),
                server.median(|run| run.p99),
                shown(ratio(|run| run.p99)),
                shown(ratio(|run| run.cpu)),
                server.failure.as_deref().unwrap_or(if met { "met" } else { "NOT met" }),
            );
        }
    }
    let verdict = if all_met { "met" } else { "NOT met" };
    text += &format!("\nAt least {least} of the rate without: {verdict}.\n");
    (text, all_met)
}

#[cfg(test)]
mod tests {
    use super::render;
    use crate::results::Results;
    use crate::results::tests::line;

    #[test]
    fn a_set_up_below_its_share_of_the_rate_is_told() {
        let read = |rate: f64| {
            let lines = line("base", "http", 1, 100.0) + &line("api_key", "http", 1, rate);
            render(&Results::read(&lines).unwrap(), 0.9)
        };
        let (table, met) = read(95.0);
        assert!(met && table.contains("| api key | old | 95 | 0.950 | 10 | 20 | 1.000 | 1.000 | met |"), "{table}");
        let (table, met) = read(85.0);
        assert!(!met && table.contains("| api key | old | 85 | 0.850 |") && table.ends_with("NOT met.\n"), "{table}");
        assert!(!render(&Results::default(), 0.9).1, "nothing measured is nothing met");
    }
}
