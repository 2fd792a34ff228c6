//! What must come of each thing that is tried: a pure function of the two revisions.

use super::feature::Feature;
use crate::revision::Revision;

/// What must come of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Expected {
    /// It works.
    Works,
    /// It arrives as text, for this reason.
    Text(&'static str),
    /// It is refused, by an error that names the feature, for this reason.
    Refused(&'static str),
}

/// What must come of a feature between two revisions.
pub fn expected(feature: Feature, client: Revision, server: Revision) -> Expected {
    match feature {
        Feature::Elicitation if !server.elicits() => {
            Expected::Refused("elicitation: the server's revision has none, so it has no tool that asks the user")
        }
        Feature::Elicitation if !client.elicits() => {
            Expected::Refused("elicitation: the client's revision has none, so the user cannot be asked")
        }
        Feature::Structured if !server.structures() => {
            Expected::Text("structured result: the server's revision has none; it sends the same as text")
        }
        Feature::Structured if !client.structures() => {
            Expected::Text("structured result: the client's revision has none; the same arrives as text")
        }
        _ => Expected::Works,
    }
}
