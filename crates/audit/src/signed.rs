//! Signed positions in a chain: heads state how far the chain went, gaps what a sink did not receive, and checkpoints
//! stand for records deleted by age. The key of the data folder signs them. A gap or checkpoint is valid for one place
//! of one sink only.

use crate::event::Object;
use serde_json::Value;
use signalbox_seal::canonical::{EncodeError, Encoder};
use signalbox_seal::{ChainHash, Domain, Profile, Signature, SigningKey, VerifyingKey, hex, unhex};

/// Position or range of a chain, in the form that is signed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignedPlace {
    /// [`HEAD`], or the kind of a [`StandIn`].
    pub kind: &'static str,
    /// Name of the chain.
    pub chain: String,
    /// First record of the range; of a head the same as `to`.
    pub from: u64,
    /// Last record of the range.
    pub to: u64,
    /// Hash of the chain at `to`.
    pub hash: ChainHash,
    /// Time of the signature, in milliseconds since 1970.
    pub at: u64,
    /// Name of the only place that a stand-in is valid for. Heads have none, nor do stand-ins of earlier versions and
    /// of sinks that cannot be verified.
    pub sink: Option<String>,
}

/// Kind of a place that states how far a chain went.
pub const HEAD: &str = "head";

/// Reason why records are missing at a place.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum MissingReason {
    /// The sink was too far behind.
    Gap,
    /// The records were written while the log went to another place, and are no longer in the journal.
    Elsewhere,
    /// The records verified when they were deleted by age. Earlier versions signed this for records elsewhere, too.
    Pruned,
    /// The start of the chain was missing when the rest was deleted by age.
    PrunedUnproved,
}

/// Kind of a signed line that stands for missing records.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct StandIn {
    /// Kind as it is signed.
    pub kind: &'static str,
    /// Reason why the records are missing.
    pub absence: MissingReason,
    /// The only kind of sink that it is valid for. Earlier versions signed kinds without a sink.
    pub sink: Option<&'static str>,
}

/// Every kind that stands for records. Sinks that cannot be verified use those without a sink.
const STAND_INS: [StandIn; 12] = {
    use MissingReason::{Elsewhere, Gap, Pruned, PrunedUnproved};
    const fn of(kind: &'static str, absence: MissingReason, sink: Option<&'static str>) -> StandIn {
        StandIn { kind, absence, sink }
    }
    [
        of("gap", Gap, None),
        of("gap_file", Gap, Some("file")),
        of("gap_database", Gap, Some("database")),
        of("elsewhere", Elsewhere, None),
        of("elsewhere_file", Elsewhere, Some("file")),
        of("elsewhere_database", Elsewhere, Some("database")),
        of("pruned", Pruned, None),
        of("pruned_file", Pruned, Some("file")),
        of("pruned_database", Pruned, Some("database")),
        of("pruned_unproved", PrunedUnproved, None),
        of("pruned_unproved_file", PrunedUnproved, Some("file")),
        of("pruned_unproved_database", PrunedUnproved, Some("database")),
    ]
};

impl StandIn {
    /// Returns the stand-in with this kind, if there is one.
    #[must_use]
    pub fn of_kind(kind: &str) -> Option<Self> {
        STAND_INS.into_iter().find(|one| one.kind == kind)
    }
}

impl MissingReason {
    /// Returns the kind to sign for this sink.
    #[must_use]
    pub fn kind(self, sink: &str) -> &'static str {
        let of = |sink: Option<&str>| STAND_INS.into_iter().find(|one| one.absence == self && one.sink == sink);
        of(Some(sink)).or_else(|| of(None)).map_or("gap", |one| one.kind)
    }
}

impl SignedPlace {
    fn canonical(&self, key: &VerifyingKey) -> Result<Vec<u8>, EncodeError> {
        let mut encoder = Encoder::with_capacity(Profile::Two, 160);
        encoder.value().array(|place| {
            place.item().text(self.kind);
            place.item().text(&self.chain);
            place.item().unsigned(self.from);
            place.item().unsigned(self.to);
            place.item().bytes(&self.hash);
            place.item().unsigned(self.at);
            place.item().text(key.id());
            place.item().bytes(key.as_bytes());
            if let Some(sink) = &self.sink {
                place.item().text(sink);
            }
            Ok(())
        })?;
        encoder.finish()
    }

    /// Returns the place as a JSON object with its signature; `None` if the library cannot sign it.
    #[must_use]
    pub fn sign(&self, key: &SigningKey) -> Option<String> {
        let canonical = self.canonical(key.verifying_key()).ok()?;
        let signature = key.sign(Profile::Two, Domain::Audit, &canonical).ok()?;
        let mut text = String::with_capacity(512);
        let mut object = Object::new(&mut text);
        object.text("kind", self.kind);
        object.text("chain", &self.chain);
        object.number("from", self.from);
        object.number("to", self.to);
        object.text("at_hash", &hex(&self.hash));
        object.number("signed_ms", self.at);
        if let Some(sink) = &self.sink {
            object.text("sink", sink);
        }
        object.text("key_id", key.id());
        object.text("public_key", &key.verifying_key().to_hex());
        object.text("signature", &signature.to_hex());
        object.finish();
        Some(text)
    }

    /// Reads a signed place and the key that signed it; `None` if the object is malformed or the signature is invalid.
    #[must_use]
    pub fn read(object: &Value) -> Option<(Self, VerifyingKey)> {
        let text = |name: &str| object[name].as_str();
        let kind = text("kind")?;
        let kind = if kind == HEAD { HEAD } else { StandIn::of_kind(kind)?.kind };
        let hash: ChainHash = unhex(text("at_hash")?)?.try_into().ok()?;
        let (from, to) = (object["from"].as_u64()?, object["to"].as_u64()?);
        let (chain, at) = (text("chain")?.to_owned(), object["signed_ms"].as_u64()?);
        let sink = text("sink").map(str::to_owned);
        let place = Self { kind, chain, from, to, hash, at, sink };
        let key = VerifyingKey::from_hex(text("public_key")?).ok()?.named(text("key_id")?).ok()?;
        let signature = Signature::from_hex(text("signature")?)?;
        key.verify(Profile::Two, Domain::Audit, &place.canonical(&key).ok()?, &signature).ok()?;
        Some((place, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A signature fits one place of one chain and one kind.
    #[test]
    fn a_signed_place_cannot_be_used_for_another() {
        let key = SigningKey::from_seed(&[7; 32]).unwrap();
        let sink = Some("/var/log/audit.log".to_owned());
        let place = SignedPlace { kind: "gap_file", chain: "c".into(), from: 3, to: 3, hash: [1; 32], at: 9, sink };
        let signed: Value = serde_json::from_str(&place.sign(&key).unwrap()).unwrap();
        let (read, by) = SignedPlace::read(&signed).unwrap();
        assert_eq!((read, by.id()), (place, key.id()));
        let other = hex(&[2; 32]);
        for (member, value) in [
            ("kind", Value::from("gap")),
            ("sink", Value::from("/var/log/other.log")),
            ("sink", Value::Null),
            ("chain", Value::from("d")),
            ("from", Value::from(2)),
            ("to", Value::from(4)),
            ("at_hash", Value::from(other.as_str())),
            ("signed_ms", Value::from(8)),
            ("key_id", Value::from("another")),
        ] {
            let mut changed = signed.clone();
            changed[member] = value;
            assert!(SignedPlace::read(&changed).is_none(), "{member}");
        }
    }
}
