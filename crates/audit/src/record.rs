//! Records of an audit log, as they are read back.

use crate::chain::SEALED;
use crate::event::{EventType, RiskLevel};
use crate::signed::{Absence, SignedPlace, StandIn};
use serde_json::{Map, Value};
use signalbox_seal::{ChainHash, unhex};
use signalbox_store::audit::StoredRecord;
use signalbox_wire::timestamp;

/// Member of the details that marks a record whose texts quote the message.
pub(crate) const QUOTES: &str = "quotes";

/// Error of a line that is not a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("this is no record of an audit log")]
pub struct BadRecord;

/// Parsed line of an audit log.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// Name of its chain.
    pub chain: String,
    /// Number in the chain; of a gap, the last missing record.
    pub seq: u64,
    /// Time of the event, in milliseconds since 1970.
    pub at: u64,
    /// Kind of the event; `None` for a signed place that stands for other records.
    pub event_type: Option<EventType>,
    pub risk: RiskLevel,
    /// Complete record as JSON.
    pub value: Value,
}

impl Record {
    /// Parses a line.
    ///
    /// # Errors
    /// If the line is not a record of an audit log.
    pub fn read(line: &str) -> Result<Self, BadRecord> {
        let value: Value = serde_json::from_str(line).map_err(|_| BadRecord)?;
        let chain = value["chain"].as_str().ok_or(BadRecord)?.to_owned();
        if value["kind"].as_str().and_then(StandIn::of_kind).is_some() {
            let (seq, at) = (value["to"].as_u64().ok_or(BadRecord)?, value["signed_ms"].as_u64().ok_or(BadRecord)?);
            return Ok(Self { chain, seq, at, event_type: None, risk: RiskLevel::High, value });
        }
        let text = |name: &str| value[name].as_str().ok_or(BadRecord);
        let at = timestamp::parse_rfc3339(text("timestamp")?).ok_or(BadRecord)? / 1_000_000;
        let event_type = Some(EventType::of(text("event_type")?).ok_or(BadRecord)?);
        let risk = RiskLevel::of(text("risk_level")?).ok_or(BadRecord)?;
        Ok(Self { chain, seq: value["seq"].as_u64().ok_or(BadRecord)?, at, event_type, risk, value })
    }

    /// Returns true if the columns of its database row agree with the record.
    #[must_use]
    pub fn is_filed_in(&self, row: &StoredRecord<'_>) -> bool {
        (row.chain, row.seq, row.at) == (&*self.chain, Some(self.seq), Some(self.at))
    }

    /// Returns true if it stands for records deleted by age, and so has no age itself.
    #[must_use]
    pub fn is_checkpoint(&self) -> bool {
        let is_by_age = |one: StandIn| matches!(one.absence, Absence::Pruned | Absence::PrunedUnproved);
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

    /// Returns the record without arguments, for readers without access to them.
    #[must_use]
    pub fn without_payloads(&self) -> Value {
        let mut value = self.value.clone();
        let Some(details) = value["details"].as_object_mut() else { return value };
        withhold(details, "arguments");
        if details.get(QUOTES).is_some_and(|quotes| *quotes == true) {
            withhold(details, "error");
            let decisions = details.get_mut("decisions").and_then(Value::as_array_mut);
            decisions.into_iter().flatten().filter_map(Value::as_object_mut).for_each(|one| withhold(one, "detail"));
        }
        value
    }
}

/// Replaces a member with a placeholder, if it is there.
fn withhold(object: &mut Map<String, Value>, name: &str) {
    if let Some(value) = object.get_mut(name) {
        *value = Value::from("[withheld]");
    }
}
