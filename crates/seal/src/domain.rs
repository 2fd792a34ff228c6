//! What a signature was made for, and the frame that binds it to that.

use std::fmt;
use std::str::FromStr;

use crate::profile::Profile;

/// What a signature was made for. A signature of one domain is worth nothing in another.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Domain {
    /// A request, by whoever asks.
    Request,
    /// A response, by whoever answers.
    Response,
    /// The head of a recorded tape, or a checkpoint of it.
    Tape,
    /// An entry of an audit log.
    Audit,
    /// What a gateway changed of a signed request on its way.
    Hop,
}

/// A name that is no domain's.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("signatures are made for `request`, `response`, `tape`, `audit` or `hop`, not for {0:?}")]
pub struct UnknownDomain(pub String);

impl Domain {
    /// Every domain.
    pub const ALL: [Self; 5] = [Self::Request, Self::Response, Self::Tape, Self::Audit, Self::Hop];

    /// Its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Response => "response",
            Self::Tape => "tape",
            Self::Audit => "audit",
            Self::Hop => "hop",
        }
    }

    /// The bytes that are signed: `signalbox-seal`, the profile and the domain, each ended by a zero byte, then `canonical`.
    ///
    /// The frame begins with `s`, which begins no map of CBOR, so that framed bytes are never taken for bare canonical ones.
    #[must_use]
    pub fn frame(self, profile: Profile, canonical: &[u8]) -> Vec<u8> {
        let prefix = self.prefix(profile);
        let mut framed = Vec::with_capacity(prefix.len() + canonical.len());
        framed.extend_from_slice(prefix.as_bytes());
        framed.extend_from_slice(canonical);
        framed
    }

    /// What stands before the canonical bytes in a frame.
    #[must_use]
    pub fn prefix(self, profile: Profile) -> String {
        format!("signalbox-seal\0{profile}\0{self}\0")
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Domain {
    type Err = UnknownDomain;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|domain| domain.name() == text).ok_or_else(|| UnknownDomain(text.to_owned()))
    }
}
