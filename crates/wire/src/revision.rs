//! The revisions of the protocol and what each of them knows.

use std::fmt;

/// A published revision, oldest first.
#[allow(missing_docs, reason = "each variant is the date in its name")]
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

/// How a conversation is held.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Era {
    /// Initialised sessions, in which both sides may ask.
    Legacy,
    /// Stateless requests that carry everything; only the client asks.
    Modern,
}

use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

impl Revision {
    /// All revisions, oldest first.
    pub const ALL: [Self; 5] = [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28];
    /// The newest revision with sessions: what is offered to a client that asks for an unknown one.
    pub const LATEST_LEGACY: Self = V2025_11_25;
    /// The newest revision.
    pub const LATEST: Self = V2026_07_28;
    /// What an HTTP request of a session is taken to speak when it names no revision.
    pub const ASSUMED: Self = V2025_03_26;

    /// The revision of that name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    /// Its name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            V2024_11_05 => "2024-11-05",
            V2025_03_26 => "2025-03-26",
            V2025_06_18 => "2025-06-18",
            V2025_11_25 => "2025-11-25",
            V2026_07_28 => "2026-07-28",
        }
    }

    /// How it holds a conversation.
    #[must_use]
    pub const fn era(self) -> Era {
        match self {
            V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// Whether a body or line may be an array of messages.
    #[must_use]
    pub fn batches(self) -> bool {
        self == V2025_03_26
    }

    /// Whether HTTP means one endpoint rather than an SSE stream beside a POST address.
    #[must_use]
    pub fn streamable_http(self) -> bool {
        self >= V2025_03_26
    }

    /// Whether HTTP requests belong to a session named by `Mcp-Session-Id`.
    #[must_use]
    pub fn session_header(self) -> bool {
        self >= V2025_03_26 && self.era() == Era::Legacy
    }

    /// Whether a broken SSE stream can be taken up again by `Last-Event-ID`.
    #[must_use]
    pub fn resumable(self) -> bool {
        self.session_header()
    }

    /// Whether `MCP-Protocol-Version` is required (after initialisation, where there is one).
    #[must_use]
    pub fn protocol_header(self) -> bool {
        self >= V2025_06_18
    }

    /// Whether `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` are required.
    #[must_use]
    pub fn routing_headers(self) -> bool {
        self >= V2026_07_28
    }

    /// Whether an SSE stream begins with an event that has an id and no data.
    #[must_use]
    pub fn priming_event(self) -> bool {
        self == V2025_11_25
    }

    /// Whether a closed response stream cancels its request.
    #[must_use]
    pub fn disconnect_cancels(self) -> bool {
        self.era() == Era::Modern
    }

    /// Whether the server may send requests of its own.
    #[must_use]
    pub fn server_requests(self) -> bool {
        self.era() == Era::Legacy
    }

    /// Whether `elicitation/create` exists, as a request or as an input request.
    #[must_use]
    pub fn elicitation(self) -> bool {
        self >= V2025_06_18
    }

    /// Whether elicitation by URL exists.
    #[must_use]
    pub fn url_elicitation(self) -> bool {
        self >= V2025_11_25
    }

    /// Whether sampling may use tools.
    #[must_use]
    pub fn sampling_tools(self) -> bool {
        self >= V2025_11_25
    }

    /// Whether tool results have `structuredContent`, and tools an `outputSchema`.
    #[must_use]
    pub fn structured_content(self) -> bool {
        self >= V2025_06_18
    }

    /// Whether `structuredContent` may be any value rather than an object.
    #[must_use]
    pub fn any_structured_content(self) -> bool {
        self >= V2026_07_28
    }

    /// Whether audio content exists.
    #[must_use]
    pub fn audio(self) -> bool {
        self >= V2025_03_26
    }

    /// Whether `resource_link` content exists.
    #[must_use]
    pub fn resource_links(self) -> bool {
        self >= V2025_06_18
    }

    /// Whether tools, prompts, resources and implementations have a `title`.
    #[must_use]
    pub fn titles(self) -> bool {
        self >= V2025_06_18
    }

    /// Whether tools, prompts, resources and implementations have `icons`.
    #[must_use]
    pub fn icons(self) -> bool {
        self >= V2025_11_25
    }

    /// Whether tools have `annotations`.
    #[must_use]
    pub fn tool_annotations(self) -> bool {
        self >= V2025_03_26
    }

    /// Whether `capabilities.completions` exists.
    #[must_use]
    pub fn completions_capability(self) -> bool {
        self >= V2025_03_26
    }

    /// Whether completion requests have a `context`.
    #[must_use]
    pub fn completion_context(self) -> bool {
        self >= V2025_06_18
    }

    /// Whether progress notifications have a `message`.
    #[must_use]
    pub fn progress_message(self) -> bool {
        self >= V2025_03_26
    }

    /// Whether tasks are part of the core, in their first shape.
    #[must_use]
    pub fn tasks_core(self) -> bool {
        self == V2025_11_25
    }

    /// Whether tasks are an extension, in their second shape.
    #[must_use]
    pub fn tasks_extension(self) -> bool {
        self >= V2026_07_28
    }

    /// Whether every request carries version, client and capabilities in `_meta`.
    #[must_use]
    pub fn request_meta(self) -> bool {
        self >= V2026_07_28
    }

    /// Whether every result says its `resultType`.
    #[must_use]
    pub fn result_type(self) -> bool {
        self >= V2026_07_28
    }

    /// Whether lists and resources say how long they may be kept (`ttlMs`, `cacheScope`).
    #[must_use]
    pub fn cache_hints(self) -> bool {
        self >= V2026_07_28
    }

    /// Whether bad arguments to a tool are told to the model in a result rather than as a protocol error.
    #[must_use]
    pub fn argument_errors_in_result(self) -> bool {
        self >= V2025_11_25
    }

    /// Whether an unknown method is answered with HTTP status 404.
    #[must_use]
    pub fn unknown_method_is_not_found(self) -> bool {
        self >= V2026_07_28
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_in_order() {
        for revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.as_str()), Some(revision));
        }
        assert!(Revision::ALL.is_sorted());
        assert_eq!(Revision::parse("2025-06-19"), None);
        assert_eq!(Revision::LATEST_LEGACY.era(), Era::Legacy);
        assert_eq!(Revision::LATEST.era(), Era::Modern);
        assert_eq!(Revision::LATEST, Revision::ALL[4]);
        assert_eq!(V2025_06_18.to_string(), "2025-06-18");
    }

    /// One row per feature: y where the revision has it, oldest first.
    #[test]
    fn features_by_revision() {
        let row = |feature: fn(Revision) -> bool| Revision::ALL.map(|r| if feature(r) { 'y' } else { '-' });
        let check = |feature: fn(Revision) -> bool, expected: &str| {
            assert_eq!(row(feature).iter().collect::<String>(), expected);
        };
        check(Revision::batches, "-y---");
        check(Revision::streamable_http, "-yyyy");
        check(Revision::session_header, "-yyy-");
        check(Revision::resumable, "-yyy-");
        check(Revision::protocol_header, "--yyy");
        check(Revision::routing_headers, "----y");
        check(Revision::priming_event, "---y-");
        check(Revision::disconnect_cancels, "----y");
        check(Revision::server_requests, "yyyy-");
        check(Revision::elicitation, "--yyy");
        check(Revision::url_elicitation, "---yy");
        check(Revision::sampling_tools, "---yy");
        check(Revision::structured_content, "--yyy");
        check(Revision::any_structured_content, "----y");
        check(Revision::audio, "-yyyy");
        check(Revision::resource_links, "--yyy");
        check(Revision::titles, "--yyy");
        check(Revision::icons, "---yy");
        check(Revision::tool_annotations, "-yyyy");
        check(Revision::completions_capability, "-yyyy");
        check(Revision::completion_context, "--yyy");
        check(Revision::progress_message, "-yyyy");
        check(Revision::tasks_core, "---y-");
        check(Revision::tasks_extension, "----y");
        check(Revision::request_meta, "----y");
        check(Revision::result_type, "----y");
        check(Revision::cache_hints, "----y");
        check(Revision::argument_errors_in_result, "---yy");
        check(Revision::unknown_method_is_not_found, "----y");
    }
}
