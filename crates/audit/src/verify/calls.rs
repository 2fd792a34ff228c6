//! Compares the rows of calls in a database with the records of their outcomes. The chain covers only records, and
//! people who query with SQL read the rows.
//!
//! Rows are read before records. A row is written together with the record of its outcome, so each row read has one;
//! rows that are added meanwhile are read again at the end.

use super::{AuditVerifier, FaultKind};
use crate::columns::{row_of, storable};
use crate::record::Record;
use serde_json::Value;
use signalbox_store::audit::{AuditRow, CallRow, StoredCall};
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

/// Name of the table.
const TABLE: &str = "audit_log";
/// Columns derived from the record of an outcome.
const COLUMNS: [&str; 9] = [
    "request_id",
    "timestamp",
    "client_subject",
    "client_role",
    "tool_name",
    "backend_name",
    "response_status",
    "error_message",
    "latency_ms",
];
/// Maximum number of outcomes without a row that are looked up again at the end.
const MAX_MISSING: usize = 10_000;

/// Column values as hashes with a secret random key, so that rows of many calls fit in memory.
type Hashes = [u64; COLUMNS.len()];

/// Row whose record was not read yet.
#[derive(Debug)]
struct FoundRow {
    id: i64,
    at: Option<u64>,
    hashes: Hashes,
    arguments: Option<u64>,
}

/// Outcome of a call, with the expected content of its row.
#[derive(Debug)]
struct Outcome {
    chain: String,
    seq: u64,
    at: u64,
    /// Hashes of `request_id` in the present form, and in that of earlier versions.
    ids: [u64; 2],
    hashes: Hashes,
    /// Arguments of its intent; `None` if there is no intent.
    arguments: Option<Option<u64>>,
    /// True if the call was forwarded, so that it had an intent.
    forwarded: bool,
}

/// Verifies the rows of calls against the records of the same database.
#[derive(Debug, Default)]
pub struct CallVerifier {
    hasher: RandomState,
    /// Unmatched rows by the hash of `request_id`.
    rows: HashMap<u64, Vec<FoundRow>>,
    /// Highest id of the rows so far.
    last: i64,
    /// Arguments of calls whose outcome has not been read yet, by the hash of their audit ids.
    intents: HashMap<u64, Option<u64>>,
    missing: Vec<Outcome>,
}

impl CallVerifier {
    /// Adds a row of a call.
    pub fn row(&mut self, call: &StoredCall<'_>) {
        let &StoredCall { id, at, arguments, latency_ms, .. } = call;
        let text = |text: Option<&str>| self.hasher.hash_one(text.map(storable));
        let number = |number: Option<u64>| self.hasher.hash_one(number);
        let hashes = [
            text(call.request_id),
            number(at),
            text(call.subject),
            text(call.role),
            text(call.tool),
            text(call.backend),
            text(call.status),
            text(call.error),
            number(latency_ms),
        ];
        let arguments = arguments.map(|text| match serde_json::from_str::<Value>(text) {
            Ok(value) => self.hash_json(&value),
            Err(_) => self.hasher.hash_one(text),
        });
        self.last = self.last.max(id);
        self.rows.entry(hashes[0]).or_default().push(FoundRow { id, at, hashes, arguments });
    }

    /// Returns the highest id of the rows so far. Rows with a higher id were added meanwhile.
    #[must_use]
    pub fn last(&self) -> i64 {
        self.last
    }

    /// Compares a record, in its written form, with the row of its call.
    pub fn record(&mut self, verifier: &mut AuditVerifier<'_>, line: &str) {
        if !line.contains("\"phase\":\"") {
            return;
        }
        let Ok(record) = Record::read(line) else { return };
        let row = row_of(&record, line);
        let Some(call) = &row.call else { return self.intent(&record) };
        let outcome = self.outcome(&record, &row, call);
        match self.take(&outcome) {
            Some(found) => compare(verifier, &outcome, &found),
            None if self.missing.len() < MAX_MISSING => self.missing.push(outcome),
            None => verifier.fault(TABLE, &outcome.chain, FaultKind::CallMissing(outcome.seq)),
        }
    }

    /// Stores the arguments of an intent for its outcome, as the writer does.
    fn intent(&mut self, record: &Record) {
        let Some(id) = record.correlation_id().map(|id| self.hasher.hash_one(id)) else { return };
        match record.value["details"].get("arguments") {
            Some(arguments) => _ = self.intents.insert(id, Some(self.hash_json(arguments))),
            None => _ = self.intents.entry(id).or_insert(None),
        }
    }

    fn outcome(&mut self, record: &Record, row: &AuditRow, call: &CallRow) -> Outcome {
        let text = |text: Option<&str>| self.hasher.hash_one(text.map(storable));
        let number = |number: u64| self.hasher.hash_one(Some(number));
        let id = text(Some(&call.request_id));
        let hashes = [
            id,
            number(row.at),
            text(row.principal.as_deref()),
            text(call.role.as_deref()),
            text(Some(&call.tool)),
            text(row.backend.as_deref()),
            text(Some(&call.status)),
            text(call.error.as_deref()),
            number(call.latency_ms),
        ];
        let own = record.correlation_id();
        Outcome {
            chain: row.chain.clone(),
            seq: row.seq,
            at: row.at,
            ids: [id, text(own)],
            hashes,
            arguments: own.and_then(|own| self.intents.remove(&self.hasher.hash_one(own))),
            forwarded: record.value["details"]["forwarded"] == true,
        }
    }

    /// Takes the row of an outcome: of several with its id, the one with the fewest differences.
    fn take(&mut self, outcome: &Outcome) -> Option<FoundRow> {
        outcome.ids.iter().find_map(|id| {
            let rows = self.rows.get_mut(id)?;
            let nearest =
                (0..rows.len()).min_by_key(|at| rows.get(*at).map(|row| differences(outcome, row).count()))?;
            let found = rows.swap_remove(nearest);
            if rows.is_empty() {
                self.rows.remove(id);
            }
            Some(found)
        })
    }

    /// Reports outcomes without a row, and rows without an outcome. `seen` is the highest id before records were read;
    /// calls from before `since`, in milliseconds since 1970, may have been deleted by age.
    pub fn finish(mut self, verifier: &mut AuditVerifier<'_>, seen: i64, since: u64) {
        for outcome in std::mem::take(&mut self.missing) {
            match self.take(&outcome) {
                Some(found) => compare(verifier, &outcome, &found),
                None if outcome.at < since => {}
                None => verifier.fault(TABLE, &outcome.chain, FaultKind::CallMissing(outcome.seq)),
            }
        }
        let by_age = verifier.has_pruned();
        let may_be_gone = |row: &FoundRow| by_age && row.at.is_some_and(|at| at < since);
        let left = self.rows.into_values().flatten().filter(|row| row.id <= seen && !may_be_gone(row));
        let mut ids: Vec<i64> = left.map(|row| row.id).collect();
        ids.sort_unstable();
        ids.into_iter().for_each(|id| verifier.fault(TABLE, "", FaultKind::CallInvented(id)));
    }

    /// Hashes a JSON value independently of the order of members and the spelling of numbers, because PostgreSQL keeps
    /// neither.
    fn hash_json(&self, value: &Value) -> u64 {
        match value {
            Value::Null | Value::Bool(_) => self.hasher.hash_one(value.to_string()),
            Value::Number(number) => self.hasher.hash_one(number.as_f64().map(f64::to_bits)),
            Value::String(text) => self.hasher.hash_one(('"', storable(text))),
            Value::Array(items) => {
                let items: Vec<u64> = items.iter().map(|item| self.hash_json(item)).collect();
                self.hasher.hash_one(('[', items))
            }
            Value::Object(members) => {
                let mut members: Vec<(String, u64)> =
                    members.iter().map(|(name, value)| (storable(name), self.hash_json(value))).collect();
                members.sort_unstable();
                self.hasher.hash_one(('{', members))
            }
        }
    }
}

/// Returns the columns of a row that disagree with the outcome. Either form of an id is valid.
fn differences<'a>(outcome: &'a Outcome, row: &'a FoundRow) -> impl Iterator<Item = &'static str> {
    let pairs = COLUMNS.iter().zip(outcome.hashes.iter().zip(&row.hashes)).skip(1);
    pairs.filter(|(_, (own, found))| own != found).map(|(column, _)| *column)
}

fn compare(verifier: &mut AuditVerifier<'_>, outcome: &Outcome, row: &FoundRow) {
    let arguments = match (outcome.arguments, row.arguments) {
        (Some(Some(_)), None) => {
            verifier.count_without_arguments();
            None
        }
        (Some(own), found) => (own != found).then_some("request_args"),
        // A rejected call has no intent. The intent of a forwarded call may have been deleted by age.
        (None, Some(_)) if !outcome.forwarded => Some("request_args"),
        (None, _) => None,
    };
    for column in differences(outcome, row).chain(arguments) {
        let place = format!("{TABLE} row {}", row.id);
        verifier.fault(&place, &outcome.chain, FaultKind::CallChanged(outcome.seq, column));
    }
}
