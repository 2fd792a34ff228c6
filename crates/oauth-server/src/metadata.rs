//! Endpoints, and the metadata document of RFC 8414.

use crate::reply::Reply;
use crate::settings::ServerSettings;
use serde_json::json;

/// Path of the metadata document.
pub const WELL_KNOWN: &str = "/.well-known/oauth-authorization-server";
/// Path of the authorization endpoint.
pub const AUTHORIZE: &str = "/auth/authorize";
/// Path of the password form.
pub const SIGN_IN: &str = "/auth/sign-in";
/// Path of the consent form.
pub const CONSENT: &str = "/auth/consent";
/// Path that the provider redirects people to.
pub const OPENID: &str = "/auth/openid";
/// Path of the token endpoint.
pub const TOKEN: &str = "/auth/token";
/// Path of the registration endpoint.
pub const REGISTER: &str = "/auth/register";
/// Path of the revocation endpoint.
pub const REVOKE: &str = "/auth/revoke";
/// Path of the public keys.
pub const JWKS: &str = "/auth/jwks";

/// Builds the metadata document.
pub(crate) fn document(settings: &ServerSettings) -> Reply {
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
