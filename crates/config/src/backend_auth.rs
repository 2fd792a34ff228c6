//! Reads the table `backends.NAME.auth`: the credentials that the gateway presents to a backend.

use super::error::{ConfigError, Problem};
use super::read::Table;
use super::tls::file;
use super::values::{bad, is_ours};
use http::header::{AUTHORIZATION, HeaderMap, HeaderName};
use signalbox_oauth_client::token_exchange::{ACCESS_TOKEN, ID_TOKEN};
use signalbox_oauth_client::{
    AssertionSpec, AuthSpec, ClientSpec, ExchangeSpec, GrantType, OauthSpec, Provider, SecretSource, StaticSpec,
};
use std::collections::BTreeMap;

/// Keys that only make sense with `static`.
const STATIC_KEYS: &[&str] = &["header", "scheme", "refresh"];
/// Keys of a secret, or of a token that is exchanged.
const SECRET_KEYS: &[&str] = &["secret_env", "secret_file", "secret_command", "users"];
/// Keys that only make sense with tokens.
const OAUTH_KEYS: &[&str] = &[
    "per_user",
    "client_id",
    "client_secret_env",
    "client_secret_file",
    "client_key_file",
    "scopes",
    "issuer",
    "resource",
    "provider",
];
/// Keys that only make sense if a token is exchanged.
const EXCHANGE_KEYS: &[&str] = &[
    "exchange_url",
    "exchange_subject",
    "exchange_client_id",
    "exchange_client_secret_env",
    "exchange_token_type",
    "audience",
];

/// Checks the table of a backend, if it has one.
pub(super) fn check(backend: &Table<'_>, headers: &HeaderMap) -> Result<Option<AuthSpec>, ConfigError> {
    if !backend.has("auth") {
        return Ok(None);
    }
    let table = backend.table("auth")?;
    let kind = table.choice("type")?;
    let refuse = |keys: &[&str], belongs_to: &'static str| match keys.iter().find(|key| table.has(key)) {
        Some(key) => Err(table.key_error(key, Problem::Misplaced(belongs_to))),
        None => Ok(()),
    };
    let exchanges = matches!(kind.as_str(), "token_exchange" | "enterprise");
    if !exchanges {
        refuse(EXCHANGE_KEYS, "type = \"token_exchange\"` or `type = \"enterprise\"")?;
    }
    let auth = match kind.as_str() {
        "static" => {
            refuse(OAUTH_KEYS, "type = \"oauth\"")?;
            AuthSpec::Static(fixed(&table)?)
        }
        _ => {
            refuse(STATIC_KEYS, "type = \"static\"")?;
            if !exchanges && kind != "jwt_bearer" {
                refuse(SECRET_KEYS, "type = \"static\"")?;
            }
            AuthSpec::Oauth(Box::new(oauth(&table, &kind)?))
        }
    };
    let header = match &auth {
        AuthSpec::Static(fixed) => &fixed.header,
        AuthSpec::Oauth(_) => &AUTHORIZATION,
    };
    match headers.contains_key(header) {
        true => Err(table.error(Problem::Beside("headers.authorization"))),
        false => Ok(Some(auth)),
    }
}

fn fixed(table: &Table<'_>) -> Result<StaticSpec, ConfigError> {
    let mut header = AUTHORIZATION;
    if let Some(text) = table.text("header")? {
        let name = HeaderName::from_bytes(text.value.as_bytes()).ok().filter(|name| !is_ours(name));
        header = name.ok_or_else(|| bad(table, &text, "the name of a header that the gateway does not set itself"))?;
    }
    let default = if header == AUTHORIZATION { "Bearer" } else { "" };
    let scheme = match table.text("scheme")? {
        Some(text) if text.value.bytes().all(|byte| byte.is_ascii_graphic()) => text.value,
        Some(text) => return Err(bad(table, &text, "a word such as `Bearer`")),
        None => default.to_owned(),
    };
    let (shared, users) = sources(table)?;
    Ok(StaticSpec { header, scheme, shared, users, refresh: table.seconds("refresh")? })
}

fn oauth(table: &Table<'_>, kind: &str) -> Result<OauthSpec, ConfigError> {
    let client = client(table)?;
    if client.is_none() && matches!(kind, "client_credentials" | "enterprise" | "jwt_bearer") {
        return Err(table.error(Problem::Needs("`client_id`, and its secret or key")));
    }
    let grant = match kind {
        "client_credentials" => GrantType::ClientCredentials,
        "token_exchange" => GrantType::TokenExchange(exchange(table, ACCESS_TOKEN)?),
        "jwt_bearer" => {
            let (shared, users) = sources(table)?;
            GrantType::JwtBearer(AssertionSpec { shared, users })
        }
        "enterprise" => GrantType::Enterprise(exchange(table, ID_TOKEN)?),
        _ => GrantType::SignIn,
    };
    let per_user = match &grant {
        // The new token belongs to the owner of the exchanged one.
        GrantType::TokenExchange(spec) | GrantType::Enterprise(spec) => {
            table.flag("per_user")? || !spec.users.is_empty() || spec.from_caller
        }
        GrantType::JwtBearer(spec) => table.flag("per_user")? || !spec.users.is_empty(),
        GrantType::SignIn | GrantType::ClientCredentials => table.flag("per_user")?,
    };
    Ok(OauthSpec {
        grant,
        per_user,
        client,
        scopes: table.texts("scopes")?.into_iter().map(|text| text.value).collect(),
        issuer: url(table, "issuer")?,
        resource: url(table, "resource")?,
        provider: if table.choice("provider")? == "entra" { Provider::Entra } else { Provider::Standard },
    })
}

fn client(table: &Table<'_>) -> Result<Option<ClientSpec>, ConfigError> {
    let secret = match (table.text("client_secret_env")?, file(table, "client_secret_file")?) {
        (Some(_), Some(_)) => return Err(table.key_error("client_secret_file", Problem::Beside("client_secret_env"))),
        (Some(name), None) => Some(SecretSource::Env(name.value)),
        (None, Some(path)) => Some(SecretSource::File(path)),
        (None, None) => None,
    };
    let key_file = file(table, "client_key_file")?;
    match table.text("client_id")? {
        Some(id) => Ok(Some(ClientSpec { id: id.value, secret, key_file })),
        None if secret.is_some() || key_file.is_some() => Err(table.error(Problem::Needs("`client_id`"))),
        None => Ok(None),
    }
}

fn exchange(table: &Table<'_>, token_type: &str) -> Result<ExchangeSpec, ConfigError> {
    let Some(url) = url(table, "exchange_url")? else {
        return Err(table.error(Problem::Needs("`exchange_url`, the token endpoint that takes the token")));
    };
    let from_caller = table.choice("exchange_subject")? == "caller";
    let given = SECRET_KEYS.iter().find(|key| from_caller && table.has(key));
    if let Some(key) = given {
        return Err(table.key_error(key, Problem::Beside("exchange_subject")));
    }
    let (shared, users) = if from_caller { Sources::default() } else { sources(table)? };
    let secret = table.text("exchange_client_secret_env")?.map(|name| SecretSource::Env(name.value));
    let client = table.text("exchange_client_id")?.map(|id| ClientSpec { id: id.value, secret, key_file: None });
    let token_type = table.text("exchange_token_type")?.map_or_else(|| token_type.to_owned(), |text| text.value);
    let audience = table.text("audience")?.map(|text| text.value);
    Ok(ExchangeSpec { url, client, from_caller, shared, users, token_type, audience })
}

/// Sources of the secret that all callers share and of those of single users.
type Sources = (Option<SecretSource>, BTreeMap<String, SecretSource>);

fn sources(table: &Table<'_>) -> Result<Sources, ConfigError> {
    let (shared, users) = (secret(table)?, users(table)?);
    if shared.is_none() && users.is_empty() {
        return Err(table.error(Problem::Needs("`secret_env`, `secret_file` or `secret_command`")));
    }
    Ok((shared, users))
}

/// Reads the source of a secret. At most one of the keys may be set.
fn secret(table: &Table<'_>) -> Result<Option<SecretSource>, ConfigError> {
    let given: Vec<&str> =
        ["secret_env", "secret_file", "secret_command"].into_iter().filter(|key| table.has(key)).collect();
    match given.as_slice() {
        [] => Ok(None),
        ["secret_env"] => Ok(table.text("secret_env")?.map(|text| SecretSource::Env(text.value))),
        ["secret_file"] => Ok(file(table, "secret_file")?.map(SecretSource::File)),
        ["secret_command"] => {
            let line: Vec<String> = table.texts("secret_command")?.into_iter().map(|text| text.value).collect();
            match line.first().is_some_and(|program| !program.is_empty()) {
                true => Ok(Some(SecretSource::Command(line))),
                false => Err(table.key_error("secret_command", Problem::BadHiddenValue("a program and its arguments"))),
            }
        }
        [_, second, ..] => {
            Err(table.key_error(second, Problem::BadHiddenValue("one way to get the secret, not several")))
        }
        [_] => Ok(None),
    }
}

fn users(table: &Table<'_>) -> Result<BTreeMap<String, SecretSource>, ConfigError> {
    let all = table.table("users")?;
    let mut users = BTreeMap::new();
    for entry in all.entries {
        let user = all.inside(entry)?;
        let Some(source) = secret(&user)? else {
            return Err(user.error(Problem::Needs("`secret_env`, `secret_file` or `secret_command`")));
        };
        users.insert(entry.key.clone(), source);
    }
    Ok(users)
}

/// Reads an http(s) address. The code that connects decides whether it may be without TLS.
pub(super) fn url(table: &Table<'_>, key: &str) -> Result<Option<String>, ConfigError> {
    let Some(text) = table.text(key)? else { return Ok(None) };
    let uri = text.value.parse::<http::Uri>().ok();
    let good = uri.is_some_and(|uri| {
        matches!(uri.scheme_str(), Some("https" | "http")) && uri.host().is_some() && !text.value.contains(['#', '@'])
    });
    if good { Ok(Some(text.value)) } else { Err(bad(table, &text, "an https address")) }
}

#[cfg(test)]
mod tests {
    use crate::{BackendTarget, Config, ConfigError, Overrides};
    use signalbox_oauth_client::{AuthSpec, GrantType, SecretSource};
    use std::path::Path;

    fn load(auth: &str) -> Result<AuthSpec, ConfigError> {
        load_at("https://b.example/mcp", auth)
    }

    fn load_at(url: &str, auth: &str) -> Result<AuthSpec, ConfigError> {
        let text = format!("[backends.b]\nurl = \"{url}\"\n[backends.b.auth]\n{auth}");
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        let loaded = Config::parse(Path::new("/etc/signalbox.toml"), &text, &env, &Overrides::default());
        let config = loaded?.config;
        match &config.backends[0].target {
            BackendTarget::Url { auth: Some(auth), .. } => Ok(AuthSpec::clone(auth)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_static_secret_may_come_from_several_places_and_be_of_one_principal() {
        let AuthSpec::Static(spec) =
            load("secret_env = \"TOKEN\"\n[backends.b.auth.users.\"local:ada\"]\nsecret_file = \"ada\"").unwrap()
        else {
            panic!()
        };
        assert_eq!((spec.header.as_str(), spec.scheme.as_str()), ("authorization", "Bearer"));
        assert_eq!(spec.shared, Some(SecretSource::Env("TOKEN".to_owned())));
        assert_eq!(spec.users["local:ada"], SecretSource::File("/etc/ada".into()));
        let AuthSpec::Static(spec) = load("header = \"X-Sentinel-Auth\"\nsecret_command = [\"pass\", \"x\"]").unwrap()
        else {
            panic!()
        };
        assert_eq!((spec.header.as_str(), spec.scheme.as_str()), ("x-sentinel-auth", ""));
    }

    #[test]
    fn every_type_is_read() {
        let grant = |auth: &str| match load(auth).unwrap() {
            AuthSpec::Oauth(spec) => spec.grant,
            AuthSpec::Static(_) => panic!(),
        };
        assert_eq!(grant("type = \"oauth\""), GrantType::SignIn);
        assert_eq!(
            grant("type = \"client_credentials\"\nclient_id = \"a\"\nclient_key_file = \"k\""),
            GrantType::ClientCredentials
        );
        let own =
            "type = \"token_exchange\"\nexchange_url = \"https://idp.example/token\"\nexchange_subject = \"caller\"\n";
        let AuthSpec::Oauth(spec) = load(own).unwrap() else { panic!() };
        assert!(spec.per_user, "each caller has a token of its own");
        let on_socket = load_at("wss://b.example/mcp", own).unwrap_err().to_string();
        assert!(on_socket.contains("exchange_subject"), "one connection would serve all callers: {on_socket}");
        assert!(load(&format!("{own}secret_env = \"T\"")).unwrap_err().to_string().contains("exchange_subject"));
        let exchange = "exchange_url = \"https://idp.example/token\"\nsecret_env = \"T\"\nclient_id = \"a\"";
        assert!(matches!(grant(&format!("type = \"token_exchange\"\n{exchange}")), GrantType::TokenExchange(_)));
        let GrantType::Enterprise(spec) = grant(&format!("type = \"enterprise\"\n{exchange}")) else { panic!() };
        assert!(spec.token_type.ends_with(":id_token"));
    }

    #[test]
    fn what_does_not_fit_together_is_refused_by_name() {
        for (auth, says) in [
            ("", "needs `secret_env`"),
            ("secret_env = \"A\"\nsecret_file = \"b\"", "one way to get the secret"),
            ("secret_env = \"A\"\nclient_id = \"b\"", "client_id: applies only with"),
            ("secret_env = \"A\"\nheader = \"mcp-session-id\"", "header: expected the name of a header"),
            ("type = \"oauth\"\nheader = \"x\"", "header: applies only with"),
            ("type = \"oauth\"\nsecret_env = \"x\"", "secret_env: applies only with"),
            ("type = \"oauth\"\nissuer = \"file:///etc\"", "issuer: expected an https address"),
            ("type = \"oauth\"\nclient_secret_env = \"A\"", "needs `client_id`"),
            ("type = \"client_credentials\"", "needs `client_id`"),
            ("type = \"token_exchange\"\nsecret_env = \"A\"", "needs `exchange_url`"),
            ("type = \"other\"", "auth.type: expected"),
        ] {
            let error = load(auth).unwrap_err().to_string();
            assert!(error.contains(says), "{auth}: {error}");
        }
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        let text = "[backends.b]\nurl = \"https://b/\"\nheaders.authorization = \"Bearer x\"\nauth.type = \"oauth\"";
        let error = Config::parse(Path::new("a.toml"), text, &env, &Overrides::default()).unwrap_err().to_string();
        assert!(error.contains("cannot be combined with `headers.authorization`"), "{error}");
    }
}
