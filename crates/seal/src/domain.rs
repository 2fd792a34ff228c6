//! Signature domains, and the frame that binds a signature to one.

use std::fmt;
use std::str::FromStr;

use crate::profile::Profile;

/// Purpose of a signature. A signature of one domain is invalid in every other.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Domain {
    /// A request, signed by the sender.
    Request,
    /// A response, signed by the responder.
    Response,
    /// The head of a recorded tape, or a checkpoint of it.
    Tape,
    /// An entry of an audit log.
    Audit,
    /// A change that a gateway made to a signed request in transit.
    Hop,
}

/// Error for a name that is not a domain.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("signatures are made for `request`, `response`, `tape`, `audit` or `hop`, not for {0:?}")]
pub struct UnknownDomain(pub String);

impl Domain {
    /// All domains, in order of definition.
    pub const ALL: [Self; 5] = [Self::Request, Self::Response, Self::Tape, Self::Audit, Self::Hop];

    /// Returns the name of the domain on the wire.
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

    /// Returns the bytes to sign: `signalbox-seal`, the profile and the domain, each followed by a zero byte, then
    /// `canonical`.
    ///
    /// The frame starts with `s`, which cannot start a CBOR map, so framed bytes are never mistaken for bare canonical
    /// ones.
    #[must_use]
    pub fn frame(self, profile: Profile, canonical: &[u8]) -> Vec<u8> {
        let prefix = self.prefix(profile);
        let mut framed = Vec::with_capacity(prefix.len() + canonical.len());
        framed.extend_from_slice(prefix.as_bytes());
        framed.extend_from_slice(canonical);
        framed
    }

    /// Returns the part of the frame before the canonical bytes.
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
