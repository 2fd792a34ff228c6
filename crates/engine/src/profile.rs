//! What each side says about itself when a connection opens.

use crate::capset::CapSet;
use bytes::Bytes;
use signalbox_wire::{Era, Revision, json};

/// What a client said about itself: once at `initialize`, or with every request since 2026-07-28.
#[derive(Clone, Debug)]
pub struct ClientProfile {
    /// The revision its messages follow.
    pub revision: Revision,
    /// The declared capabilities, raw.
    pub capabilities: Bytes,
    /// The capabilities as a key for lists and connections.
    pub caps: CapSet,
    /// The `clientInfo` object, raw; absent where the client gave none.
    pub info: Option<Bytes>,
}

/// What a backend said about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerProfile {
    /// The revision agreed with it.
    pub revision: Revision,
    /// Its capabilities object, raw.
    pub capabilities: Bytes,
    /// Its `serverInfo` object, raw; `{}` where it gave none.
    pub info: Bytes,
    /// Its instructions for the model, decoded.
    pub instructions: Option<String>,
}

impl ServerProfile {
    /// The era of the agreed revision.
    #[must_use]
    pub fn era(&self) -> Era {
        self.revision.era()
    }

    /// True where the capability object has a member at this path, and it is not `false` or `null`.
    #[must_use]
    pub fn has(&self, path: &[&str]) -> bool {
        json::path(&self.capabilities, path)
            .map(|span| span.of(&self.capabilities))
            .is_some_and(|value| value != b"false" && value != b"null")
    }

    /// The name the backend gives itself, for people.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        let span = json::member(&self.info, "name")?;
        json::string(span.of(&self.info)).map(|name| name.into_owned())
    }
}
