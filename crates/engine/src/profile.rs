//! Profiles that clients and servers declare when a connection opens.

use crate::bridge::{self, capabilities};
use crate::capset::CapSet;
use crate::fault::{Fault, FaultKind};
use bytes::Bytes;
use signalbox_wire::{Era, Revision, json};
use std::sync::OnceLock;

/// Maximum length of `clientInfo` and of the capabilities that a client may send.
pub const MAX_CLAIMED: usize = 64 << 10;

/// Profile of a client, declared once at `initialize`, or with every request since 2026-07-28.
#[derive(Clone, Debug)]
pub struct ClientProfile {
    /// Revision that its messages follow.
    pub revision: Revision,
    /// Declared capabilities as raw JSON.
    pub capabilities: Bytes,
    /// The `clientInfo` object, raw; `None` if the client gave none.
    pub info: Option<Bytes>,
    caps: OnceLock<CapSet>,
    modern: [OnceLock<Box<str>>; 2],
}

impl ClientProfile {
    /// Refuses profiles that are too long to store for each session.
    ///
    /// # Errors
    /// Returns a fault that names the part that is too long.
    pub fn check(capabilities: &[u8], info: Option<&[u8]>) -> Result<(), Fault> {
        for (what, length) in [("clientInfo", info.map_or(0, <[u8]>::len)), ("capabilities", capabilities.len())] {
            if length > MAX_CLAIMED {
                let text = format!("{what} has {length} bytes; {MAX_CLAIMED} are allowed");
                return Err(Fault::new(FaultKind::InvalidParams, text));
            }
        }
        Ok(())
    }

    /// Creates the profile of a client of this revision.
    #[must_use]
    pub fn new(revision: Revision, capabilities: Bytes, info: Option<Bytes>) -> Self {
        Self { revision, capabilities, info, caps: OnceLock::new(), modern: Default::default() }
    }

    /// Returns the client's name and version, as far as it gave them.
    #[must_use]
    pub fn title(&self) -> String {
        let text = |member: &str| {
            let info = self.info.as_deref()?;
            json::string(json::member(info, member)?.of(info))
        };
        [text("name"), text("version")].into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// Returns the capabilities as a key for lists and connections, in the form of the old era. Computed on first use,
    /// because a request between two ends of the new era never needs them.
    #[must_use]
    pub fn caps(&self) -> &CapSet {
        self.caps.get_or_init(|| match self.revision.era() {
            Era::Legacy => CapSet::read(&self.capabilities),
            Era::Modern => {
                CapSet::read(capabilities::to_legacy(&self.capabilities, Revision::LATEST_LEGACY).as_bytes())
            }
        })
    }

    /// Returns the capabilities in the form of the new era, with or without the tasks extension, which the gateway
    /// understands even if the client does not.
    #[must_use]
    pub fn modern_capabilities(&self, tasks: bool) -> &str {
        self.modern[usize::from(tasks)].get_or_init(|| {
            let extensions: &[(&str, &str)] = if tasks { &[(bridge::TASKS, "{}")] } else { &[] };
            capabilities::to_modern(self, extensions).into()
        })
    }
}

/// Profile that a backend declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerProfile {
    /// Revision agreed with the backend.
    pub revision: Revision,
    /// The `capabilities` object, raw.
    pub capabilities: Bytes,
    /// The `serverInfo` object, raw; `{}` if the backend gave none.
    pub info: Bytes,
    /// Instructions for the model, decoded.
    pub instructions: Option<String>,
}

impl ServerProfile {
    /// Returns the era of the agreed revision.
    #[must_use]
    pub fn era(&self) -> Era {
        self.revision.era()
    }

    /// Returns true if the capabilities have a member at this path that is neither `false` nor `null`.
    #[must_use]
    pub fn has(&self, path: &[&str]) -> bool {
        json::path(&self.capabilities, path)
            .map(|span| span.of(&self.capabilities))
            .is_some_and(|value| value != b"false" && value != b"null")
    }

    /// Returns true if the backend runs tool calls as tasks, in the form of its revision.
    #[must_use]
    pub fn hosts_tasks(&self) -> bool {
        match self.era() {
            Era::Legacy => bridge::tasks::offered(&self.capabilities),
            Era::Modern => self.has(&["extensions", bridge::TASKS]),
        }
    }

    /// Returns the backend's display name.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        self.info_text("name")
    }

    /// Returns the version that the backend declared.
    #[must_use]
    pub fn version(&self) -> Option<String> {
        self.info_text("version")
    }

    fn info_text(&self, member: &str) -> Option<String> {
        let span = json::member(&self.info, member)?;
        json::string(span.of(&self.info)).map(|text| text.into_owned())
    }
}
