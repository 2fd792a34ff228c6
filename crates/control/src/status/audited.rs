//! State of the audit log: reported on the control socket and by `/api/v1/audit/status`, shown by `signalbox status`,
//! checked by `signalbox doctor`.

use serde::{Deserialize, Serialize};
use signalbox_audit::AuditStats;

/// State of the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditStatus {
    /// Number of the last written record.
    pub written: u64,
    /// Number of records that could not be written at all.
    pub lost: u64,
    /// Reason why writing fails at present.
    pub failing: Option<String>,
    /// Sinks of the records.
    pub sinks: Vec<SinkStatus>,
}

/// State of a sink.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SinkStatus {
    pub name: String,
    /// True if no call may leave without this sink.
    pub required: bool,
    /// Number of the last record that the sink has acknowledged.
    pub taken: u64,
    /// Number of records that wait for the sink.
    pub waiting: u64,
    /// Reason why the sink accepts nothing at present.
    pub failing: Option<String>,
    /// Number of failed attempts.
    pub failed: u64,
    /// Number of records that the sink got a signed gap for.
    pub skipped: u64,
}

impl AuditStatus {
    /// Converts the statistics of the log.
    #[must_use]
    pub fn of(stats: AuditStats) -> Self {
        let sink = |sink: signalbox_audit::SinkStats| SinkStatus {
            waiting: stats.written.saturating_sub(sink.acked),
            name: sink.name,
            required: sink.required,
            taken: sink.acked,
            failing: sink.failing,
            failed: sink.failed,
            skipped: sink.skipped,
        };
        let sinks = stats.sinks.into_iter().map(sink).collect();
        Self { written: stats.written, lost: stats.lost, failing: stats.failing, sinks }
    }

    /// Returns the line that `signalbox status` shows.
    pub(super) fn line(&self) -> String {
        let mut text = format!("records: {}", self.written);
        if self.lost > 0 {
            text.push_str(&format!(", lost: {}", self.lost));
        }
        for sink in &self.sinks {
            match &sink.failing {
                Some(why) => text.push_str(&format!(", {} TAKES NOTHING: {why}, waiting: {}", sink.name, sink.waiting)),
                None if sink.skipped > 0 => text.push_str(&format!(", {} (left out: {})", sink.name, sink.skipped)),
                None => text.push_str(&format!(", {}", sink.name)),
            }
        }
        if let Some(why) = &self.failing {
            text.insert_str(0, &format!("NOTHING CAN BE WRITTEN: {why}; "));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_audit::SinkStats;

    #[test]
    fn a_sink_that_takes_nothing_stands_out() {
        let sink = |name: &str, acked, failing: Option<&str>| SinkStats {
            name: name.to_owned(),
            acked,
            failing: failing.map(str::to_owned),
            ..SinkStats::default()
        };
        let sinks = vec![sink("file", 7, None), sink("remote", 3, Some("it hangs"))];
        let mut status = AuditStatus::of(AuditStats { written: 7, sinks, ..AuditStats::default() });
        assert_eq!(status.line(), "records: 7, file, remote TAKES NOTHING: it hangs, waiting: 4");
        (status.failing, status.lost) = (Some("disk full".to_owned()), 2);
        assert!(status.line().starts_with("NOTHING CAN BE WRITTEN: disk full; records: 7, lost: 2, file"));
    }
}
