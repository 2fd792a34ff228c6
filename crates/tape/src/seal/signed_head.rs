//! A signed place of a chain by itself, as proofs and anchors carry it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use signalbox_seal::{ChainHash, Head, HeadKind, VerifyingKey, hex, unhex};

/// A signed place of the chain of a tape. Its signature is checked by [`Self::signer`], not when it is read.
#[derive(Clone, PartialEq, Debug)]
pub struct SignedHead {
    /// The id of the tape.
    pub tape: String,
    /// What it was signed for.
    pub kind: HeadKind,
    /// The place, with its signature.
    pub head: Head,
}

/// Why something is no signed head.
#[derive(Debug, thiserror::Error)]
pub enum NoHead {
    /// It is no JSON, or a member is missing or of another type.
    #[error("it is no signed head of a tape: {0}")]
    Json(#[from] serde_json::Error),
    /// A member has a value that it cannot have.
    #[error("`{0}` of a signed head makes no sense")]
    Member(&'static str),
}

/// The JSON of a head; bytes are hexadecimal digits.
#[derive(Serialize, Deserialize)]
struct HeadLine {
    tape: String,
    kind: String,
    seq: u64,
    hash: String,
    at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    missing: Option<u64>,
    key_id: String,
    public_key: String,
    signature: String,
}

impl SignedHead {
    /// The key that signed it; none if the signature does not fit.
    #[must_use]
    pub fn signer(&self) -> Option<VerifyingKey> {
        self.head.signer(self.kind, &self.tape)
    }

    /// The hash that the chain had there; none if that is no hash.
    #[must_use]
    pub fn hash(&self) -> Option<ChainHash> {
        self.head.hash.as_slice().try_into().ok()
    }

    /// As JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let head = &self.head;
        let line = HeadLine {
            tape: self.tape.clone(),
            kind: self.kind.name().to_owned(),
            seq: head.seq,
            hash: hex(&head.hash),
            at: head.at,
            ended: head.ended,
            missing: (head.missing > 0).then_some(head.missing),
            key_id: head.key_id.clone(),
            public_key: hex(&head.public_key),
            signature: hex(&head.signature),
        };
        // A map of texts and numbers has a JSON form.
        serde_json::to_value(line).unwrap_or_default()
    }

    /// From JSON.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_json(value: Value) -> Result<Self, NoHead> {
        let line: HeadLine = serde_json::from_value(value)?;
        let bytes = |text: &str, member| unhex(text).ok_or(NoHead::Member(member));
        let head = Head {
            seq: line.seq,
            hash: bytes(&line.hash, "hash")?,
            at: line.at,
            ended: line.ended,
            key_id: line.key_id,
            public_key: bytes(&line.public_key, "public_key")?,
            signature: bytes(&line.signature, "signature")?,
            missing: line.missing.unwrap_or(0),
        };
        let kind = HeadKind::of_name(&line.kind).ok_or(NoHead::Member("kind"))?;
        Ok(Self { tape: line.tape, kind, head })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_seal::SigningKey;

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let key = SigningKey::from_seed(&[7; 32]).unwrap();
        let head = Head::sign(HeadKind::Closing, "t", (3, &[1; 32]), (9, Some(8)), &key).unwrap();
        let signed = SignedHead { tape: "t".to_owned(), kind: HeadKind::Closing, head };
        let read = SignedHead::from_json(signed.to_json()).unwrap();
        assert_eq!(read, signed);
        assert_eq!(read.signer().unwrap().id(), key.id());
        for (member, value) in [("kind", "last"), ("hash", "0g"), ("signature", "1")] {
            let mut changed = signed.to_json();
            changed[member] = value.into();
            assert_eq!(
                SignedHead::from_json(changed).unwrap_err().to_string(),
                format!("`{member}` of a signed head makes no sense")
            );
        }
        assert!(SignedHead::from_json(Value::from(1)).is_err());
    }
}
