//! What is tried in every cell.

use crate::revision::Revision;

/// One thing that is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Feature {
    /// `tools/list` shows every tool once.
    List,
    /// A tool gets its arguments and answers.
    Call,
    /// A structured result arrives.
    Structured,
    /// Sounds, links and numbers arrive in a form that the client's revision has.
    Content,
    /// A tool that fails is told as such.
    Error,
    /// Progress arrives under the client's own token, in order.
    Progress,
    /// A cancelled call stops in the server.
    Cancel,
    /// Log messages arrive from the level on that the client asked for.
    Log,
    /// The client hears that the tools changed.
    ListChanged,
    /// The client hears that a resource changed.
    ResourceUpdate,
    /// A tool asks the user: once, before another question, and beside one.
    Elicitation,
    /// A tool asks the model.
    Sampling,
    /// A tool asks for the roots.
    Roots,
    /// An argument is completed.
    Completion,
    /// A list of several pages is read to its end.
    Paging,
}

impl Feature {
    /// All of them, in the order they are tried.
    pub const ALL: [Self; 15] = [
        Self::List,
        Self::Call,
        Self::Structured,
        Self::Content,
        Self::Error,
        Self::Progress,
        Self::Cancel,
        Self::Log,
        Self::ListChanged,
        Self::ResourceUpdate,
        Self::Elicitation,
        Self::Sampling,
        Self::Roots,
        Self::Completion,
        Self::Paging,
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Call => "call",
            Self::Structured => "structured result",
            Self::Content => "other content",
            Self::Error => "error",
            Self::Progress => "progress",
            Self::Cancel => "cancel",
            Self::Log => "log message",
            Self::ListChanged => "list changed",
            Self::ResourceUpdate => "resource update",
            Self::Elicitation => "elicitation",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
            Self::Completion => "completion",
            Self::Paging => "paging",
        }
    }

    /// What is measured.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::List => "`tools/list` shows every tool of the server exactly once",
            Self::Call => "a tool gets its arguments, runs exactly once, and its answer arrives",
            Self::Structured => "a structured result arrives, beside its text",
            Self::Content => {
                "a sound, a link to a resource and a bare number arrive in a form that the client's revision has"
            }
            Self::Error => "a tool that fails gives a failed result, not an error of the protocol",
            Self::Progress => "every step arrives under the client's own token, in order, before the answer",
            Self::Cancel => "a call that the client cancels is cancelled in the server",
            Self::Log => "log messages arrive from the level on that the client asked for, and none below",
            Self::ListChanged => "the client hears that the list of tools changed",
            Self::ResourceUpdate => "the client hears that a resource it follows changed",
            Self::Elicitation => "a tool asks the user: once, then the model as well, then both at the same time",
            Self::Sampling => "a tool asks the client's model",
            Self::Roots => "a tool asks for the client's roots",
            Self::Completion => "the argument of a prompt is completed",
            Self::Paging => "a list of several pages is read to its end, each entry once and in order",
        }
    }
}

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
