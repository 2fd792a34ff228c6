//! Faults: their kinds, their owners, and the single place that turns them into replies on the wire.

mod category;
mod detail;

pub use category::FaultCategory;
pub use detail::ErrorDetail;
pub use detail::without_places;

use crate::catalog::ListKind;
use bytes::Bytes;
use signalbox_wire::{Era, RawId, Revision, builder, codes, json};

/// Party that caused a fault.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Owner {
    /// The client, by a request that cannot be served.
    Client,
    /// The backend, which failed.
    Backend,
    /// The gateway itself, which refused or failed.
    Us,
}

/// Kinds of fault. Each has one code per era, one reason, one HTTP status.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum FaultKind {
    /// The message is not JSON.
    Parse,
    /// The message is JSON but not a JSON-RPC message.
    InvalidRequest,
    /// The method is not served.
    MethodNotFound,
    /// The parameters do not fit the method.
    InvalidParams,
    /// The arguments of a call do not fit the schema of the tool.
    InvalidArguments,
    /// A message of the governed dialect lacks members; `data.fields` names them.
    MissingFields,
    /// A message of the governed dialect makes a false claim about its sender.
    InvalidSecurityContext,
    /// The tool has another version than the requested one.
    WrongToolVersion,
    /// The gateway knows the request, but does not serve it in this version.
    NotServed,
    /// No tool has this name.
    UnknownTool,
    /// No prompt has this name.
    UnknownPrompt,
    /// No resource has this URI.
    ResourceNotFound,
    /// A request came before the session was initialised.
    NotInitialized,
    /// The session has ended.
    SessionClosed,
    /// An id that is still in flight was used again.
    DuplicateId,
    /// A header is missing or disagrees with the body.
    HeaderMismatch,
    /// The revision is not supported.
    UnsupportedVersion,
    /// The backend needs a capability that the client did not declare.
    MissingCapability,
    /// The connection to the backend ended while it worked on the call.
    BackendDied,
    /// The backend cannot be reached or started.
    BackendDown,
    /// The backend's circuit breaker is open.
    BreakerOpen,
    /// The backend is running, but does not speak the era it was addressed in.
    EraRefused,
    /// The backend sent an invalid answer.
    BackendGarbage,
    /// The backend refused this one request, or its answer is too large, which says nothing about other requests.
    /// Clients get the same error as for [`Self::BackendGarbage`].
    BackendRefused,
    /// The backend did not answer in time.
    TimedOut,
    /// A limit of the gateway is reached.
    Overloaded,
    /// The caller, the tool or all callers together reached a rate limit; `data.retryAfter` says when to retry.
    RateLimited,
    /// Both sides work, but their revisions do not share this feature.
    NotBridged,
    /// The backend requires the caller to sign in first; `data.url` is the address to open.
    SignInNeeded,
    /// Like [`FaultKind::SignInNeeded`] for a client of 2025-11-25, whose revision has an error of its own with the
    /// addresses in `data.elicitations`.
    UrlElicitationRequired,
    /// An interceptor refused the call.
    Refused,
    /// The caller did not authenticate, or its credential is not valid.
    Unauthenticated,
    /// The caller's token lacks the required scopes.
    InsufficientScope,
    /// The caller may know of this operation but not use it; the message says why.
    Denied,
    /// The tool, the backend or the caller is switched off.
    Killed,
    /// The tool, the backend or the caller is in quarantine until an operator reviews it.
    Quarantined,
    /// The message's signature is missing or invalid; the word says why.
    Signature(&'static str),
    /// The time limit of a hold passed without a decision.
    HoldExpired,
    /// The gateway is shutting down.
    Draining,
    /// The message could not be recorded, and must not pass unrecorded.
    NotRecorded,
    /// The gateway has a bug.
    Internal,
}

/// A fault with its sentence for people and the extra members of `error.data`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Kind of the fault.
    pub kind: FaultKind,
    /// Sentence that names the problem and its place.
    pub message: String,
    /// Extra members for `error.data`, as (name, raw JSON).
    pub data: Vec<(&'static str, Bytes)>,
}

impl Fault {
    /// Creates a fault without extra data.
    #[must_use]
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), data: Vec::new() }
    }

    /// Returns the answer for an unknown name or URI. A caller that may not know of an entry gets the same.
    #[must_use]
    pub fn unknown(kind: ListKind, asked: &str) -> Self {
        let short: String = asked.chars().take(200).collect();
        match kind {
            ListKind::Tools => Self::new(FaultKind::UnknownTool, format!("Unknown tool: {short}")),
            ListKind::Prompts => Self::new(FaultKind::UnknownPrompt, format!("Unknown prompt: {short}")),
            ListKind::Resources | ListKind::Templates => {
                Self::new(FaultKind::ResourceNotFound, format!("Resource not found: {short}")).with_str("uri", asked)
            }
        }
    }

    /// Returns the answer for an unknown method. A caller that may not use a method of a backend gets the same.
    #[must_use]
    pub fn no_method(name: &str) -> Self {
        let short: String = name.chars().take(200).collect();
        Self::new(FaultKind::MethodNotFound, format!("Method not found: {short}"))
    }

    /// Adds a string member to `error.data`.
    #[must_use]
    pub fn with_str(mut self, name: &'static str, value: &str) -> Self {
        self.data.push((name, Bytes::from(json::quote(value))));
        self
    }

    /// Adds a raw JSON member to `error.data`.
    #[must_use]
    pub fn with_raw(mut self, name: &'static str, value: impl Into<Bytes>) -> Self {
        self.data.push((name, value.into()));
        self
    }

    /// Returns the party that caused the fault.
    #[must_use]
    pub fn owner(&self) -> Owner {
        use FaultKind as K;
        match self.kind {
            K::BackendDied | K::BackendDown | K::EraRefused | K::BackendGarbage | K::BackendRefused | K::TimedOut => {
                Owner::Backend
            }
            K::BreakerOpen
            | K::Overloaded
            | K::RateLimited
            | K::Refused
            | K::Killed
            | K::Quarantined
            | K::HoldExpired
            | K::Draining
            | K::NotRecorded
            | K::Internal
            | K::NotServed
            | K::NotBridged => Owner::Us,
            _ => Owner::Client,
        }
    }

    /// Returns true if the request certainly has not run, and may succeed later.
    #[must_use]
    pub fn retry(&self) -> bool {
        use FaultKind as K;
        matches!(self.kind, K::BackendDown | K::BreakerOpen | K::Overloaded | K::RateLimited | K::Draining)
    }

    /// Returns the error code in this era. The new revision reserves the range of the old codes.
    #[must_use]
    pub fn code(&self, era: Era) -> i64 {
        use FaultKind as K;
        match (self.kind, era) {
            (K::Parse, _) => codes::PARSE_ERROR,
            (K::InvalidRequest | K::DuplicateId, _) => codes::INVALID_REQUEST,
            (K::MethodNotFound | K::NotBridged | K::NotServed, _) => codes::METHOD_NOT_FOUND,
            (
                K::InvalidParams
                | K::InvalidArguments
                | K::MissingFields
                | K::WrongToolVersion
                | K::UnknownTool
                | K::UnknownPrompt,
                _,
            )
            | (K::ResourceNotFound, Era::Modern) => codes::INVALID_PARAMS,
            (K::ResourceNotFound, Era::Legacy) => codes::RESOURCE_NOT_FOUND,
            (K::NotInitialized, Era::Legacy) => codes::NOT_INITIALIZED,
            (K::NotInitialized | K::SessionClosed, Era::Modern) => codes::INVALID_REQUEST,
            (K::HeaderMismatch, _) => codes::HEADER_MISMATCH,
            (K::MissingCapability, Era::Modern) => codes::MISSING_CAPABILITY,
            (K::MissingCapability, Era::Legacy) => codes::INVALID_REQUEST,
            (K::UnsupportedVersion, _) => codes::UNSUPPORTED_VERSION,
            (K::Internal | K::NotRecorded, _) => codes::INTERNAL_ERROR,
            (K::BackendDied | K::BackendGarbage | K::BackendRefused, Era::Modern) => codes::BACKEND_DIED,
            (K::BackendDown | K::BreakerOpen | K::EraRefused | K::Draining, Era::Modern) => codes::BREAKER_OPEN,
            (K::BreakerOpen, Era::Legacy) => codes::LEGACY_BREAKER_OPEN,
            (K::TimedOut, Era::Modern) => codes::TIMED_OUT,
            (K::Overloaded | K::RateLimited, Era::Modern) => codes::LIMITED,
            (K::RateLimited, Era::Legacy) => codes::LEGACY_LIMITED,
            (
                K::Refused | K::Signature(_) | K::InsufficientScope | K::InvalidSecurityContext | K::Denied,
                Era::Modern,
            ) => codes::DENIED,
            (K::Unauthenticated, Era::Modern) => codes::UNAUTHENTICATED,
            (K::Unauthenticated, Era::Legacy) => codes::LEGACY_UNAUTHENTICATED,
            (K::InsufficientScope | K::InvalidSecurityContext | K::Denied, Era::Legacy) => codes::LEGACY_DENIED,
            (K::Killed, Era::Modern) => codes::KILLED,
            (K::Quarantined, Era::Modern) => codes::QUARANTINED,
            (K::Killed | K::Quarantined, Era::Legacy) => codes::LEGACY_KILLED,
            (K::SignInNeeded, Era::Modern) => codes::UNAUTHENTICATED,
            (K::UrlElicitationRequired, _) => codes::URL_ELICITATION_REQUIRED,
            (K::HoldExpired, Era::Modern) => codes::HOLD_EXPIRED,
            (_, Era::Legacy) => codes::LEGACY_SERVER_ERROR,
        }
    }

    /// Returns a stable word for programs: `error.data.reason`, metrics and logs.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        use FaultKind as K;
        match self.kind {
            K::Parse => "parse_error",
            K::InvalidRequest => "invalid_request",
            K::MethodNotFound => "method_not_found",
            K::InvalidParams => "invalid_params",
            K::InvalidArguments => "invalid_arguments",
            K::MissingFields => "missing_fields",
            K::InvalidSecurityContext => "invalid_security_context",
            K::WrongToolVersion => "wrong_tool_version",
            K::NotServed => "not_served",
            K::UnknownTool => "unknown_tool",
            K::UnknownPrompt => "unknown_prompt",
            K::ResourceNotFound => "resource_not_found",
            K::NotInitialized => "not_initialized",
            K::SessionClosed => "session_closed",
            K::DuplicateId => "duplicate_id",
            K::HeaderMismatch => "header_mismatch",
            K::UnsupportedVersion => "unsupported_version",
            K::MissingCapability => "missing_capability",
            K::BackendDied => "backend_died",
            K::BackendDown => "backend_down",
            K::BreakerOpen => "breaker_open",
            K::EraRefused => "era_refused",
            K::BackendGarbage | K::BackendRefused => "backend_garbage",
            K::TimedOut => "timed_out",
            K::Overloaded => "overloaded",
            K::RateLimited => "rate_limited",
            K::NotBridged => "not_bridged",
            K::SignInNeeded | K::UrlElicitationRequired => "sign_in_needed",
            K::Refused => "refused",
            K::Unauthenticated => "unauthenticated",
            K::InsufficientScope => "insufficient_scope",
            K::Denied => "denied",
            K::Killed => "killed",
            K::Quarantined => "quarantined",
            K::Signature(reason) => reason,
            K::HoldExpired => "hold_expired",
            K::Draining => "draining",
            K::NotRecorded => "not_recorded",
            K::Internal => "internal",
        }
    }

    /// Returns the HTTP status of a JSON answer that carries this fault. In the old revisions it is 200, because there
    /// a 404 means that the session is gone.
    #[must_use]
    pub fn http_status(&self, era: Era) -> u16 {
        use FaultKind as K;
        match (self.kind, era) {
            (K::Parse | K::InvalidRequest, _) => 400,
            (K::Unauthenticated, _) => 401,
            (K::InsufficientScope, _) => 403,
            (_, Era::Legacy) => 200,
            (K::HeaderMismatch | K::UnsupportedVersion | K::MissingCapability | K::InvalidParams, Era::Modern)
            | (K::InvalidArguments, Era::Modern) => 400,
            (K::MethodNotFound | K::NotBridged, Era::Modern) => 404,
            (_, Era::Modern) => 200,
        }
    }

    /// Builds the result of a tool call in which revisions since 2025-11-25 tell the model that its arguments are
    /// wrong; `None` for faults that are errors of the protocol.
    #[must_use]
    pub fn tool_result(&self, id: &RawId, revision: Revision, server_info: &str) -> Option<Bytes> {
        if self.kind != FaultKind::InvalidArguments || !revision.argument_errors_in_result() {
            return None;
        }
        let text = json::quote(&self.message);
        let more = match revision.result_type() {
            true => {
                format!(r#","resultType":"complete","_meta":{{"io.modelcontextprotocol/serverInfo":{server_info}}}"#)
            }
            false => String::new(),
        };
        let result = format!(r#"{{"content":[{{"type":"text","text":{text}}}],"isError":true{more}}}"#);
        Some(builder::response(id, result.as_bytes()))
    }

    /// Builds the error on the wire. Besides [`Fault::tool_result`], no function turns a fault into bytes.
    #[must_use]
    pub fn reply(&self, id: Option<&RawId>, era: Era) -> Bytes {
        let mut data = Vec::with_capacity(64);
        data.extend_from_slice(b"{\"reason\":\"");
        data.extend_from_slice(self.reason().as_bytes());
        data.push(b'"');
        for (name, value) in &self.data {
            data.push(b',');
            json::write_quoted(&mut data, name);
            data.push(b':');
            data.extend_from_slice(value);
        }
        data.push(b'}');
        builder::error(id, self.code(era), &self.message, Some(&data))
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_has_the_code_of_its_era_and_always_a_reason() {
        let fault = Fault::new(FaultKind::BackendDied, "backend `a` ended").with_str("backend", "a");
        let id = RawId::string("x");
        let old = String::from_utf8(fault.reply(Some(&id), Era::Legacy).to_vec()).unwrap();
        assert_eq!(
            old,
            r#"{"jsonrpc":"2.0","id":"x","error":{"code":-32000,"message":"backend `a` ended","data":{"reason":"backend_died","backend":"a"}}}"#
        );
        assert_eq!(fault.code(Era::Modern), 5020);
        assert_eq!(fault.owner(), Owner::Backend);
        assert!(!fault.retry());
    }

    /// Revisions before 2025-11-25 have an error for wrong arguments; later ones let the model read of them.
    #[test]
    fn wrong_arguments_are_told_in_the_form_of_the_revision() {
        let id = RawId::string("x");
        let wrong = Fault::new(FaultKind::InvalidArguments, "`n`: expected an integer");
        let text = r#""content":[{"type":"text","text":"`n`: expected an integer"}],"isError":true"#;
        for (revision, told) in [
            (Revision::V2025_06_18, None),
            (Revision::V2025_11_25, Some(format!(r#"{{"jsonrpc":"2.0","id":"x","result":{{{text}}}}}"#))),
            (
                Revision::V2026_07_28,
                Some(format!(
                    r#"{{"jsonrpc":"2.0","id":"x","result":{{{text},"resultType":"complete","_meta":{{"io.modelcontextprotocol/serverInfo":{{}}}}}}}}"#
                )),
            ),
        ] {
            let result = wrong.tool_result(&id, revision, "{}");
            assert_eq!(result.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap()), told, "{revision}");
        }
        assert_eq!((wrong.code(Era::Legacy), wrong.reason()), (-32602, "invalid_arguments"));
        assert_eq!(Fault::new(FaultKind::Denied, "no").tool_result(&id, Revision::V2025_11_25, "{}"), None);
    }

    #[test]
    fn the_new_revision_never_sees_a_code_of_the_old_range() {
        use FaultKind as K;
        for kind in [
            K::NotInitialized,
            K::SessionClosed,
            K::ResourceNotFound,
            K::TimedOut,
            K::BreakerOpen,
            K::Overloaded,
            K::RateLimited,
            K::Refused,
            K::Unauthenticated,
            K::InsufficientScope,
            K::Denied,
            K::Killed,
            K::Quarantined,
            K::HoldExpired,
            K::Draining,
        ] {
            let code = Fault::new(kind, "").code(Era::Modern);
            assert!(!(-32019..=-32000).contains(&code), "{kind:?} gives {code}");
        }
    }
}
