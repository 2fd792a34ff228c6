//! Markdown tables: medians over rounds; ratios are computed within each round before their median is taken.

use std::fs;
use std::io;
use std::process::ExitCode;

use crate::aims;
use crate::args::usage;
use crate::results::{MeasuredServer, ResultCell, Results, Run, Servers, named};

const DIRECT: &str = "direct";
/// Name of the baseline.
pub const FORWARD: &str = "forward";
/// Name of the measured server.
pub const SIGNALBOX: &str = "signalbox";
const BRIDGED: &str = "bridged";
/// Servers whose failures fail the report.
const OURS: &[&str] = &[DIRECT, FORWARD, "nginx", SIGNALBOX, BRIDGED];

/// Reads a file of results and prints tables and aims. Fails if one of our runs failed or had errors.
pub fn run(mut words: impl Iterator<Item = String>) -> io::Result<ExitCode> {
    let path = words.next().ok_or_else(|| usage("report needs a file".to_owned()))?;
    let results = Results::read(&fs::read_to_string(path)?)?;
    print!("{}{}", tables(&results), aims::render(&results));
    Ok(if is_clean(&results) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn is_clean(results: &Results) -> bool {
    let ours = results.0.values().flatten().filter(|server| OURS.contains(&&*server.name));
    ours.into_iter().all(|server| server.failure.is_none() && server.runs.iter().all(|run| run.errors == 0.0))
}

fn tables(results: &Results) -> String {
    let mut text = String::new();
    for (cell, servers) in &results.0 {
        let ResultCell { backend, payload, era, connections } = cell;
        let body = servers.iter().find(|server| !server.runs.is_empty());
        let body = body.map_or(0.0, |server| server.median(|run| run.body_bytes));
        let (way, header) = match backend.as_str() {
            "stdio" => (format!("{connections} calls at a time"), STDIO_HEADER),
            _ => (format!("{connections} connections"), HTTP_HEADER),
        };
        text += &format!("\n### {backend} backend, {payload} B, {era} era, {way} (body {body:.0} B)\n\n{header}");
        for server in servers {
            text += &row(backend, server, servers);
        }
        text += &notes(servers);
    }
    text
}

const HTTP_HEADER: &str = "\
| server | calls/s | p50 µs | p99 µs | CPU µs/call | peak MiB | errors | rate ÷ direct | rate ÷ forward | p50 ÷ forward | p99 ÷ forward | CPU ÷ forward |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
";
const STDIO_HEADER: &str = "\
| server | calls/s | p50 µs | p99 µs | CPU µs/call | peak MiB | children | their CPU µs/call | their peak MiB | errors | rate ÷ direct | p50 ÷ direct | p99 ÷ direct |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
";

fn row(backend: &str, server: &MeasuredServer, servers: &Servers) -> String {
    let name = &server.name;
    if server.runs.is_empty() {
        let columns = if backend == "stdio" { 12 } else { 11 };
        let reason = server.failure.as_deref().unwrap_or("no numbers");
        return format!("| {name} | {reason} |{}\n", " – |".repeat(columns - 1));
    }
    let ratio = |base: &str, value: fn(&Run) -> f64| {
        server.ratio(named(servers, base), value).map_or("–".to_owned(), |ratio| format!("{ratio:.2}"))
    };
    let start = format!(
        "| {name} | {:.0} | {:.0} | {:.0} | {:.1} | {:.1} |",
        server.median(|run| run.rate),
        server.median(|run| run.p50),
        server.median(|run| run.p99),
        server.median(|run| run.cpu),
        server.median(|run| run.peak_kb) / 1024.0,
    );
    let errors = server.runs.iter().map(|run| run.errors).sum::<f64>();
    let direct = ratio(DIRECT, |run| run.rate);
    if backend == "stdio" {
        return format!(
            "{start} {:.0} | {:.1} | {:.1} | {errors:.0} | {direct} | {} | {} |\n",
            server.median(|run| run.children),
            server.median(|run| run.children_cpu),
            server.median(|run| run.children_peak_kb) / 1024.0,
            ratio(DIRECT, |run| run.p50),
            ratio(DIRECT, |run| run.p99),
        );
    }
    format!(
        "{start} {errors:.0} | {direct} | {} | {} | {} | {} |\n",
        ratio(FORWARD, |run| run.rate),
        ratio(FORWARD, |run| run.p50),
        ratio(FORWARD, |run| run.p99),
        ratio(FORWARD, |run| run.cpu),
    )
}

/// Renders what the table has no column for: the cost of bridging, the comparison with other proxies, and the reasons
/// of missing numbers.
fn notes(servers: &Servers) -> String {
    let mut text = String::new();
    let plain = named(servers, SIGNALBOX);
    if let Some(cpu) = named(servers, BRIDGED).and_then(|bridged| bridged.ratio(plain, |run| run.cpu)) {
        text += &format!("\nA bridged call takes {cpu:.2} times the CPU of one that is not.\n");
    }
    for server in servers.iter().filter(|server| !OURS.contains(&&*server.name)) {
        let (cpu, rate) = (server.ratio(plain, |run| run.cpu), server.ratio(plain, |run| run.rate));
        if let (Some(cpu), Some(rate)) = (cpu, rate) {
            text +=
                &format!("\n{}: {cpu:.1} times the CPU of signalbox per call, {rate:.3} of its rate.\n", server.name);
        }
    }
    for server in servers.iter().filter(|server| !server.runs.is_empty()) {
        if let Some(reason) = &server.failure {
            text += &format!("\n{}: not every round: {reason}\n", server.name);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{is_clean, tables};
    use crate::results::Results;
    use crate::results::tests::line;

    fn render(lines: &str) -> String {
        tables(&Results::read(lines).unwrap())
    }

    #[test]
    fn ratios_are_within_a_round() {
        let mut lines = String::new();
        for (round, direct, proxy) in [(1, 100.0, 50.0), (2, 1000.0, 250.0), (3, 10.0, 6.0)] {
            lines += &line("direct", "http", round, direct);
            lines += &line("nginx", "http", round, proxy);
        }
        let table = render(&lines);
        assert!(table.contains("### http backend, 256 B, old era, 16 connections (body 256 B)"), "{table}");
        assert!(table.contains("| nginx | 50 | 10 | 20 | 5.5 | 2.0 | 0 | 0.50 | – | – | – | – |"), "{table}");
    }

    #[test]
    fn what_a_proxy_starts_is_told_apart() {
        let table = render(&(line("direct", "stdio", 1, 100.0) + &line("signalbox", "stdio", 1, 50.0)));
        let row = "| signalbox | 50 | 10 | 20 | 5.5 | 2.0 | 1 | 1.2 | 1.0 | 0 | 0.50 | 1.00 | 1.00 |";
        assert!(table.contains(row), "{table}");
    }

    #[test]
    fn the_cost_of_the_bridge_is_told_where_it_was_measured() {
        let bridged = line("bridged", "http", 1, 10.0).replace("5.5", "6.6");
        let table = render(&(line("signalbox", "http", 1, 10.0) + &bridged));
        assert!(table.contains("A bridged call takes 1.20 times the CPU of one that is not."), "{table}");
        assert!(!render(&line("signalbox", "http", 1, 10.0)).contains("bridged"));
    }

    #[test]
    fn a_failure_is_told_in_words_and_counts_only_where_it_is_ours() {
        let failed = |name: &str| {
            format!(r#"{name} http 1 {{"era":"old","connections":16,"payload":256,"failed":"it speaks stdio only"}}"#)
        };
        let table = render(&failed("other"));
        assert!(table.contains("| other | it speaks stdio only | – |"), "{table}");
        assert!(is_clean(&Results::read(&failed("other")).unwrap()));
        assert!(!is_clean(&Results::read(&failed("signalbox")).unwrap()));
    }
}
