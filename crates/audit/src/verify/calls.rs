//! Compares the rows of calls in a database with the records of their outcomes. The chain covers only records, and
//! people who query with SQL read the rows.
//!
//! Rows are read before records. A row is written together with the record of its outcome, so each row read has one;
//! rows that are added meanwhile are read again at the end.

use super::{AuditFaultKind, AuditVerifier};
use crate::arguments::{ExactValue, earlier_column};
use crate::columns::{row_of, storable};
use crate::record::AuditRecord;
use signalbox_store::audit::{AuditRow, CallRow, StoredArguments, StoredCall, jsonb};
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

/// Hashes of the arguments of a record, as text and as a parsed value.
#[derive(Copy, Clone, Debug)]
struct ArgumentHashes {
    own: [u64; 2],
    /// Those of the text that the previous program wrote for such a record.
    earlier: Option<[u64; 2]>,
}

impl ArgumentHashes {
    fn accepts(&self, found: u64) -> bool {
        self.own.contains(&found) || self.earlier.is_some_and(|earlier| earlier.contains(&found))
    }
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
    arguments: Option<Option<ArgumentHashes>>,
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
    intents: HashMap<u64, Option<ArgumentHashes>>,
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
        let arguments = arguments.map(|arguments| self.hash_stored(arguments));
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
        let Ok(record) = AuditRecord::read(line) else { return };
        let row = row_of(&record, line);
        let Some(call) = &row.call else { return self.intent(&record) };
        let outcome = self.outcome(&record, &row, call);
        match self.take(&outcome) {
            Some(found) => compare(verifier, &outcome, &found),
            None if self.missing.len() < MAX_MISSING => self.missing.push(outcome),
            None => verifier.fault(TABLE, &outcome.chain, AuditFaultKind::CallMissing(outcome.seq)),
        }
    }

    /// Stores the arguments of an intent for its outcome, as the writer does.
    fn intent(&mut self, record: &AuditRecord) {
        let Some(id) = record.correlation_id().map(|id| self.hasher.hash_one(id)) else { return };
        match record.arguments() {
            Some(arguments) => _ = self.intents.insert(id, Some(self.hash_recorded(arguments))),
            None => _ = self.intents.entry(id).or_insert(None),
        }
    }

    fn outcome(&mut self, record: &AuditRecord, row: &AuditRow, call: &CallRow) -> Outcome {
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
                None => verifier.fault(TABLE, &outcome.chain, AuditFaultKind::CallMissing(outcome.seq)),
            }
        }
        let by_age = verifier.has_pruned();
        let may_be_gone = |row: &FoundRow| by_age && row.at.is_some_and(|at| at < since);
        let left = self.rows.into_values().flatten().filter(|row| row.id <= seen && !may_be_gone(row));
        let mut ids: Vec<i64> = left.map(|row| row.id).collect();
        ids.sort_unstable();
        ids.into_iter().for_each(|id| verifier.fault(TABLE, "", AuditFaultKind::CallInvented(id)));
    }

    /// Hashes arguments as a database returns them.
    fn hash_stored(&self, arguments: StoredArguments<'_>) -> u64 {
        match arguments {
            StoredArguments::Text(text) => self.hasher.hash_one(text),
            StoredArguments::Parsed(text) => self.hasher.hash_one(ExactValue::of(text)),
        }
    }

    /// Hashes the forms that a row may have the arguments of a record in.
    fn hash_recorded(&self, recorded: &str) -> ArgumentHashes {
        let of = |text: &str| {
            let parsed = jsonb(text);
            [StoredArguments::Text(text), StoredArguments::Parsed(&parsed)].map(|form| self.hash_stored(form))
        };
        let earlier = earlier_column(recorded);
        ArgumentHashes { own: of(recorded), earlier: earlier.as_deref().map(of) }
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
        (Some(own), found) => {
            let is_own = own.zip(found).map_or(own.is_none() && found.is_none(), |(own, found)| own.accepts(found));
            (!is_own).then_some("request_args")
        }
        // A rejected call has no intent. The intent of a forwarded call may have been deleted by age.
        (None, Some(_)) if !outcome.forwarded => Some("request_args"),
        (None, _) => None,
    };
    for column in differences(outcome, row).chain(arguments) {
        let place = format!("{TABLE} row {}", row.id);
        verifier.fault(&place, &outcome.chain, AuditFaultKind::CallChanged(outcome.seq, column));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::ChainPlace;
    use crate::event::{AuditEvent, EventType, RiskLevel};
    use signalbox_seal::KeySet;

    /// Returns the columns that a verification names if a call has these arguments in its record and in its row.
    fn changed(recorded: &str, stored: StoredArguments<'_>) -> Vec<&'static str> {
        let mut place = ChainPlace::start("c");
        let lines: Vec<String> = [
            format!(r#"{{"phase":"intent","tool":"greet","arguments":{recorded}}}"#),
            r#"{"phase":"outcome","tool":"greet","forwarded":true,"status":"success","latency_ms":3}"#.to_owned(),
        ]
        .iter()
        .map(|details| {
            let event = AuditEvent::own(1_000, EventType::ToolInvocation, details, RiskLevel::Low);
            let mut text = String::new();
            place.append(&AuditEvent { correlation_id: Some("audit-1-1"), ..event }, &mut text);
            text.trim_end().to_owned()
        })
        .collect();
        let outcome = row_of(&AuditRecord::read(&lines[1]).unwrap(), &lines[1]);
        let call = outcome.call.unwrap();
        let (keys, mut calls) = (KeySet::new(), CallVerifier::default());
        let mut verifier = AuditVerifier::new(&keys);
        calls.row(&StoredCall {
            id: 1,
            request_id: Some(&call.request_id),
            at: Some(outcome.at),
            subject: None,
            role: None,
            tool: Some(&call.tool),
            backend: None,
            arguments: Some(stored),
            status: Some(&call.status),
            error: None,
            latency_ms: Some(call.latency_ms),
        });
        lines.iter().for_each(|line| calls.record(&mut verifier, line));
        calls.finish(&mut verifier, 1, 0);
        let named = |fault: &crate::AuditFault| match fault.kind {
            AuditFaultKind::CallChanged(_, column) => column,
            _ => panic!("{fault}"),
        };
        verifier.faults().iter().map(named).collect()
    }

    /// Attack F4: readers of doubled members differ, so a column has to have the text of the record.
    #[test]
    fn a_column_of_arguments_has_the_text_of_its_record() {
        const OWN: &str = r#"{"name":"Ada","n":10.0}"#;
        assert!(changed(OWN, StoredArguments::Text(OWN)).is_empty());
        for forged in [
            r#"{"name":"Ada","n":10.0,"name":"Eve"}"#,
            r#"{"name":"Eve","name":"Ada","n":10.0}"#,
            r#"{"n":10.0,"name":"Ada"}"#,
            r#"{"name":"Ada", "n":10.0}"#,
            r#"{"name":"Ada","n":10}"#,
            r#"{"name":"Ada","n":1e1}"#,
            r#"{"name":"\u0041da","n":10.0}"#,
            "{\"name\":\"Ada\",\"n\":10.0}\n",
        ] {
            assert_eq!(changed(OWN, StoredArguments::Text(forged)), ["request_args"], "{forged}");
        }
    }

    /// PostgreSQL keeps values and not their text, but every digit of a number.
    #[test]
    fn a_parsed_column_has_the_value_of_its_record() {
        let own = r#"{"name":"Ada","n":123456789012345678901234567890,"z":"\u0000\\u0000"}"#;
        let kept = |n: &str| format!(r#"{{"n": {n}, "z": "\ufffd\\u0000", "name": "Ada"}}"#);
        assert!(changed(own, StoredArguments::Parsed(&kept("123456789012345678901234567890"))).is_empty());
        let forged = kept("123456789012345678901234567891");
        assert_eq!(changed(own, StoredArguments::Parsed(&forged)), ["request_args"]);
        let tiny = r#"{"n":1e-999999}"#;
        assert!(changed(tiny, StoredArguments::Parsed(&jsonb(tiny))).is_empty());
    }

    /// The previous program wrote such a row for such a record where a fraction was long.
    #[test]
    fn rows_of_the_previous_program_are_its_records() {
        for number in 0..1_000 {
            let recorded = serde_json::json!({"x": f64::from(number) / 7.0 + 0.1}).to_string();
            let column = serde_json::from_str::<serde_json::Value>(&recorded).unwrap().to_string();
            assert!(changed(&recorded, StoredArguments::Text(&column)).is_empty(), "{recorded} {column}");
        }
    }
}
