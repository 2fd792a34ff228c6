//! Content of a message of a backend, and the place in it where that stands.

pub(crate) use crate::content_settings::ContentClass;
use crate::instructions::TextLocation;
use signalbox_engine::catalog::ListKind;
use signalbox_engine::chain::{Case, Phase};
use signalbox_wire::{Era, Kind, Span, method};

/// Content of a message that a model or a person reads.
#[derive(Copy, Clone, Debug)]
pub(crate) struct FoundContent {
    pub class: ContentClass,
    /// Value that holds all of it.
    pub span: Span,
}

/// Returns the content of a message, if a backend sent it.
pub(crate) fn content(case: &Case<'_>) -> Option<FoundContent> {
    let message = case.message;
    // Lists were inspected before they were stored.
    if case.exchange.is_some_and(|exchange| ListKind::of_method(&exchange.method).is_some()) {
        return None;
    }
    let found = |class, span: Option<Span>| Some(FoundContent { class, span: span? });
    match case.phase {
        Phase::ServerAsks => found(ContentClass::Questions, message.params_span()),
        Phase::FromBackend if message.method() == Some(method::MESSAGE) => {
            found(ContentClass::Logs, message.params_span())
        }
        Phase::FromBackend => found(ContentClass::Progress, message.params_span()),
        Phase::Response if message.kind() == Kind::Error => found(ContentClass::Errors, message.error_span()),
        Phase::Response => found(class_of_result(case), message.result_span()),
        _ => None,
    }
}

fn class_of_result(case: &Case<'_>) -> ContentClass {
    let is = |member: &str, value: &[u8]| {
        case.message.result_member(member).is_some_and(|span| span.of(case.message.bytes()) == value)
    };
    match case.exchange.map(|exchange| &*exchange.method) {
        _ if is("resultType", b"\"input_required\"") && may_ask(case) => ContentClass::Questions,
        _ if is("isError", b"true") => ContentClass::Errors,
        Some(method::RESOURCES_READ) => ContentClass::Resources,
        Some(method::PROMPTS_GET) => ContentClass::Prompts,
        _ => ContentClass::Results,
    }
}

/// Returns true if the result of a call may be a question. Clients of older revisions do not know the member that says
/// so, and read the rest.
pub(crate) fn may_ask(case: &Case<'_>) -> bool {
    case.exchange.is_some_and(|exchange| exchange.era == Era::Modern || exchange.asks)
}

impl ContentClass {
    /// Returns the place by which the scorer judges texts of this class.
    pub(crate) fn place(self) -> TextLocation {
        match self {
            Self::Results => TextLocation::Result,
            Self::Resources => TextLocation::Resource,
            Self::Prompts => TextLocation::Prompt,
            Self::Errors => TextLocation::Error,
            Self::Logs | Self::Progress => TextLocation::Log,
            Self::Questions => TextLocation::Question,
            Self::Definitions => TextLocation::Definition,
        }
    }
}
