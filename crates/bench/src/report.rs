//! The Markdown table: medians over rounds, and ratios taken within each round before their median is.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::process::ExitCode;

use crate::args::usage;

/// What ratios are taken against.
const DIRECT: &str = "direct";
const FORWARD: &str = "forward";
const SIGNALBOX: &str = "signalbox";
const BRIDGED: &str = "bridged";

/// What was asked for: payload, era, connections. Rows are sorted by it.
type Cell = (u64, String, u64);

/// One run of the load.
#[derive(Clone, Debug, PartialEq)]
struct Run {
    round: u64,
    body_bytes: f64,
    errors: f64,
    rate: f64,
    p50: f64,
    p99: f64,
    cpu: f64,
    peak_kb: f64,
}

/// All runs of one cell by server, in the order in which the servers first came.
type Servers = Vec<(String, Vec<Run>)>;

/// Reads a file of `NAME ROUND JSON` lines and prints the table; fails if a run had errors.
pub fn run(mut words: impl Iterator<Item = String>) -> io::Result<ExitCode> {
    let path = words.next().ok_or_else(|| usage("report needs a file".to_owned()))?;
    let (table, errors) = render(&fs::read_to_string(path)?)?;
    print!("{table}");
    Ok(if errors == 0.0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn render(lines: &str) -> io::Result<(String, f64)> {
    let mut cells: BTreeMap<Cell, Servers> = BTreeMap::new();
    let mut errors = 0.0;
    for line in lines.lines() {
        let (name, cell, run) = parse(line).ok_or_else(|| io::Error::other(format!("not a result: {line}")))?;
        errors += run.errors;
        let servers = cells.entry(cell).or_default();
        match servers.iter_mut().find(|(known, _)| known == name) {
            Some((_, runs)) => runs.push(run),
            None => servers.push((name.to_owned(), vec![run])),
        }
    }
    let mut table = String::new();
    for ((payload, era, connections), servers) in &cells {
        let body = servers.first().map_or(0.0, |(_, runs)| median(runs, |run| run.body_bytes));
        table += &format!("\n### {payload} B, {era} era, {connections} connections (body {body:.0} B)\n\n{HEADER}");
        for (name, runs) in servers {
            table += &row(name, runs, servers);
        }
        table += &bridge(servers);
    }
    Ok((table, errors))
}

const HEADER: &str = "\
| server | calls/s | p50 µs | p99 µs | CPU µs/call | peak MiB | errors | rate ÷ direct | rate ÷ forward | p50 ÷ forward | p99 ÷ forward | CPU ÷ forward |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
";

fn row(name: &str, runs: &[Run], servers: &Servers) -> String {
    let ratio = |base: &str, value: fn(&Run) -> f64| {
        let base = servers.iter().find(|(known, _)| known == base);
        ratio(runs, base.map_or(&[], |(_, runs)| runs), value)
    };
    format!(
        "| {name} | {:.0} | {:.0} | {:.0} | {:.1} | {:.1} | {:.0} | {} | {} | {} | {} | {} |\n",
        median(runs, |run| run.rate),
        median(runs, |run| run.p50),
        median(runs, |run| run.p99),
        median(runs, |run| run.cpu),
        median(runs, |run| run.peak_kb) / 1024.0,
        runs.iter().map(|run| run.errors).sum::<f64>(),
        ratio(DIRECT, |run| run.rate),
        ratio(FORWARD, |run| run.rate),
        ratio(FORWARD, |run| run.p50),
        ratio(FORWARD, |run| run.p99),
        ratio(FORWARD, |run| run.cpu),
    )
}

/// What the bridge between eras costs: Signalbox before a backend of the other era, beside the same client unbridged.
fn bridge(servers: &Servers) -> String {
    let runs = |name: &str| servers.iter().find(|(known, _)| known == name).map(|(_, runs)| &runs[..]);
    let (Some(bridged), Some(plain)) = (runs(BRIDGED), runs(SIGNALBOX)) else { return String::new() };
    let cpu = ratio(bridged, plain, |run| run.cpu);
    format!("\nA bridged call takes {cpu} times the CPU of one that is not.\n")
}

/// Median over rounds of this server's value over the base's value in the same round.
fn ratio(runs: &[Run], base: &[Run], value: fn(&Run) -> f64) -> String {
    let mut ratios = Vec::new();
    for run in runs {
        let same_round = base.iter().find(|base| base.round == run.round);
        if let Some(base) = same_round.map(value).filter(|&base| base > 0.0) {
            ratios.push(value(run) / base);
        }
    }
    if ratios.is_empty() {
        return "–".to_owned();
    }
    format!("{:.2}", middle(ratios))
}

fn median(runs: &[Run], value: fn(&Run) -> f64) -> f64 {
    middle(runs.iter().map(value).collect())
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => 0.0,
        length if length % 2 == 1 => values[half],
        _ => f64::midpoint(values[half - 1], values[half]),
    }
}

fn parse(line: &str) -> Option<(&str, Cell, Run)> {
    let mut parts = line.splitn(3, ' ');
    let (name, round, json) = (parts.next()?, parts.next()?, parts.next()?);
    let number = |key| field(json, key)?.parse::<f64>().ok();
    let cell = (
        field(json, "payload")?.parse().ok()?,
        field(json, "era")?.to_owned(),
        field(json, "connections")?.parse().ok()?,
    );
    let run = Run {
        round: round.parse().ok()?,
        body_bytes: number("body_bytes")?,
        errors: number("errors")?,
        rate: number("rate")?,
        p50: number("p50_us")?,
        p99: number("p99_us")?,
        cpu: number("cpu_us_per_call")?,
        peak_kb: number("peak_rss_kb")?,
    };
    Some((name, cell, run))
}

/// A member of a line that `load` printed: flat up to its last member, and without spaces.
fn field<'a>(json: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = json.split_once(&format!("\"{key}\":"))?;
    let end = rest.find([',', '}'])?;
    Some(rest[..end].trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::{middle, render};

    fn line(name: &str, round: u64, rate: f64, errors: u64) -> String {
        format!(
            r#"{name} {round} {{"era":"old","connections":16,"payload":256,"body_bytes":256,"calls":9,"errors":{errors},"rate":{rate},"p50_us":10.0,"p99_us":20.0,"cpu_us_per_call":5.5,"peak_rss_kb":2048,"pids":[{{"pid":1,"cpu_us_per_call":9,"peak_rss_kb":9}}]}}"#
        ) + "\n"
    }

    #[test]
    fn ratios_are_within_a_round() {
        let mut lines = String::new();
        for (round, direct, proxy) in [(1, 100.0, 50.0), (2, 1000.0, 250.0), (3, 10.0, 6.0)] {
            lines += &line("direct", round, direct, 0);
            lines += &line("nginx", round, proxy, 1);
        }
        let (table, errors) = render(&lines).unwrap();
        assert_eq!(errors, 3.0);
        assert!(table.contains("### 256 B, old era, 16 connections (body 256 B)"), "{table}");
        assert!(table.contains("| nginx | 50 | 10 | 20 | 5.5 | 2.0 | 3 | 0.50 | – | – | – | – |"), "{table}");
    }

    #[test]
    fn the_cost_of_the_bridge_is_told_where_it_was_measured() {
        let lines = line("signalbox", 1, 10.0, 0) + &line("bridged", 1, 10.0, 0).replace("5.5", "6.6");
        let (table, _) = render(&lines).unwrap();
        assert!(table.contains("A bridged call takes 1.20 times the CPU of one that is not."), "{table}");
        assert!(!render(&line("signalbox", 1, 10.0, 0)).unwrap().0.contains("bridged"));
    }

    #[test]
    fn the_middle_of_an_even_count_lies_between() {
        assert_eq!(middle(vec![4.0, 1.0]), 2.5);
        assert!(render("nonsense").is_err());
    }
}
