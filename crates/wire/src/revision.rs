//! Revisions of the protocol and their features.

use std::fmt;

/// Published revision, ordered from the oldest.
#[allow(missing_docs, reason = "each variant is the date in its name")]
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

/// Interaction style of a revision.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Era {
    /// Initialised sessions in which both sides can send requests.
    Legacy,
    /// Stateless, self-contained requests, sent by clients only.
    Modern,
}

use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

impl Revision {
    /// All revisions, oldest first.
    pub const ALL: [Self; 5] = [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28];
    /// Newest revision with sessions. Offered to a client that requests an unknown revision.
    pub const LATEST_LEGACY: Self = V2025_11_25;
    /// Newest revision of all.
    pub const LATEST: Self = V2026_07_28;
    /// Revision assumed for an HTTP request of a session that names none.
    pub const ASSUMED: Self = V2025_03_26;

    /// Parses a revision's name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    /// Returns the revision's name on the wire.
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

    /// Returns the interaction style of the revision.
    #[must_use]
    pub const fn era(self) -> Era {
        match self {
            V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// Returns `true` if a body or line may be an array of messages.
    #[must_use]
    pub fn batches(self) -> bool {
        self == V2025_03_26
    }

    /// Returns `true` if HTTP uses one endpoint rather than an SSE stream and a separate POST address.
    #[must_use]
    pub fn streamable_http(self) -> bool {
        self >= V2025_03_26
    }

    /// Returns `true` if HTTP requests belong to a session named by `Mcp-Session-Id`.
    #[must_use]
    pub fn session_header(self) -> bool {
        self >= V2025_03_26 && self.era() == Era::Legacy
    }

    /// Returns `true` if `Last-Event-ID` can resume a broken SSE stream.
    #[must_use]
    pub fn resumable(self) -> bool {
        self.session_header()
    }

    /// Returns `true` if `MCP-Protocol-Version` is required, after initialisation if there is one.
    #[must_use]
    pub fn protocol_header(self) -> bool {
        self >= V2025_06_18
    }

    /// Returns `true` if `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` are required.
    #[must_use]
    pub fn routing_headers(self) -> bool {
        self >= V2026_07_28
    }

    /// Returns `true` if an SSE stream starts with an event that has an id and no data.
    #[must_use]
    pub fn priming_event(self) -> bool {
        self == V2025_11_25
    }

    /// Returns `true` if closing the response stream cancels its request.
    #[must_use]
    pub fn disconnect_cancels(self) -> bool {
        self.era() == Era::Modern
    }

    /// Returns `true` if the server may send requests.
    #[must_use]
    pub fn server_requests(self) -> bool {
        self.era() == Era::Legacy
    }

    /// Returns `true` if `elicitation/create` exists, as a request or as an input request.
    #[must_use]
    pub fn elicitation(self) -> bool {
        self >= V2025_06_18
    }

    /// Returns `true` if elicitation by URL exists.
    #[must_use]
    pub fn url_elicitation(self) -> bool {
        self >= V2025_11_25
    }

    /// Returns `true` if sampling may use tools.
    #[must_use]
    pub fn sampling_tools(self) -> bool {
        self >= V2025_11_25
    }

    /// Returns `true` if tool results have `structuredContent`, and tools an `outputSchema`.
    #[must_use]
    pub fn structured_content(self) -> bool {
        self >= V2025_06_18
    }

    /// Returns `true` if `structuredContent` may be any value rather than an object.
    #[must_use]
    pub fn any_structured_content(self) -> bool {
        self >= V2026_07_28
    }

    /// Returns `true` if audio content exists.
    #[must_use]
    pub fn audio(self) -> bool {
        self >= V2025_03_26
    }

    /// Returns `true` if `resource_link` content exists.
    #[must_use]
    pub fn resource_links(self) -> bool {
        self >= V2025_06_18
    }

    /// Returns `true` if tools, prompts, resources and implementations have a `title`.
    #[must_use]
    pub fn titles(self) -> bool {
        self >= V2025_06_18
    }

    /// Returns `true` if tools, prompts, resources and implementations have `icons`.
    #[must_use]
    pub fn icons(self) -> bool {
        self >= V2025_11_25
    }

    /// Returns `true` if tools have `annotations`.
    #[must_use]
    pub fn tool_annotations(self) -> bool {
        self >= V2025_03_26
    }

    /// Returns `true` if `capabilities.completions` exists.
    #[must_use]
    pub fn completions_capability(self) -> bool {
        self >= V2025_03_26
    }

    /// Returns `true` if completion requests have a `context`.
    #[must_use]
    pub fn completion_context(self) -> bool {
        self >= V2025_06_18
    }

    /// Returns `true` if progress notifications have a `message`.
    #[must_use]
    pub fn progress_message(self) -> bool {
        self >= V2025_03_26
    }

    /// Returns `true` if tasks are part of the core, in their first form.
    #[must_use]
    pub fn tasks_core(self) -> bool {
        self == V2025_11_25
    }

    /// Returns `true` if tasks are an extension, in their second form.
    #[must_use]
    pub fn tasks_extension(self) -> bool {
        self >= V2026_07_28
    }

    /// Returns `true` if every request carries version, client and capabilities in `_meta`.
    #[must_use]
    pub fn request_meta(self) -> bool {
        self >= V2026_07_28
    }

    /// Returns `true` if every result has a `resultType`.
    #[must_use]
    pub fn result_type(self) -> bool {
        self >= V2026_07_28
    }

    /// Returns `true` if lists and resources carry cache hints (`ttlMs`, `cacheScope`).
    #[must_use]
    pub fn cache_hints(self) -> bool {
        self >= V2026_07_28
    }

    /// Returns `true` if invalid tool arguments are reported to the model in a result rather than as a protocol error.
    #[must_use]
    pub fn argument_errors_in_result(self) -> bool {
        self >= V2025_11_25
    }

    /// Returns `true` if an unknown method is answered with HTTP status 404.
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
