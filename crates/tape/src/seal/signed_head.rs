//! A signed position of a chain in the self-contained form of proofs and anchors.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use signalbox_seal::{ChainHash, Head, HeadKind, VerifyingKey, hex, unhex};

/// A signed position in the chain of a tape. [`Self::signer`] checks its signature; reading does not.
#[derive(Clone, PartialEq, Debug)]
pub struct SignedHead {
    /// Id of the tape.
    pub tape: String,
    /// Purpose of the signature.
    pub kind: HeadKind,
    /// Position with its signature.
    pub head: Head,
}

/// Error of reading a signed head.
#[derive(Debug, thiserror::Error)]
pub enum NoHead {
    /// The value is not JSON, or a member is missing or of another type.
    #[error("it is no signed head of a tape: {0}")]
    Json(#[from] serde_json::Error),
    /// A member has an invalid value.
    #[error("`{0}` of a signed head makes no sense")]
    Member(&'static str),
}

/// JSON of a head; bytes are hexadecimal digits.
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
    /// Returns the key that signed it, or `None` if the signature is invalid.
    #[must_use]
    pub fn signer(&self) -> Option<VerifyingKey> {
        self.head.signer(self.kind, &self.tape)
    }

    /// Returns the hash of the chain at this position, or `None` if it has the wrong length.
    #[must_use]
    pub fn hash(&self) -> Option<ChainHash> {
        self.head.hash.as_slice().try_into().ok()
    }

    /// Returns the head in its JSON form.
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
        // A map of texts and numbers always has a JSON form.
        serde_json::to_value(line).unwrap_or_default()
    }

    /// Parses a head from its JSON form.
    ///
    /// # Errors
    /// Fails if a member is missing or invalid.
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
    use signalbox_seal::{HeadContent, SigningKey};

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let key = SigningKey::from_seed(&[7; 32]).unwrap();
        let content = HeadContent { ended: Some(8), ..HeadContent::of(3, &[1; 32], 9) };
        let head = Head::sign(HeadKind::Closing, "t", content, &key).unwrap();
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
