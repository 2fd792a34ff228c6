//! What clients find out by themselves: the metadata of RFC 8414, and where each part of the server is.

use crate::reply::Reply;
use crate::settings::Settings;
use serde_json::json;

/// Where the metadata is.
pub const WELL_KNOWN: &str = "/.well-known/oauth-authorization-server";
/// Where browsers are sent first.
pub const AUTHORIZE: &str = "/auth/authorize";
/// Where a person gives a name and a password.
pub const SIGN_IN: &str = "/auth/sign-in";
/// Where a person says yes or no.
pub const CONSENT: &str = "/auth/consent";
/// Where the provider sends people back to.
pub const OPENID: &str = "/auth/openid";
/// Where clients get tokens.
pub const TOKEN: &str = "/auth/token";
/// Where clients register themselves.
pub const REGISTER: &str = "/auth/register";
/// Where tokens are revoked.
pub const REVOKE: &str = "/auth/revoke";
/// The public key.
pub const JWKS: &str = "/auth/jwks";

/// The metadata document.
pub(crate) fn document(settings: &Settings) -> Reply {
    let at = |path: &str| format!("{}{path}", settings.issuer);
    let mut document = json!({
        "issuer": settings.issuer,
        "authorization_endpoint": at(AUTHORIZE),
        "token_endpoint": at(TOKEN),
        "revocation_endpoint": at(REVOKE),
        "jwks_uri": at(JWKS),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "client_id_metadata_document_supported": settings.client_documents,
        "authorization_response_iss_parameter_supported": true,
    });
    if let Some(members) = document.as_object_mut() {
        if settings.registration {
            members.insert("registration_endpoint".to_owned(), json!(at(REGISTER)));
        }
        if !settings.scopes.is_empty() {
            members.insert("scopes_supported".to_owned(), json!(settings.scopes));
        }
    }
    Reply::document(&document)
}
