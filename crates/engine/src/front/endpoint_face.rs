//! Presentation of the gateway on secondary endpoints.

use super::FrontMachine;
use crate::caller::Principal;
use crate::catalog::Offer;

/// Presentation of an endpoint that stands for a server of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndpointFace {
    /// The `serverInfo` object shown to clients.
    pub server_info: String,
    /// Capabilities offered, whatever the backends turn out to have.
    pub offer: Offer,
    /// True if a client may call as soon as `initialize` is answered, as clients older than that rule do.
    pub eager: bool,
    /// True if callers need no authentication here even where others do, because the endpoint has its own access
    /// control.
    pub open: bool,
}

impl EndpointFace {
    /// Returns the face of a server that offers only tools.
    #[must_use]
    pub fn of_tools(name: &str, version: &str) -> Self {
        let quote = signalbox_wire::json::quote;
        let server_info = format!(r#"{{"name":{},"version":{}}}"#, quote(name), quote(version));
        Self { server_info, offer: Offer { tools: true, ..Offer::default() }, eager: false, open: false }
    }
}

impl FrontMachine {
    /// Makes the session act for a principal other than its caller, such as one of the caller's secondary endpoints.
    #[must_use]
    pub fn acting_for(self, principal: Principal) -> Self {
        Self { principal, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves C-3.
    #[test]
    fn a_server_with_tools_is_shown_by_its_name() {
        let face = EndpointFace::of_tools("codap-mcp-server", "1.0.0");
        assert_eq!(face.server_info, r#"{"name":"codap-mcp-server","version":"1.0.0"}"#);
        assert!(face.offer.tools && !face.offer.prompts && !face.offer.resources && !face.offer.logging);
    }
}
