//! The authorization server of the gateway itself: the table `auth.server`.

use super::backend::bad;
use super::error::{ConfigError, Problem};
use super::read::Table;
use signalbox_oauth::web_address::WebAddress;
use std::time::Duration;

/// The first part of the principals of local users.
pub const LOCAL_USERS: &str = "user";

/// The settings of the authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthServer {
    /// Its address, if it was given: the origin under which clients and browsers reach the gateway.
    pub issuer: Option<String>,
    /// Whether clients may register themselves.
    pub registration: bool,
    /// How long an access token is good.
    pub access_lifetime: Duration,
    /// How long a refresh token is good that nobody uses.
    pub refresh_lifetime: Duration,
}

/// Check the table. `None` where the server is off.
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
        access_lifetime: table.duration("access_lifetime")?,
        refresh_lifetime: table.duration("refresh_lifetime")?,
    };
    Ok(table.flag("enabled")?.then_some(server))
}

/// The names of issuers under `auth.jwt` must not be those of local users.
pub(super) fn check_names(jwt: &Table<'_>, server: Option<&AuthServer>) -> Result<(), ConfigError> {
    match server.is_some() && jwt.has(LOCAL_USERS) {
        true => {
            let problem = Problem::BadHiddenValue("another name: `user` is that of the users of `auth.server`");
            Err(jwt.key_error(LOCAL_USERS, problem))
        }
        false => Ok(()),
    }
}

/// An origin as clients compare it, by https or on this machine.
fn is_issuer(text: &str) -> bool {
    let host = text.strip_prefix("http://").map(|rest| rest.rsplit_once(':').map_or(rest, |(host, _)| host));
    let local = host.is_some_and(|host| matches!(host, "127.0.0.1" | "localhost" | "[::1]"));
    let secure = text.starts_with("https://");
    (local || secure) && WebAddress::read(text).is_some_and(|address| address.origin == text)
}

#[cfg(test)]
mod tests {
    use crate::{Config, Overrides};
    use std::path::Path;

    fn load(text: &str) -> Result<crate::Auth, String> {
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        let loaded = Config::parse(Path::new("a.toml"), text, &env, &Overrides::default());
        loaded.map(|loaded| loaded.config.auth).map_err(|error| error.to_string())
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
            let error = load(&format!("[auth.server]\nissuer = '{bad}'")).unwrap_err();
            assert!(error.contains("an https address without a path"), "{bad}: {error}");
        }
    }

    #[test]
    fn no_other_issuer_makes_principals_like_those_of_local_users() {
        let jwt = "[auth.jwt.user]\nissuer = 'https://idp.example'\njwks_url = 'https://idp.example/keys'\n";
        assert!(load(jwt).is_ok());
        let error = load(&format!("{jwt}[auth.server]\nenabled = true")).unwrap_err();
        assert!(error.contains("auth.jwt.user") && error.contains("another name"), "{error}");
    }
}
