//! Reads the table `auth.server`: the gateway's own authorization server.

use super::error::{ConfigError, Problem};
use super::read::Table;
use super::values::bad;
use signalbox_oauth_client::SecretText;
use signalbox_oauth_client::web_address::WebAddress;
use std::time::Duration;

/// First part of the principals of local users.
pub const LOCAL_USERS: &str = "user";

/// Settings of the authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthServer {
    /// Origin under which clients and browsers reach the gateway, if configured.
    pub issuer: Option<String>,
    /// `true` if clients may register themselves.
    pub registration: bool,
    /// `true` if a client may identify itself by the address of its metadata document.
    pub client_documents: bool,
    /// Lifetime of an access token.
    pub access_lifetime: Duration,
    /// Interval at which the signing key is replaced, or `None` to keep it.
    pub key_lifetime: Option<Duration>,
    /// Lifetime of a refresh token that is not used.
    pub refresh_lifetime: Duration,
    /// OpenID provider at which people may sign in.
    pub openid: Option<OpenIdProvider>,
}

/// OpenID provider at which people sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenIdProvider {
    /// Value that `iss` must equal.
    pub issuer: String,
    /// The gateway's `client_id` at the provider.
    pub client_id: String,
    /// The gateway's client secret at the provider.
    pub secret: Option<SecretText>,
    /// Name of the provider on the sign-in page.
    pub name: String,
    /// Scopes that are requested besides `openid`.
    pub scopes: Vec<String>,
    /// Claim that names the person.
    pub subject_claim: String,
    /// Claims that hold groups.
    pub group_claims: Vec<String>,
}

/// Checks the table. Returns `None` if the server is off.
pub(super) fn check(table: &Table<'_>) -> Result<Option<AuthServer>, ConfigError> {
    let issuer = table.text("issuer")?;
    if let Some(text) = issuer.as_ref().filter(|text| !is_issuer(&text.value)) {
        return Err(bad(
            table,
            text,
            "an https address without a path, such as `https://box.example`, or one of loopback",
        ));
    }
    let server = AuthServer {
        issuer: issuer.map(|text| text.value),
        registration: table.flag("registration")?,
        client_documents: table.flag("client_documents")?,
        access_lifetime: table.duration("access_lifetime")?,
        key_lifetime: table.seconds("key_lifetime")?,
        refresh_lifetime: table.duration("refresh_lifetime")?,
        openid: openid(&table.table("openid")?)?,
    };
    if server.key_lifetime.is_some_and(|lifetime| lifetime < server.access_lifetime) {
        return Err(
            table.key_error("key_lifetime", Problem::BadHiddenValue("a time not shorter than `access_lifetime`"))
        );
    }
    Ok(table.flag("enabled")?.then_some(server))
}

fn openid(table: &Table<'_>) -> Result<Option<OpenIdProvider>, ConfigError> {
    if table.entries.is_empty() {
        return Ok(None);
    }
    let given = |key: &str| Ok::<_, ConfigError>(table.text(key)?.filter(|text| !text.value.is_empty()));
    let (Some(issuer), Some(client_id)) = (given("issuer")?, given("client_id")?) else {
        return Err(table.error(Problem::Needs("an `issuer` and a `client_id`")));
    };
    let Some(address) = WebAddress::read(&issuer.value) else {
        return Err(bad(table, &issuer, "an https address"));
    };
    let secret = match given("client_secret_env")? {
        None => None,
        Some(text) => {
            let unset = Problem::BadHiddenValue("the name of a variable that is set in the environment");
            let secret = (table.document.env)(&text.value).filter(|secret| !secret.is_empty());
            Some(SecretText::new(secret.ok_or_else(|| table.key_error("client_secret_env", unset))?))
        }
    };
    let host = address.origin.split_once("://").map(|(_, host)| host.to_owned()).unwrap_or_default();
    let values =
        |key: &str| Ok::<Vec<String>, ConfigError>(table.texts(key)?.into_iter().map(|one| one.value).collect());
    let groups = if table.has("group_claims") { values("group_claims")? } else { vec!["groups".to_owned()] };
    Ok(Some(OpenIdProvider {
        issuer: issuer.value,
        client_id: client_id.value,
        secret,
        name: given("name")?.map_or(host, |text| text.value),
        scopes: values("scopes")?,
        subject_claim: given("subject_claim")?.map_or_else(|| "sub".to_owned(), |text| text.value),
        group_claims: groups,
    }))
}

/// First parts of the principals that other proofs create: local users, owners of pipes, certificates and API keys.
const RESERVED: [&str; 4] = [LOCAL_USERS, "local", "cert", "key"];

/// Refuses issuer names under `auth.jwt` that collide with another proof: the name is the first part of the issuer's
/// principals.
pub(super) fn check_names(jwt: &Table<'_>) -> Result<(), ConfigError> {
    for entry in jwt.entries {
        let name = entry.key.as_str();
        if RESERVED.contains(&name) || name.is_empty() || name.contains(':') {
            let wanted = "another name: that of an issuer has no `:`, is not empty, and is not `user`, `local`, `cert` or \
                          `key`, which begin the principals of other proofs";
            return Err(jwt.key_error(name, Problem::BadHiddenValue(wanted)));
        }
    }
    Ok(())
}

/// Returns `true` for an origin as clients compare it: https, or http on this machine.
fn is_issuer(text: &str) -> bool {
    let host = text.strip_prefix("http://").map(|rest| rest.rsplit_once(':').map_or(rest, |(host, _)| host));
    let local = host.is_some_and(|host| matches!(host, "127.0.0.1" | "localhost" | "[::1]"));
    let secure = text.starts_with("https://");
    (local || secure) && WebAddress::read(text).is_some_and(|address| address.origin == text)
}

#[cfg(test)]
mod tests {
    use crate::{Config, ConfigError, Overrides};
    use std::path::Path;

    fn load(text: &str) -> Result<crate::Auth, ConfigError> {
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        let loaded = Config::parse(Path::new("a.toml"), text, &env, &Overrides::default());
        loaded.map(|loaded| loaded.config.auth)
    }

    #[test]
    fn the_server_is_off_unless_the_file_says_so() {
        assert_eq!(load("").unwrap().server, None);
        assert_eq!(load("[auth.server]\nissuer = 'https://box.example'").unwrap().server, None);
        let server = load("[auth.server]\nenabled = true").unwrap().server.unwrap();
        assert!(server.registration && server.issuer.is_none());
        assert_eq!((server.access_lifetime.as_secs(), server.refresh_lifetime.as_secs()), (600, 30 * 24 * 3_600));
    }

    #[test]
    fn an_issuer_is_an_origin_by_tls_or_on_this_machine() {
        for good in ["https://box.example", "https://box.example:8443", "http://127.0.0.1:8080", "http://localhost:1"] {
            assert!(load(&format!("[auth.server]\nissuer = '{good}'")).is_ok(), "{good}");
        }
        for bad in [
            "https://box.example/",
            "https://box.example/auth",
            "https://BOX.example",
            "https://box.example:443",
            "http://box.example",
            "http://127.0.0.1.evil.example",
            "box.example",
            "https://a@box.example",
        ] {
            let error = load(&format!("[auth.server]\nissuer = '{bad}'")).unwrap_err().to_string();
            assert!(error.contains("an https address without a path"), "{bad}: {error}");
        }
    }

    #[test]
    fn a_provider_needs_an_issuer_and_a_client_id() {
        let text = "[auth.server]\nenabled = true\n[auth.server.openid]\nissuer = 'https://idp.example/a'\n";
        assert!(load(text).unwrap_err().to_string().contains("needs an `issuer` and a `client_id`"));
        let openid = load(&format!("{text}client_id = 'box'")).unwrap().server.unwrap().openid.unwrap();
        assert_eq!((openid.name.as_str(), openid.subject_claim.as_str()), ("idp.example", "sub"));
        assert_eq!((openid.group_claims, openid.secret), (vec!["groups".to_owned()], None));
        let unset = load(&format!("{text}client_id = 'box'\nclient_secret_env = 'NONE'")).unwrap_err().to_string();
        assert!(unset.contains("set in the environment"), "{unset}");
    }

    /// A token of an issuer called `local` was the owner of the pipe.
    #[test]
    fn no_issuer_makes_principals_like_those_of_other_proofs() {
        let jwt = |name: &str| {
            load(&format!("[auth.jwt.{name}]\nissuer = 'https://idp.example'\njwks_url = 'https://idp.example/keys'\n"))
        };
        assert!(jwt("corp").is_ok());
        for name in ["user", "local", "cert", "key", "'user:openid'", "'a:b'", "''"] {
            let error = jwt(name).unwrap_err().to_string();
            assert!(error.contains("auth.jwt.") && error.contains("another name"), "{name}: {error}");
        }
    }
}
