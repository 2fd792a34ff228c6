//! Records of an audit log, as they are read back.

use crate::chain::SEALED;
use crate::event::{EventType, RiskLevel};
use crate::signed::{MissingReason, SignedPlace, StandIn};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use signalbox_seal::{ChainHash, unhex};
use signalbox_store::audit::StoredRecord;
use signalbox_wire::{json, timestamp};

/// Member of the details that marks a record whose texts quote the message.
pub(crate) const QUOTES: &str = "quotes";

/// Member of the details that holds the arguments of a call.
const ARGUMENTS: &str = "arguments";

/// Error of a line that is not a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("this is no record of an audit log")]
pub struct BadRecord;

/// Parsed line of an audit log.
#[derive(Clone, PartialEq, Debug)]
pub struct AuditRecord {
    /// Name of its chain.
    pub chain: String,
    /// Number in the chain; of a gap, the last missing record.
    pub seq: u64,
    /// Time of the event, in milliseconds since 1970.
    pub at: u64,
    /// Kind of the event; `None` for a signed place that stands for other records.
    pub event_type: Option<EventType>,
    pub risk: RiskLevel,
    /// Complete record as JSON. Arguments are null in it: parsing them would lose digits of their numbers.
    pub value: Value,
    arguments: Option<Box<str>>,
}

impl AuditRecord {
    /// Parses a line.
    ///
    /// # Errors
    /// If the line is not a record of an audit log.
    pub fn read(line: &str) -> Result<Self, BadRecord> {
        let (value, arguments) = parts(line)?;
        let chain = value["chain"].as_str().ok_or(BadRecord)?.to_owned();
        if value["kind"].as_str().and_then(StandIn::of_kind).is_some() {
            let (seq, at) = (value["to"].as_u64().ok_or(BadRecord)?, value["signed_ms"].as_u64().ok_or(BadRecord)?);
            return Ok(Self { chain, seq, at, event_type: None, risk: RiskLevel::High, value, arguments });
        }
        let text = |name: &str| value[name].as_str().ok_or(BadRecord);
        let at = timestamp::parse_rfc3339(text("timestamp")?).ok_or(BadRecord)? / 1_000_000;
        let event_type = Some(EventType::of(text("event_type")?).ok_or(BadRecord)?);
        let risk = RiskLevel::of(text("risk_level")?).ok_or(BadRecord)?;
        let seq = value["seq"].as_u64().ok_or(BadRecord)?;
        Ok(Self { chain, seq, at, event_type, risk, value, arguments })
    }

    /// Returns true if the columns of its database row agree with the record.
    #[must_use]
    pub fn is_filed_in(&self, row: &StoredRecord<'_>) -> bool {
        (row.chain, row.seq, row.at) == (&*self.chain, Some(self.seq), Some(self.at))
    }

    /// Returns true if it stands for records deleted by age, and so has no age itself.
    #[must_use]
    pub fn is_checkpoint(&self) -> bool {
        let is_by_age = |one: StandIn| matches!(one.absence, MissingReason::Pruned | MissingReason::PrunedUnproved);
        self.event_type.is_none() && StandIn::of_kind(self.kind()).is_some_and(is_by_age)
    }

    /// Returns the hashes of the chain before and at the record.
    #[must_use]
    pub fn hashes(&self) -> Option<(ChainHash, ChainHash)> {
        let hash = |name: &str| unhex(self.value[name].as_str()?)?.try_into().ok();
        Some((hash("prev")?, hash("hash")?))
    }

    /// Returns the part of a line that its hash covers.
    #[must_use]
    pub fn covered(line: &str) -> Option<&str> {
        line.rfind(SEALED).and_then(|end| line.get(..end))
    }

    /// Returns the signed place that it contains, if it is a head or a gap.
    #[must_use]
    pub fn place(&self) -> Option<&Value> {
        match self.event_type {
            None => Some(&self.value),
            Some(EventType::ChainHead) => Some(&self.value["details"]),
            Some(_) => None,
        }
    }

    /// Returns its kind, as shown in tables and databases.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self.event_type {
            Some(kind) => kind.word(),
            None => self.value["kind"].as_str().unwrap_or_default(),
        }
    }

    /// Returns the signed place of a head or a gap and its key, if the signature is valid.
    #[must_use]
    pub fn signed_place(&self) -> Option<(SignedPlace, signalbox_seal::VerifyingKey)> {
        SignedPlace::read(self.place()?)
    }

    /// Returns a text member of its details.
    #[must_use]
    pub fn detail(&self, name: &str) -> Option<&str> {
        self.value["details"][name].as_str()
    }

    /// Returns the arguments of its call: JSON, as in the line.
    #[must_use]
    pub fn arguments(&self) -> Option<&str> {
        self.arguments.as_deref()
    }

    /// Returns the principal of the caller.
    #[must_use]
    pub fn principal(&self) -> Option<&str> {
        self.value["user_context"]["principal"].as_str()
    }

    /// Returns the audit id of its exchange.
    #[must_use]
    pub fn correlation_id(&self) -> Option<&str> {
        self.value["correlation_id"].as_str()
    }

    /// Returns the record as JSON. `line` is the record as written, which readers with access to arguments are shown.
    #[must_use]
    pub fn shown(&self, line: &str, payloads: bool) -> String {
        if payloads { line.to_owned() } else { self.without_payloads().to_string() }
    }

    /// Returns the record without arguments, for readers without access to them.
    #[must_use]
    pub fn without_payloads(&self) -> Value {
        let mut value = self.value.clone();
        let Some(details) = value["details"].as_object_mut() else { return value };
        withhold(details, ARGUMENTS);
        if details.get(QUOTES).is_some_and(|quotes| *quotes == true) {
            withhold(details, "error");
            let decisions = details.get_mut("decisions").and_then(Value::as_array_mut);
            decisions.into_iter().flatten().filter_map(Value::as_object_mut).for_each(|one| withhold(one, "detail"));
        }
        value
    }
}

/// Parses a line, with null in place of the arguments, and returns the text of those.
fn parts(line: &str) -> Result<(Value, Option<Box<str>>), BadRecord> {
    let read = |text: &str| serde_json::from_str::<Value>(text).map_err(|_| BadRecord);
    // Most records have no arguments. A substring search is enough to know.
    let found = line.contains(ARGUMENTS).then(|| json::path(line.as_bytes(), &["details", ARGUMENTS])).flatten();
    let Some(range) = found.map(|span| span.range()) else { return Ok((read(line)?, None)) };
    let part = |range| line.get(range).ok_or(BadRecord);
    let arguments = part(range.clone())?;
    serde_json::from_str::<&RawValue>(arguments).map_err(|_| BadRecord)?;
    let value = read(&[part(0..range.start)?, "null", part(range.end..line.len())?].concat())?;
    // The log writes no line with two.
    let is_only = value["details"][ARGUMENTS].is_null();
    is_only.then(|| (value, Some(arguments.into()))).ok_or(BadRecord)
}

/// Replaces a member with a placeholder, if it is there.
fn withhold(object: &mut Map<String, Value>, name: &str) {
    if let Some(value) = object.get_mut(name) {
        *value = Value::from("[withheld]");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(details: &str) -> String {
        format!(
            r#"{{"chain":"c","seq":1,"timestamp":"2026-11-17T10:00:00.000Z","event_type":"request","source":"mcp_protocol","user_context":{{}},"details":{details},"risk_level":"low","correlation_id":"audit-1-2","prev":"","hash":""}}"#
        )
    }

    /// Attack F5: arguments are read back as they were written, even numbers that no type of this program holds.
    #[test]
    fn arguments_keep_their_text() {
        let arguments = r#"{ "n":123456789012345678901234567890,"m": [1e400,0.1000000000000000000001] }"#;
        let line_of = line(&format!(r#"{{"phase":"intent","arguments":{arguments},"tool":"t"}}"#));
        let record = AuditRecord::read(&line_of).unwrap();
        assert_eq!((record.arguments(), record.detail("tool")), (Some(arguments), Some("t")));
        assert_eq!(record.shown(&line_of, true), line_of);
        let withheld = record.shown(&line_of, false);
        assert!(withheld.contains(r#""arguments":"[withheld]""#) && !withheld.contains("1e400"), "{withheld}");
        let none = AuditRecord::read(&line(r#"{"phase":"intent","text":"arguments"}"#)).unwrap();
        assert_eq!(none.arguments(), None);
        assert!(none.without_payloads()["details"].get("arguments").is_none());
        for bad in [r#"{"arguments":{x}}"#, r#"{"arguments":1,"arguments":2}"#, r#"{"arguments":01}"#] {
            assert!(AuditRecord::read(&line(bad)).is_err(), "{bad}");
        }
    }
}
