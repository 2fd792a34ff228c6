//! Check that unused features cost nothing: CPU per call of several set-ups, relative to the smallest one.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::process::ExitCode;

use crate::args::usage;
use crate::results::{Results, Run, named};

/// Name of the smallest set-up.
const BASE: &str = "base";
/// Maximum cost relative to the smallest set-up.
const MOST: f64 = 1.10;

/// Instructions per call by set-up and era.
type Instructions = BTreeMap<(String, String), f64>;

/// Reads a file of results and prints the table. Fails if a set-up costs too much.
pub fn run(mut words: impl Iterator<Item = String>) -> io::Result<ExitCode> {
    let path = words.next().ok_or_else(|| usage("flat needs a file".to_owned()))?;
    let clocked = words.next().as_deref() != Some("--no-time");
    let (table, met) = render(&fs::read_to_string(path)?, clocked)?;
    print!("{table}");
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Parses lines of results, mixed with lines of `NAME instructions ERA COUNT`.
fn read(lines: &str) -> io::Result<(Results, Instructions)> {
    let (mut plain, mut instructions) = (String::new(), Instructions::new());
    for line in lines.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            [name, "instructions", era, count] => {
                let count = count.parse().map_err(|_| io::Error::other(format!("not a count: {line}")))?;
                instructions.insert((name.to_owned(), era.to_owned()), count);
            }
            _ => plain += &format!("{line}\n"),
        }
    }
    Ok((Results::read(&plain)?, instructions))
}

const HEADER: &str = "\
| set-up | era | CPU µs/call | ÷ base | instructions/call | ÷ base | within 10 % |
|---|---|--:|--:|--:|--:|---|
";

/// Renders the table. Unless `clocked`, the times are too imprecise, and only instructions decide.
fn render(lines: &str, clocked: bool) -> io::Result<(String, bool)> {
    let (results, instructions) = read(lines)?;
    let mut text = format!("\n{HEADER}");
    let mut all_met = !results.0.is_empty();
    for (cell, servers) in &results.0 {
        let cpu: fn(&Run) -> f64 = |run| run.cpu;
        for server in servers {
            let count = |name: &str| instructions.get(&(name.to_owned(), cell.era.clone())).copied();
            let own = count(&server.name);
            let time_ratio = server.ratio(named(servers, BASE), cpu);
            let count_ratio = own.zip(count(BASE)).map(|(own, base)| own / base);
            let clean = server.failure.is_none() && server.runs.iter().all(|run| run.errors == 0.0);
            let within = |ratio: Option<f64>| ratio.is_some_and(|ratio| ratio < MOST);
            let met =
                clean && (!clocked || within(time_ratio)) && (count_ratio.is_none() && clocked || within(count_ratio));
            all_met &= met;
            let shown =
                |value: Option<f64>, digits: usize| value.map_or("–".to_owned(), |value| format!("{value:.digits$}"));
            text += &format!(
                "| {} | {} | {:.2} | {} | {} | {} | {} |\n",
                server.name.replace('_', " "),
                cell.era,
                server.median(cpu),
                shown(time_ratio, 3),
                shown(own, 0),
                shown(count_ratio, 3),
                server.failure.as_deref().unwrap_or(if met { "met" } else { "NOT met" }),
            );
        }
    }
    text += if all_met {
        "\nWhat is not used costs nothing: met.\n"
    } else {
        "\nWhat is not used costs nothing: NOT met.\n"
    };
    Ok((text, all_met))
}

#[cfg(test)]
mod tests {
    use super::render;
    use crate::results::tests::line;

    #[test]
    fn growth_in_time_or_in_instructions_is_told() {
        let base = line("base", "http", 1, 10.0);
        let same = base.clone() + &line("2000_tools", "http", 1, 10.0);
        assert!(render(&same, true).unwrap().1);
        let slower = base + &line("2000_tools", "http", 1, 10.0).replace("5.5", "6.5");
        let (table, met) = render(&slower, true).unwrap();
        assert!(!met && table.contains("| 2000 tools | old | 6.50 | 1.182 | – | – | NOT met |"), "{table}");
        let (table, met) =
            render(&(same + "base instructions old 100\n2000_tools instructions old 111\n"), true).unwrap();
        assert!(!met && table.contains("| 2000 tools | old | 5.50 | 1.000 | 111 | 1.110 | NOT met |"), "{table}");
        assert!(!render("", true).unwrap().1, "nothing measured is nothing met");
    }
}
