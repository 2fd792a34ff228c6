//! Records in a database: each as it was written in `audit_record`, and one row for each call in `audit_log` (NO-7).

use super::{Line, Sink, SinkError};
use crate::log::unix_ms;
use crate::record::Record;
use signalbox_engine::record::StoreError;
use signalbox_store::audit::{AuditDatabase, AuditRow, CallRow};
use std::collections::HashMap;
use std::time::{Duration, Instant};

const DAY_MS: u64 = 24 * 3600 * 1000;
/// How often what is too old is deleted, at most.
const PRUNE_EVERY: Duration = Duration::from_secs(600);
/// Most bytes of arguments of calls in flight, which `audit_log` gets with their outcomes.
pub const MAX_ARGUMENT_BYTES: usize = 16 << 20;

/// Keeps records in SQLite or PostgreSQL.
#[derive(Debug)]
pub struct DatabaseSink {
    database: AuditDatabase,
    retention_days: u64,
    pruned: Option<Instant>,
    /// The arguments of calls whose outcomes are not known yet, by audit id, and how many bytes they are.
    open: HashMap<String, String>,
    open_bytes: usize,
}

impl DatabaseSink {
    /// A sink to the database at this address, where records are kept so long. It is opened when there is something to keep.
    ///
    /// # Errors
    /// If the address makes no sense.
    pub fn new(url: &str, retention_days: u64) -> Result<Self, StoreError> {
        Ok(Self {
            database: AuditDatabase::at(url)?,
            retention_days,
            pruned: None,
            open: HashMap::new(),
            open_bytes: 0,
        })
    }
}

impl Sink for DatabaseSink {
    fn name(&self) -> &'static str {
        "database"
    }

    fn write(&mut self, lines: &[Line]) -> Result<(), SinkError> {
        let mut rows: Vec<AuditRow> = lines.iter().map(row).collect();
        self.note_arguments(lines, &mut rows);
        self.database.append(&rows)?;
        for id in rows.iter().filter(|row| row.call.is_some()).filter_map(|row| row.correlation_id.as_ref()) {
            self.open_bytes -= self.open.remove(id).map_or(0, |arguments| arguments.len());
        }
        if self.pruned.is_none_or(|pruned| pruned.elapsed() >= PRUNE_EVERY) {
            self.database.prune(unix_ms().saturating_sub(self.retention_days * DAY_MS))?;
            self.pruned = Some(Instant::now());
        }
        Ok(())
    }
}

impl DatabaseSink {
    /// Keeps the arguments of intents until their outcomes come, and gives them to those.
    fn note_arguments(&mut self, lines: &[Line], rows: &mut [AuditRow]) {
        for (line, row) in lines.iter().zip(rows) {
            let Some(id) = &row.correlation_id else { continue };
            match &mut row.call {
                Some(call) => call.arguments = self.open.get(id).cloned(),
                // Most records have none: a look at the text is enough to know.
                None if line.text.contains("\"arguments\":") && self.open_bytes < MAX_ARGUMENT_BYTES => {
                    let Ok(record) = Record::read(&line.text) else { continue };
                    let Some(arguments) = record.value["details"].get("arguments").map(ToString::to_string) else {
                        continue;
                    };
                    self.open_bytes += arguments.len();
                    let before = self.open.insert(id.clone(), arguments);
                    self.open_bytes -= before.map_or(0, |before| before.len());
                }
                None => {}
            }
        }
    }
}

/// A record as the database keeps it.
fn row(line: &Line) -> AuditRow {
    let Ok(record) = Record::read(&line.text) else {
        let (event_type, risk) = ("unreadable".to_owned(), "high".to_owned());
        return AuditRow {
            seq: line.seq,
            at: unix_ms(),
            event_type,
            risk,
            record: line.text.clone(),
            ..AuditRow::default()
        };
    };
    let text = |name: &str| record.detail(name).map(str::to_owned);
    let is_call = record.detail("phase") == Some("outcome");
    let call = is_call.then(|| CallRow {
        role: record.value["user_context"]["roles"][0].as_str().map(str::to_owned),
        tool: text("tool").unwrap_or_default(),
        arguments: None,
        status: text("status").unwrap_or_default(),
        error: text("error"),
        latency_ms: record.value["details"]["latency_ms"].as_u64().unwrap_or(0),
    });
    AuditRow {
        chain: record.chain.clone(),
        seq: record.seq,
        at: record.at,
        event_type: record.event_type.map_or("gap", |kind| kind.word()).to_owned(),
        risk: record.risk.word().to_owned(),
        principal: record.principal().map(str::to_owned),
        backend: text("backend"),
        correlation_id: record.correlation_id().map(str::to_owned),
        call,
        record: line.text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::ChainPlace;
    use crate::event::{AuditEvent, EventType, RiskLevel};

    fn line(place: &mut ChainPlace, details: &str) -> Line {
        let mut text = String::new();
        let mut event = AuditEvent::own(unix_ms(), EventType::ToolInvocation, details, RiskLevel::Low);
        event.correlation_id = Some("audit-1-1");
        place.append(&event, &mut text);
        Line { seq: place.seq, text: text.trim_end().to_owned() }
    }

    /// G-40, NO-7: a record given twice is kept once, and a call is one row with its arguments.
    #[test]
    fn g_40_no_7_records_are_kept_once_and_calls_have_their_arguments() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("audit.db").display());
        let mut sink = DatabaseSink::new(&url, 90).unwrap();
        let mut place = ChainPlace::start("c");
        let intent = line(&mut place, r#"{"phase":"intent","tool":"greet","arguments":{"name":"Ada"}}"#);
        let outcome = line(&mut place, r#"{"phase":"outcome","tool":"greet","status":"success","latency_ms":3}"#);
        sink.write(std::slice::from_ref(&intent)).unwrap();
        assert!(sink.open_bytes > 0);
        sink.write(&[intent.clone(), outcome.clone()]).unwrap();
        sink.write(std::slice::from_ref(&outcome)).unwrap();
        assert_eq!((sink.open.len(), sink.open_bytes), (0, 0));
        let mut kept = Vec::new();
        AuditDatabase::at(&url)
            .unwrap()
            .records(None, None, &mut |record| {
                kept.push(record.to_owned());
                true
            })
            .unwrap();
        assert_eq!(kept, [intent.text, outcome.text]);
    }

    /// G-38: old records are deleted.
    #[test]
    fn g_38_records_older_than_retention_days_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("audit.db").display());
        let mut place = ChainPlace::start("c");
        let mut old = String::new();
        place.append(&AuditEvent::own(1_000, EventType::RecordsLost, "{}", RiskLevel::Low), &mut old);
        let old = Line { seq: 1, text: old.trim_end().to_owned() };
        let new = line(&mut place, "{}");
        DatabaseSink::new(&url, 90).unwrap().write(&[old, new]).unwrap();
        let mut count = 0;
        let mut each = |_: &str| {
            count += 1;
            true
        };
        AuditDatabase::at(&url).unwrap().records(None, None, &mut each).unwrap();
        assert_eq!(count, 1);
    }
}
