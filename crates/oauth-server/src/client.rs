//! Clients and their redirect URIs.

use crate::reply::OauthRefusal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use signalbox_oauth_client::web_address::WebAddress;

/// Maximum number of redirect URIs per client.
pub const MAX_REDIRECTS: usize = 20;
/// Maximum length of a redirect URI, in bytes.
pub const MAX_URI: usize = 2_000;
/// Maximum length of a client's name, in characters. Longer names are truncated.
pub const MAX_NAME: usize = 100;

/// Registered client. All clients are public: PKCE takes the place of a secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Client {
    /// Random id, or the URL of its metadata document.
    pub id: String,
    /// Name that the client gives itself.
    pub name: String,
    pub redirect_uris: Vec<String>,
    /// Time of registration or of reading the document, in milliseconds since 1970.
    pub created: u64,
}

const METADATA: fn(&'static str) -> OauthRefusal = |why| OauthRefusal::new("invalid_client_metadata", why);

impl Client {
    /// Parses client metadata (RFC 7591).
    ///
    /// # Errors
    /// If it requires an unsupported feature, or a redirect URI is invalid.
    pub fn read(id: String, document: &Value, created: u64) -> Result<Self, OauthRefusal> {
        let redirect =
            OauthRefusal::new("invalid_redirect_uri", "redirect URIs are https or loopback, without a fragment");
        let uris = document.get("redirect_uris").and_then(Value::as_array).ok_or(redirect)?;
        let uris: Option<Vec<String>> = uris.iter().map(|uri| uri.as_str().map(str::to_owned)).collect();
        let uris = uris.ok_or(redirect)?;
        if uris.is_empty() || uris.len() > MAX_REDIRECTS || !uris.iter().all(|uri| is_redirect(uri)) {
            return Err(redirect);
        }
        let lists = |member: &str, word: &str| match document.get(member) {
            None | Some(Value::Null) => true,
            Some(list) => list.as_array().is_some_and(|list| list.iter().any(|one| one.as_str() == Some(word))),
        };
        if !lists("grant_types", "authorization_code") || !lists("response_types", "code") {
            return Err(METADATA("only the authorization code grant is given here"));
        }
        let name = document.get("client_name").and_then(Value::as_str).unwrap_or_default();
        let name: String = name.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect();
        let name = if name.trim().is_empty() { "An application without a name".to_owned() } else { name };
        Ok(Self { id, name, redirect_uris: uris, created })
    }

    /// Returns true if the URI exactly matches a registered one. Only the port of a loopback URI may differ, since a
    /// program takes any free one (RFC 8252).
    #[must_use]
    pub fn accepts(&self, uri: &str) -> bool {
        let same = |own: &String| *own == uri || loopback(own).is_some_and(|own| loopback(uri) == Some(own));
        is_redirect(uri) && self.redirect_uris.iter().any(same)
    }
}

/// Returns true if a URI is fit for codes at all: https or loopback.
fn is_redirect(uri: &str) -> bool {
    let plain =
        uri.len() <= MAX_URI && uri.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#' && byte != b'\\');
    let secure = || WebAddress::read(uri).is_some_and(|address| address.origin.starts_with("https://"));
    plain && (loopback(uri).is_some() || secure())
}

/// Splits a loopback URI into its host and everything after the port.
fn loopback(uri: &str) -> Option<(&str, &str)> {
    let rest = uri.strip_prefix("http://")?;
    let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let host = ["127.0.0.1", "[::1]", "localhost"].into_iter().find(|host| authority.starts_with(host))?;
    let port = authority.strip_prefix(host)?;
    let fits = port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    fits.then_some((host, rest))
}

/// Returns host and port of a redirect URI, for display.
pub(crate) fn host(uri: &str) -> String {
    let origin = WebAddress::read(uri).map(|address| address.origin).unwrap_or_default();
    origin.split_once("://").map(|(_, host)| host.to_owned()).unwrap_or(origin)
}

/// Returns the form target for a redirect URI in a content security policy. A policy cannot express IPv6 addresses, so
/// those become the scheme.
pub(crate) fn form_target(uri: &str) -> String {
    let origin = WebAddress::read(uri).map(|address| address.origin).unwrap_or_default();
    match origin.contains('[') {
        true => origin.split_once("//").map(|(scheme, _)| scheme.to_owned()).unwrap_or_default(),
        false => origin,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn client(uris: &[&str]) -> Result<Client, OauthRefusal> {
        Client::read("c".to_owned(), &json!({"client_name": "Editor", "redirect_uris": uris}), 0)
    }

    #[test]
    fn redirect_uris_match_exactly_but_for_the_port_on_loopback() {
        let editor = client(&["https://editor.example/back?a=1", "http://127.0.0.1:3000/callback", "http://[::1]/c"]);
        let editor = editor.unwrap();
        for good in [
            "https://editor.example/back?a=1",
            "http://127.0.0.1:3000/callback",
            "http://127.0.0.1:51234/callback",
            "http://127.0.0.1/callback",
            "http://[::1]:9/c",
        ] {
            assert!(editor.accepts(good), "{good}");
        }
        for bad in [
            "https://editor.example/back",
            "https://editor.example/back?a=1&b=2",
            "https://editor.example:8443/back?a=1",
            "https://editor.example/back?a=1#",
            "https://EDITOR.example/back?a=1",
            "https://editor.example.evil/back?a=1",
            "https://editor.example@evil.example/back?a=1",
            "http://editor.example/back?a=1",
            "http://127.0.0.1:3000/callback/",
            "http://127.0.0.1:3000/callback?x=1",
            "http://localhost:3000/callback",
            "http://127.0.0.1:3000@evil.example/callback",
            "http://127.0.0.1.evil.example/callback",
            "http://127.0.0.1:99999/callback",
            "https://127.0.0.1:3000/callback",
            "",
        ] {
            assert!(!editor.accepts(bad), "{bad}");
        }
    }

    #[test]
    fn codes_go_by_tls_or_stay_on_the_machine() {
        for bad in [
            "http://editor.example/back",
            "javascript:alert(1)",
            "data:text/html,x",
            "editor://back",
            "https://editor.example/#a",
            "https://me@editor.example/",
            "https://editor.example/a b",
            "https://editor.example/\n",
            "/back",
        ] {
            assert_eq!(client(&[bad]).unwrap_err().code, "invalid_redirect_uri", "{bad}");
        }
        assert!(client(&[]).is_err() && client(&["https://a.example/"; MAX_REDIRECTS + 1]).is_err());
        assert!(client(&[&format!("https://a.example/{}", "x".repeat(MAX_URI))]).is_err());
        assert_eq!(form_target("http://[::1]:9/c"), "http:");
        assert_eq!(
            (form_target("https://a.example/c"), host("https://a.example:8/c")),
            ("https://a.example".to_owned(), "a.example:8".to_owned())
        );
    }

    #[test]
    fn a_client_that_wants_another_grant_is_told_so() {
        let uris = json!(["https://a.example/back"]);
        let read = |document: Value| Client::read("c".to_owned(), &document, 0);
        let implicit = json!({"redirect_uris": uris, "response_types": ["token"]});
        assert_eq!(read(implicit).unwrap_err().code, "invalid_client_metadata");
        let machine = json!({"redirect_uris": uris, "grant_types": ["client_credentials"]});
        assert_eq!(read(machine).unwrap_err().code, "invalid_client_metadata");
        let nameless = read(json!({"redirect_uris": uris, "client_name": "\u{7}"})).unwrap();
        assert_eq!(nameless.name, "An application without a name");
    }
}
