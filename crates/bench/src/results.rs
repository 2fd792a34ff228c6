//! Results of many runs: parsed from lines, grouped by configuration, and compared within a round.

use std::collections::BTreeMap;
use std::io;

/// Configuration of runs. Tables are sorted by it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResultCell {
    /// Transport of the backend: `http` or `stdio`.
    pub backend: String,
    /// Size of a call, in bytes.
    pub payload: u64,
    /// Protocol era of the client: `old` or `new`.
    pub era: String,
    /// Number of concurrent calls.
    pub connections: u64,
}

/// One run of the load.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Round that it belongs to.
    pub round: u64,
    /// Size of a call as sent, in bytes.
    pub body_bytes: f64,
    /// Number of failed calls.
    pub errors: f64,
    pub rate: f64,
    /// Median latency, in microseconds.
    pub p50: f64,
    /// 99th percentile of the latency.
    pub p99: f64,
    /// Processor time per call, of the server alone.
    pub cpu: f64,
    /// Peak memory of the server.
    pub peak_kb: f64,
    /// Number of processes that the server had started.
    pub children: f64,
    /// Processor time per call of these processes.
    pub children_cpu: f64,
    /// Sum of their peak memory.
    pub children_peak_kb: f64,
}

/// Results of one server in one cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredServer {
    pub name: String,
    pub runs: Vec<Run>,
    /// Reason for missing runs.
    pub failure: Option<String>,
}

impl MeasuredServer {
    /// Returns the median over all rounds.
    pub fn median(&self, value: fn(&Run) -> f64) -> f64 {
        middle(self.runs.iter().map(value).collect()).unwrap_or(0.0)
    }

    /// Returns the median over rounds of this server's value divided by the base's value in the same round.
    pub fn ratio(&self, base: Option<&Self>, value: fn(&Run) -> f64) -> Option<f64> {
        let mut ratios = Vec::new();
        for run in &self.runs {
            let same_round = base?.runs.iter().find(|base| base.round == run.round);
            if let Some(base) = same_round.map(value).filter(|&base| base > 0.0) {
                ratios.push(value(run) / base);
            }
        }
        middle(ratios)
    }
}

/// All servers of one cell, in order of first appearance.
pub type Servers = Vec<MeasuredServer>;

/// All results, by configuration.
#[derive(Debug, Default)]
pub struct Results(pub BTreeMap<ResultCell, Servers>);

impl Results {
    /// Parses lines of `NAME BACKEND ROUND JSON`. The JSON of a failed run has a member `failed` in place of numbers.
    pub fn read(lines: &str) -> io::Result<Self> {
        let mut cells: BTreeMap<ResultCell, Servers> = BTreeMap::new();
        for line in lines.lines() {
            let (name, cell, told) = parse(line).ok_or_else(|| io::Error::other(format!("not a result: {line}")))?;
            let servers = cells.entry(cell).or_default();
            let at = servers.iter().position(|server| server.name == name).unwrap_or_else(|| {
                servers.push(MeasuredServer { name: name.to_owned(), ..MeasuredServer::default() });
                servers.len() - 1
            });
            match told {
                LineOutcome::Completed(run) => servers[at].runs.push(run),
                LineOutcome::Failed(reason) => servers[at].failure = Some(reason),
            }
        }
        Ok(Self(cells))
    }
}

/// Returns the server of this name.
pub fn named<'a>(servers: &'a Servers, name: &str) -> Option<&'a MeasuredServer> {
    servers.iter().find(|server| server.name == name)
}

fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => None,
        length if length % 2 == 1 => Some(values[half]),
        _ => Some(f64::midpoint(values[half - 1], values[half])),
    }
}

/// Content of a result line.
enum LineOutcome {
    Completed(Run),
    /// The run failed, for this reason.
    Failed(String),
}

fn parse(line: &str) -> Option<(&str, ResultCell, LineOutcome)> {
    let mut parts = line.splitn(4, ' ');
    let (name, backend, round, json) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let number = |key| field(json, key)?.parse::<f64>().ok();
    let cell = ResultCell {
        backend: backend.to_owned(),
        payload: field(json, "payload")?.parse().ok()?,
        era: field(json, "era")?.to_owned(),
        connections: field(json, "connections")?.parse().ok()?,
    };
    if let Some((_, reason)) = json.split_once(r#""failed":""#) {
        return Some((name, cell, LineOutcome::Failed(reason.strip_suffix("\"}").unwrap_or(reason).to_owned())));
    }
    let run = Run {
        round: round.parse().ok()?,
        body_bytes: number("body_bytes")?,
        errors: number("errors")?,
        rate: number("rate")?,
        p50: number("p50_us")?,
        p99: number("p99_us")?,
        cpu: number("cpu_us_per_call")?,
        peak_kb: number("peak_rss_kb")?,
        children: number("children")?,
        children_cpu: number("children_cpu_us_per_call")?,
        children_peak_kb: number("children_peak_rss_kb")?,
    };
    Some((name, cell, LineOutcome::Completed(run)))
}

/// Returns a member of a line that `load` printed, which is flat up to its last member and without spaces.
fn field<'a>(json: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = json.split_once(&format!("\"{key}\":"))?;
    let end = rest.find([',', '}'])?;
    Some(rest[..end].trim_matches('"'))
}

#[cfg(test)]
pub mod tests {
    use super::{Results, middle};

    /// A result as the script writes it.
    pub fn line(name: &str, backend: &str, round: u64, rate: f64) -> String {
        format!(
            r#"{name} {backend} {round} {{"era":"old","connections":16,"payload":256,"body_bytes":256,"calls":9,"errors":0,"rate":{rate},"p50_us":10.0,"p99_us":20.0,"cpu_us_per_call":5.5,"peak_rss_kb":2048,"children":1,"children_cpu_us_per_call":1.25,"children_peak_rss_kb":1024,"pids":[{{"pid":1,"cpu_us_per_call":9,"peak_rss_kb":9}}]}}"#
        ) + "\n"
    }

    #[test]
    fn the_middle_of_an_even_count_lies_between() {
        assert_eq!(middle(vec![4.0, 1.0]), Some(2.5));
        assert_eq!(middle(vec![]), None);
        assert!(Results::read("nonsense").is_err());
    }

    #[test]
    fn a_failure_is_kept_beside_what_succeeded() {
        let failed = r#"x http 2 {"era":"old","connections":16,"payload":256,"failed":"it said: {no}, never"}"#;
        let results = Results::read(&(line("x", "http", 1, 5.0) + failed)).unwrap();
        let servers = results.0.values().next().unwrap();
        assert_eq!(servers[0].runs.len(), 1);
        assert_eq!(servers[0].failure.as_deref(), Some("it said: {no}, never"));
    }
}
