//! Canonical profiles: named sets of rules for canonical bytes.

use std::fmt;
use std::str::FromStr;

/// Named set of rules for canonical bytes. See [`crate::canonical`] for both.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum Profile {
    /// `mcp-cbor/1`: the exact rules of "MCP Serialization and Canonicalization". Different data can have the same
    /// bytes (1.0 and `"1.00000000"`).
    One,
    /// `mcp-cbor/2`: the core deterministic encoding of RFC 8949. Different data always has different bytes.
    #[default]
    Two,
}

/// Error for a name that is not a profile.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no canonical profile is called {0:?}; `mcp-cbor/1` and `mcp-cbor/2` are known")]
pub struct UnknownProfile(pub String);

impl Profile {
    /// Both profiles, in order of definition.
    pub const ALL: [Self; 2] = [Self::One, Self::Two];

    /// Returns the name of the profile on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::One => "mcp-cbor/1",
            Self::Two => "mcp-cbor/2",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|profile| profile.name() == text).ok_or_else(|| UnknownProfile(text.to_owned()))
    }
}
