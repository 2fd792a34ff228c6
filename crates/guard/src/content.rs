//! Content of a message of a backend, and the place in it where that stands.

pub(crate) use crate::content_settings::ContentClass;
use crate::instructions::TextLocation;
use signalbox_engine::chain::{Case, Phase};
use signalbox_wire::{Kind, Span, method};

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
        _ if is("resultType", b"\"input_required\"") => ContentClass::Questions,
        _ if is("isError", b"true") => ContentClass::Errors,
        Some(method::RESOURCES_READ) => ContentClass::Resources,
        Some(method::PROMPTS_GET) => ContentClass::Prompts,
        _ => ContentClass::Results,
    }
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
