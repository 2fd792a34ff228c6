//! The gateway as an OAuth 2.1 resource server: its metadata (RFC 9728) and its challenges (RFC 6750).

use serde_json::json;
use signalbox_engine::authenticator::Challenge;
use signalbox_engine::resource_address::{RequestAddress, ResourceAddress};
use std::fmt::Write as _;

/// Prefix of the path of resource metadata, before the path of the resource.
pub const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The MCP endpoint as a protected resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProtectedResource {
    /// Address of the endpoint, which is also the audience of its tokens, with its variants.
    pub address: ResourceAddress,
    /// Issuers that clients get tokens from; at least one.
    pub authorization_servers: Vec<String>,
    /// Scopes that every request needs.
    pub required_scopes: Vec<String>,
    /// Scopes that clients may request.
    pub scopes_supported: Vec<String>,
    /// Documentation page for people.
    pub documentation: Option<String>,
}

impl ProtectedResource {
    /// Returns the metadata document for a variant of the resource. Omits `offline_access`, which concerns only the
    /// client and the authorization server.
    #[must_use]
    pub fn metadata(&self, resource: &str) -> String {
        let scopes: Vec<&String> = self.scopes_supported.iter().filter(|scope| *scope != "offline_access").collect();
        let mut document = json!({
            "resource": resource,
            "authorization_servers": self.authorization_servers,
            "bearer_methods_supported": ["header"],
        });
        if let Some(members) = document.as_object_mut() {
            if !scopes.is_empty() {
                members.insert("scopes_supported".to_owned(), json!(scopes));
            }
            members.extend(self.documentation.iter().map(|page| ("resource_documentation".to_owned(), json!(page))));
        }
        document.to_string()
    }
}

/// Returns the URL of the metadata of a resource.
#[must_use]
pub fn metadata_url(resource: &str) -> String {
    let after_scheme = resource.find("://").map_or(0, |at| at + 3);
    let path = resource[after_scheme..].find('/').map_or(resource.len(), |at| after_scheme + at);
    let (origin, path) = resource.split_at(path);
    format!("{origin}{WELL_KNOWN}{}", path.trim_end_matches('/'))
}

impl Challenge for ProtectedResource {
    fn header(&self, at: RequestAddress<'_>, error: Option<&str>, description: &str, scopes: &[&str]) -> String {
        let mut text = format!("Bearer resource_metadata=\"{}\"", metadata_url(&self.address.at(at)));
        if let Some(error) = error {
            let _ = write!(text, ", error=\"{}\", error_description=\"{}\"", quoted(error), quoted(description));
        }
        let mut all: Vec<&str> = self.required_scopes.iter().map(String::as_str).collect();
        all.extend(scopes);
        all.retain(|scope| *scope != "offline_access");
        all.dedup();
        if !all.is_empty() {
            let _ = write!(text, ", scope=\"{}\"", quoted(&all.join(" ")));
        }
        text
    }
}

/// Drops characters that cannot appear in a quoted string of a header.
fn quoted(text: &str) -> String {
    text.chars().filter(|c| (' '..='~').contains(c) && !matches!(c, '"' | '\\')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(url: &str) -> ProtectedResource {
        ProtectedResource {
            address: ResourceAddress::fixed(url),
            authorization_servers: vec!["https://idp.example".to_owned()],
            required_scopes: vec!["mcp".to_owned()],
            scopes_supported: vec!["mcp".to_owned(), "offline_access".to_owned()],
            documentation: None,
        }
    }

    #[test]
    fn the_metadata_names_the_resource_and_its_authorization_servers() {
        assert_eq!(
            resource("https://box.example/mcp").metadata("https://box.example/mcp"),
            r#"{"resource":"https://box.example/mcp","authorization_servers":["https://idp.example"],"bearer_methods_supported":["header"],"scopes_supported":["mcp"]}"#
        );
    }

    #[test]
    fn the_metadata_lies_at_the_well_known_place_of_the_path() {
        for (url, expected) in [
            ("https://box.example/mcp", "https://box.example/.well-known/oauth-protected-resource/mcp"),
            ("https://box.example:8443/a/b", "https://box.example:8443/.well-known/oauth-protected-resource/a/b"),
            ("https://box.example", "https://box.example/.well-known/oauth-protected-resource"),
            ("https://box.example/", "https://box.example/.well-known/oauth-protected-resource"),
        ] {
            assert_eq!(metadata_url(url), expected);
        }
    }

    #[test]
    fn a_challenge_names_all_scopes_and_never_offline_access() {
        let resource = resource("https://box.example/mcp");
        let metadata = r#"resource_metadata="https://box.example/.well-known/oauth-protected-resource/mcp""#;
        let at = RequestAddress { host: Some("box.example"), path: "/mcp" };
        assert_eq!(resource.header(at, None, "", &[]), format!(r#"Bearer {metadata}, scope="mcp""#));
        assert_eq!(
            resource.header(at, Some("insufficient_scope"), "needs\r\n \"write\"", &["files:write", "offline_access"]),
            format!(
                r#"Bearer {metadata}, error="insufficient_scope", error_description="needs write", scope="mcp files:write""#
            )
        );
    }
}
