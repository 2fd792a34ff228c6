//! Outcome of a load run, and its JSON line.

use std::time::Duration;

use tokio::task::JoinSet;

use crate::gauge::{Peaks, Reading};
use crate::latency_histogram::LatencyHistogram;
use crate::plan::Plan;

/// Results of one connection, or of all of them.
#[derive(Debug, Default)]
pub struct LoadTally {
    /// Latencies of calls that were answered while measuring.
    pub latencies: LatencyHistogram,
    /// Number of failed calls.
    pub errors: u64,
    first_error: Option<String>,
}

impl LoadTally {
    pub fn fail(&mut self, count: u64, why: &str) {
        self.errors += count;
        self.first_error.get_or_insert_with(|| why.to_owned());
    }

    /// Adds the results of the running connections until all have ended.
    pub async fn gather(&mut self, running: &mut JoinSet<Self>) {
        while let Some(ended) = running.join_next().await {
            match ended {
                Ok(tally) => {
                    self.latencies.merge(&tally.latencies);
                    if let Some(why) = tally.first_error {
                        self.fail(tally.errors, &why);
                    }
                }
                Err(error) => self.fail(1, &error.to_string()),
            }
        }
    }
}

/// Outcome of the whole run.
#[derive(Debug)]
pub struct LoadOutcome {
    /// Size of a call's body, in bytes.
    pub body_bytes: usize,
    /// Duration of the measurement.
    pub elapsed: Duration,
    pub pids: Vec<u32>,
    /// Processor time that they used meanwhile.
    pub used: Reading,
    /// Peak memory that they held.
    pub peaks: Peaks,
    /// Results of the connections.
    pub tally: LoadTally,
}

impl LoadOutcome {
    /// Renders the numbers as one line. Prints the first error to stderr.
    pub fn json(&self, plan: &Plan) -> String {
        let latencies = &self.tally.latencies;
        let calls = latencies.total();
        let per_call = |cpu_us: u64| cpu_us as f64 / calls.max(1) as f64;
        let each = self.used.own_us.iter().zip(&self.peaks.own_kb);
        let pids: Vec<String> = self
            .pids
            .iter()
            .zip(each)
            .map(|(pid, (&cpu, peak))| {
                format!(r#"{{"pid":{pid},"cpu_us_per_call":{:.2},"peak_rss_kb":{peak}}}"#, per_call(cpu))
            })
            .collect();
        if let Some(why) = &self.tally.first_error {
            eprintln!("signalbox-bench load: first error: {why}");
        }
        format!(
            r#"{{"era":"{}","connections":{},"payload":{},"body_bytes":{},"seconds":{:.3},"calls":{calls},"errors":{},"rate":{:.1},"p50_us":{:.1},"p99_us":{:.1},"p999_us":{:.1},"max_us":{:.1},"cpu_us_per_call":{:.2},"peak_rss_kb":{},"children":{},"children_cpu_us_per_call":{:.2},"children_peak_rss_kb":{},"pids":[{}]}}"#,
            plan.target.era,
            plan.connections,
            plan.payload,
            self.body_bytes,
            self.elapsed.as_secs_f64(),
            self.tally.errors,
            calls as f64 / self.elapsed.as_secs_f64(),
            latencies.quantile_us(0.5),
            latencies.quantile_us(0.99),
            latencies.quantile_us(0.999),
            latencies.quantile_us(1.0),
            per_call(self.used.own_us.iter().sum()),
            self.peaks.own_kb.iter().sum::<u64>(),
            self.peaks.children,
            per_call(self.used.children_us),
            self.peaks.children_kb,
            pids.join(","),
        )
    }
}
