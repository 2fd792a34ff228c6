//! What the gateway shows itself as to callers who come another way than the usual one.

use super::FrontMachine;
use crate::caller::Principal;
use crate::catalog::Offer;

/// Another face of the gateway: of an endpoint that stands for a server of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Face {
    /// The `serverInfo` object.
    pub server_info: String,
    /// What is offered, whatever is known of backends yet.
    pub offer: Offer,
    /// True where a client may call as soon as `initialize` is answered. Clients older than the rule do.
    pub eager: bool,
    /// True where callers need no proof of who they are, though others do: they have something else that lets them in.
    pub open: bool,
}

impl Face {
    /// A server that has tools and nothing else.
    #[must_use]
    pub fn of_tools(name: &str, version: &str) -> Self {
        let quote = signalbox_wire::json::quote;
        let server_info = format!(r#"{{"name":{},"version":{}}}"#, quote(name), quote(version));
        Self { server_info, offer: Offer { tools: true, ..Offer::default() }, eager: false, open: false }
    }
}

impl FrontMachine {
    /// Acts for another principal than its caller is: one of several rooms that the caller has.
    #[must_use]
    pub fn acting_for(self, principal: Principal) -> Self {
        Self { principal, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_3_a_server_with_tools_is_shown_by_its_name() {
        let face = Face::of_tools("codap-mcp-server", "1.0.0");
        assert_eq!(face.server_info, r#"{"name":"codap-mcp-server","version":"1.0.0"}"#);
        assert!(face.offer.tools && !face.offer.prompts && !face.offer.resources && !face.offer.logging);
    }
}
