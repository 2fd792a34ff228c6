//! The database columns derived from a record. They depend on the record alone, so that a verification can compare them
//! with it.

use crate::journal::JournalRecord;
use crate::log::unix_ms;
use crate::record::AuditRecord;
use signalbox_store::audit::{AuditRow, CallRow, StoredRecord};

/// Converts the audit id `audit-RUN-EXCHANGE` to a UUID of version 8. The UUID holds both numbers, so that it sorts by
/// time and converts back (NO-7). Any other id stays unchanged.
pub(crate) fn request_id(audit_id: &str) -> String {
    let numbers = audit_id.strip_prefix("audit-").and_then(|rest| rest.split_once('-'));
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let numbers = numbers.and_then(|(run, exchange)| number(run).zip(number(exchange)));
    let Some((run, exchange)) = numbers.filter(|(_, exchange)| exchange >> 58 == 0) else {
        return audit_id.to_owned();
    };
    // 60 bits of the run before the variant and 4 after it; the exchange has the remaining 58.
    let (high, middle) = (run >> 16, (run >> 4) & 0xfff);
    let low = (0b10 << 62) | ((run & 0xf) << 58) | exchange;
    format!("{:08x}-{:04x}-8{middle:03x}-{:04x}-{:012x}", high >> 16, high & 0xffff, low >> 48, low & 0xffff_ffff_ffff)
}

/// Returns the database row of a record.
pub(crate) fn row(line: &JournalRecord) -> AuditRow {
    let Ok(record) = AuditRecord::read(&line.text) else {
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
    row_of(&record, &line.text)
}

/// Returns the database row of a record with this text.
pub(crate) fn row_of(record: &AuditRecord, line: &str) -> AuditRow {
    let text = |name: &str| record.detail(name).map(str::to_owned);
    let is_call = record.detail("phase") == Some("outcome");
    let call = is_call.then(|| CallRow {
        request_id: record.correlation_id().map(request_id).unwrap_or_default(),
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
        event_type: record.kind().to_owned(),
        risk: record.risk.word().to_owned(),
        principal: record.principal().map(str::to_owned),
        backend: text("backend"),
        correlation_id: record.correlation_id().map(str::to_owned),
        call,
        record: line.to_owned(),
    }
}

impl AuditRecord {
    /// Returns the first column of the stored row that disagrees with the record.
    #[must_use]
    pub fn misfiled_column(&self, row: &StoredRecord<'_>) -> Option<&'static str> {
        let own = row_of(self, row.record);
        let (event_type, risk) = (Some(own.event_type), Some(own.risk));
        let texts = [
            ("event_type", &event_type, row.event_type),
            ("risk_level", &risk, row.risk),
            ("principal", &own.principal, row.principal),
            ("backend", &own.backend, row.backend),
            ("correlation_id", &own.correlation_id, row.correlation_id),
        ];
        let filed =
            [("chain", row.chain == own.chain), ("seq", row.seq == Some(own.seq)), ("at", row.at == Some(own.at))];
        let texts = texts.map(|(name, own, found)| (name, own.as_deref().map(storable) == found.map(storable)));
        filed.into_iter().chain(texts).find_map(|(name, is_same)| (!is_same).then_some(name))
    }
}

/// Returns the text in a form that every database can store: PostgreSQL rejects the NUL character.
pub(crate) fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
