//! Reads the table `auth`: how callers authenticate, and the roles, groups and trust that they are given.

use super::auth_keys::WAYS;
use super::auth_server::{self, AuthServer};
use super::error::{ConfigError, Note, Problem, Warning};
use super::read::{Table, Text};
use super::secret::Secret;
use super::tls::file;
use super::values::bad;
use http::Uri;
use signalbox_engine::fault::ErrorDetail;
use signalbox_engine::standing::TrustLevel;
use signalbox_govern::SubjectPattern;
use signalbox_oauth_client::web_address::WebAddress;
use std::path::PathBuf;
use std::time::Duration;

/// Signature algorithms that an issuer may be configured with.
const ALGORITHMS: [&str; 9] = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];
/// Signature algorithms accepted if the file names none.
const DEFAULT_ALGORITHMS: [&str; 3] = ["RS256", "ES256", "EdDSA"];

/// Settings of authentication, from the table `auth`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Auth {
    /// `true` if callers without a proof are refused.
    pub required: bool,
    /// Time within which a client must authenticate.
    pub timeout: Duration,
    /// Rule for the amount of detail that callers see in the gateway's errors.
    pub error_detail: ErrorDetail,
    /// Rule for the amount of detail that callers see in the errors of tools.
    pub tool_error_detail: ErrorDetail,
    /// Ways of authentication in the order in which they are tried; each is one of [`WAYS`].
    pub order: Vec<String>,
    /// `true` if the file sets the order.
    pub order_given: bool,
    /// Address by which clients know the MCP endpoint, if configured.
    pub resource: Option<String>,
    /// Authorization servers that clients are told to get tokens from.
    pub authorization_servers: Vec<String>,
    /// Scopes that every token must have.
    pub required_scopes: Vec<String>,
    /// Scopes, each with the patterns of the tools that need it.
    pub scopes: Vec<(String, Vec<String>)>,
    /// Scopes, each with the scopes that it includes.
    pub scope_hierarchy: Vec<(String, Vec<String>)>,
    /// Maximum number of open sessions per caller.
    pub max_sessions: usize,
    /// Bearer token that `/metrics` demands, if it has a secret of its own.
    pub metrics_secret: Option<Secret>,
    /// Trust level of an authenticated caller for which no other level is configured.
    pub default_trust: TrustLevel,
    /// Accepted issuers of tokens.
    pub issuers: Vec<Issuer>,
    /// Principals assigned to the holders of certificates.
    pub certificates: Vec<CertificateName>,
    /// Settings of users, by principal.
    pub users: Vec<(String, MemberConfig)>,
    /// Settings of groups, by name.
    pub groups: Vec<(String, MemberConfig)>,
    /// The gateway's own authorization server, if enabled.
    pub server: Option<AuthServer>,
}

/// Issuer whose tokens are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    /// Name of its table in the file.
    pub name: String,
    /// Value that `iss` must equal.
    pub issuer: String,
    /// Accepted values of `aud`. If empty, tokens must be for the resource itself.
    pub audience: Vec<String>,
    /// Source of the issuer's keys.
    pub keys: IssuerKeys,
    /// Signature algorithms that its tokens may use.
    pub algorithms: Vec<String>,
    /// Tolerated difference between the issuer's clock and ours.
    pub clock_skew: Duration,
    /// Interval at which the keys are read again.
    pub refresh: Duration,
    /// Claim that names the caller.
    pub subject_claim: String,
    /// Claims that hold roles.
    pub role_claims: Vec<String>,
    /// Claims that hold groups.
    pub group_claims: Vec<String>,
    /// `true` if tokens must have a `jti`.
    pub require_id: bool,
}

/// Source of an issuer's keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssuerKeys {
    /// File with a JSON Web Key Set.
    File(PathBuf),
    /// Address that serves a JSON Web Key Set.
    Url(String),
    /// Secret shared with the issuer, for HMAC.
    Secret(Secret),
}

/// Rule that assigns a principal to the holders of matching certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateName {
    /// SHA-256 fingerprint of the certificate.
    pub fingerprint: Option<String>,
    /// Pattern for a subject alternative name.
    pub name: Option<String>,
    /// Pattern for the subject.
    pub subject: Option<SubjectPattern>,
    /// Principal of a matching caller.
    pub principal: String,
    pub roles: Vec<String>,
}

/// Settings of a user or a group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemberConfig {
    pub roles: Vec<String>,
    /// Groups that a user belongs to. Groups have none.
    pub groups: Vec<String>,
    /// Trust level, if set.
    pub trust: Option<TrustLevel>,
    /// Patterns of the resources it may use.
    pub resources: Vec<String>,
}

impl Auth {
    /// Returns the address by which clients know the MCP endpoint, as far as the file tells: `resource`, or else the
    /// one web address that the tokens of every issuer are for.
    #[must_use]
    pub fn known_resource(&self) -> Option<&str> {
        let mut all = self.issuers.iter().map(Issuer::sole_web_audience);
        let of_issuers = || all.next().flatten().filter(|first| all.all(|one| one == Some(*first)));
        self.resource.as_deref().or_else(of_issuers)
    }

    /// Warns about settings that mislead clients: a 401 without metadata, or a resource that no token is for.
    fn warn(&self, table: &Table<'_>, security: &Table<'_>, warnings: &mut Vec<Warning>) {
        let place = || table.document.place(&table.path, table.at);
        let told = self.server.is_some() || !self.authorization_servers.is_empty();
        if !self.issuers.is_empty() && !told {
            warnings.push(Warning { place: place(), note: Note::NoAuthorizationServer });
        }
        if told && self.known_resource().is_none() && self.issuers.iter().any(|issuer| !issuer.audience.is_empty()) {
            warnings.push(Warning { place: place(), note: Note::UnknownResource });
        }
        let by_trust = security.entry("tool_error_detail").filter(|_| self.tool_error_detail == ErrorDetail::ByTrust);
        if let Some(entry) = by_trust.filter(|_| !self.required) {
            let place = security.document.place(&security.path.child(&entry.key), entry.key_at);
            warnings.push(Warning { place, note: Note::ErrorsByTrust });
        }
    }
}

impl Issuer {
    /// Returns the web address in the audience, if there is exactly one.
    fn sole_web_audience(&self) -> Option<&str> {
        let mut web = self.audience.iter().filter(|audience| WebAddress::read(audience).is_some());
        let first = web.next()?;
        web.next().is_none().then_some(first)
    }
}

/// Checks the table, together with the table `mcp.protocol.security`.
pub(super) fn check(table: &Table<'_>, security: &Table<'_>, warnings: &mut Vec<Warning>) -> Result<Auth, ConfigError> {
    let auth = read(table, security)?;
    auth.warn(table, security, warnings);
    Ok(auth)
}

fn read(table: &Table<'_>, security: &Table<'_>) -> Result<Auth, ConfigError> {
    let mut order = Vec::new();
    for word in table.texts("order")? {
        if !WAYS.contains(&word.value.as_str()) {
            return Err(bad(table, &word, "`key`, `token`, `certificate`, `signature` or `local`"));
        }
        order.push(word.value);
    }
    if !table.has("order") {
        order = WAYS.map(str::to_owned).to_vec();
    }
    let resource = table.text("resource")?;
    if let Some(text) = resource.as_ref().filter(|text| !is_resource(&text.value)) {
        return Err(bad(table, text, "an address like `https://box.example/mcp`, without a fragment"));
    }
    let scopes = table.table("scopes")?;
    let scopes = scopes.entries.iter().map(|entry| Ok((entry.key.clone(), values(scopes.texts(&entry.key)?))));
    let hierarchy = table.table("scope_hierarchy")?;
    let included = |key: &String| Ok((key.clone(), values(hierarchy.texts(key)?)));
    let hierarchy = hierarchy.entries.iter().map(|entry| included(&entry.key));
    let jwt = table.table("jwt")?;
    let issuers: Vec<Issuer> = each(&jwt, issuer)?;
    let server = auth_server::check(&table.table("server")?)?;
    auth_server::check_names(&jwt)?;
    let mut servers = values(table.texts("authorization_servers")?);
    if servers.is_empty() {
        let public = issuers.iter().filter(|issuer| !matches!(issuer.keys, IssuerKeys::Secret(_)));
        servers = public.map(|issuer| issuer.issuer.clone()).collect();
    }
    Ok(Auth {
        required: security.flag("require_authentication")?,
        timeout: security.duration("authentication_timeout")?,
        error_detail: match security.choice("error_detail")?.as_str() {
            "full" => ErrorDetail::Full,
            _ => ErrorDetail::ByTrust,
        },
        tool_error_detail: match security.choice("tool_error_detail")?.as_str() {
            "by_trust" => ErrorDetail::ByTrust,
            _ => ErrorDetail::Full,
        },
        order,
        order_given: table.has("order"),
        resource: resource.map(|text| text.value),
        authorization_servers: servers,
        required_scopes: values(table.texts("required_scopes")?),
        scopes: scopes.collect::<Result<_, ConfigError>>()?,
        scope_hierarchy: hierarchy.collect::<Result<_, ConfigError>>()?,
        max_sessions: table.count("max_sessions")?,
        metrics_secret: metrics_secret(table)?,
        default_trust: TrustLevel::of(&table.choice("default_trust")?).unwrap_or_default(),
        issuers,
        certificates: each(&table.table("certificates")?, certificate)?,
        users: each(&table.table("users")?, |name, inside| Ok((name.to_owned(), member(inside, true)?)))?,
        groups: each(&table.table("groups")?, |name, inside| Ok((name.to_owned(), member(inside, false)?)))?,
        server,
    })
}

/// Reads every table below this one.
fn each<T>(
    table: &Table<'_>,
    read: impl Fn(&str, &Table<'_>) -> Result<T, ConfigError>,
) -> Result<Vec<T>, ConfigError> {
    table.entries.iter().map(|entry| read(&entry.key, &table.inside(entry)?)).collect()
}

fn issuer(name: &str, table: &Table<'_>) -> Result<Issuer, ConfigError> {
    let Some(issuer) = table.text("issuer")?.filter(|text| !text.value.is_empty()) else {
        return Err(table.error(Problem::Needs("an `issuer`, the exact `iss` of its tokens")));
    };
    let keys = issuer_keys(table)?;
    let mut algorithms = Vec::new();
    for word in table.texts("algorithms")? {
        if !ALGORITHMS.contains(&word.value.as_str()) {
            return Err(bad(table, &word, "an algorithm of public keys, such as `RS256`, `ES256` or `EdDSA`"));
        }
        algorithms.push(word.value);
    }
    match (&keys, algorithms.is_empty()) {
        (IssuerKeys::Secret(_), true) => algorithms = vec!["HS256".to_owned()],
        (IssuerKeys::Secret(_), false) => return Err(table.key_error("algorithms", Problem::Beside("secret_env"))),
        (_, true) => algorithms = DEFAULT_ALGORITHMS.map(str::to_owned).to_vec(),
        (_, false) => {}
    }
    let or = |key: &str, default: &[&str]| -> Result<Vec<String>, ConfigError> {
        let given = values(table.texts(key)?);
        Ok(if table.has(key) { given } else { default.iter().map(|&word| word.to_owned()).collect() })
    };
    Ok(Issuer {
        name: name.to_owned(),
        issuer: issuer.value,
        audience: values(table.texts("audience")?),
        keys,
        algorithms,
        clock_skew: table.duration("clock_skew")?,
        refresh: table.duration("refresh")?,
        subject_claim: table.text("subject_claim")?.map_or_else(|| "sub".to_owned(), |text| text.value),
        role_claims: or("role_claims", &["roles", "role"])?,
        group_claims: or("group_claims", &["groups"])?,
        require_id: table.flag("require_id")?,
    })
}

fn metrics_secret(table: &Table<'_>) -> Result<Option<Secret>, ConfigError> {
    const KEY: &str = "metrics_secret_env";
    let Some(name) = table.text(KEY)? else { return Ok(None) };
    let secret = (table.document.env)(&name.value).filter(|secret| secret.len() >= 16);
    let wanted = "the name of a variable that holds at least 16 characters";
    secret.map(|secret| Some(Secret::new(secret))).ok_or_else(|| table.key_error(KEY, Problem::BadHiddenValue(wanted)))
}

fn issuer_keys(table: &Table<'_>) -> Result<IssuerKeys, ConfigError> {
    let given: Vec<&str> = ["jwks_file", "jwks_url", "secret_env"].into_iter().filter(|key| table.has(key)).collect();
    let &[only] = given.as_slice() else {
        let Some(second) = given.get(1) else {
            return Err(table.error(Problem::Needs("one of `jwks_file`, `jwks_url` and `secret_env`")));
        };
        let problem = Problem::BadHiddenValue("one of `jwks_file`, `jwks_url` and `secret_env`, not several");
        return Err(table.key_error(second, problem));
    };
    let missing = || table.key_error(only, Problem::BadHiddenValue("a string"));
    if only == "jwks_file" {
        return file(table, only)?.map(IssuerKeys::File).ok_or_else(missing);
    }
    let text = table.text(only)?.ok_or_else(missing)?;
    if only == "jwks_url" {
        let good = is_resource(&text.value);
        return if good { Ok(IssuerKeys::Url(text.value)) } else { Err(bad(table, &text, "an https address")) };
    }
    let secret = (table.document.env)(&text.value).ok_or_else(|| {
        table.key_error(only, Problem::BadHiddenValue("the name of a variable that is set in the environment"))
    })?;
    if secret.len() < 32 {
        return Err(table.key_error(only, Problem::BadHiddenValue("a variable that holds at least 32 characters")));
    }
    Ok(IssuerKeys::Secret(Secret::new(secret)))
}

fn certificate(name: &str, table: &Table<'_>) -> Result<CertificateName, ConfigError> {
    let text = |key: &str| Ok::<_, ConfigError>(table.text(key)?.map(|text| text.value));
    let fingerprint = table.text("fingerprint")?;
    let plain = fingerprint.as_ref().map(|text| text.value.replace(':', ""));
    if let (Some(text), Some(plain)) = (&fingerprint, &plain)
        && !(plain.len() == 64 && plain.bytes().all(|byte| byte.is_ascii_hexdigit()))
    {
        return Err(bad(table, text, "the SHA-256 of a certificate: 64 hexadecimal digits"));
    }
    let found = CertificateName {
        fingerprint: plain,
        name: text("name")?,
        subject: subject_pattern(table)?,
        principal: text("principal")?.unwrap_or_else(|| name.to_owned()),
        roles: values(table.texts("roles")?),
    };
    if found.fingerprint.is_none() && found.name.is_none() && found.subject.is_none() {
        return Err(table.error(Problem::Needs("a `fingerprint`, a `name` or a `subject`")));
    }
    Ok(found)
}

fn subject_pattern(table: &Table<'_>) -> Result<Option<SubjectPattern>, ConfigError> {
    let Some(text) = table.text("subject")? else { return Ok(None) };
    let wanted = "names such as `CN=ada, O=Example` or `CN=ada, *`; a backslash stands before a comma or an equals sign of a value";
    SubjectPattern::parse(&text.value).map(Some).map_err(|_| bad(table, &text, wanted))
}

fn member(table: &Table<'_>, is_user: bool) -> Result<MemberConfig, ConfigError> {
    Ok(MemberConfig {
        roles: values(table.texts("roles")?),
        groups: if is_user { values(table.texts("groups")?) } else { Vec::new() },
        trust: trust(table)?,
        resources: values(table.texts("resources")?),
    })
}

fn trust(table: &Table<'_>) -> Result<Option<TrustLevel>, ConfigError> {
    let Some(text) = table.text("trust")? else { return Ok(None) };
    let known = TrustLevel::of(&text.value);
    known.map(Some).ok_or_else(|| bad(table, &text, "`system`, `verified`, `community` or `untrusted`"))
}

fn values(texts: Vec<Text<'_>>) -> Vec<String> {
    texts.into_iter().map(|text| text.value).collect()
}

/// Returns `true` for an http or https address with a host and without a query or fragment.
fn is_resource(text: &str) -> bool {
    let uri = text.parse::<Uri>();
    !text.contains('#')
        && uri.is_ok_and(|uri| uri.host().is_some() && matches!(uri.scheme_str(), Some("https" | "http")))
}

#[cfg(test)]
mod tests {
    use crate::{Config, ConfigError, Overrides};
    use std::path::Path;

    fn load(text: &str) -> Result<super::Auth, ConfigError> {
        let env = |name: &str| match name {
            "HOME" => Some("/home/ada".to_owned()),
            "JWT" => Some("a secret that is long enough for HS256".to_owned()),
            "SHORT" => Some("short".to_owned()),
            _ => None,
        };
        let loaded = Config::parse(Path::new("signalbox.toml"), text, &env, &Overrides::default());
        loaded.map(|loaded| loaded.config.auth)
    }

    #[test]
    fn nobody_has_to_prove_anything_unless_the_file_says_so() {
        let auth = load("").unwrap();
        assert!(!auth.required && auth.issuers.is_empty() && auth.order.len() == 5);
        let auth =
            load("[mcp.protocol.security]\nrequire_authentication = true\nauthentication_timeout = 30\n").unwrap();
        assert!(auth.required && auth.timeout.as_secs() == 30);
    }

    /// Proves NO-16.
    #[test]
    fn metrics_may_have_a_secret_of_their_own() {
        let auth = load("[auth]\nmetrics_secret_env = 'JWT'\n").unwrap();
        assert!(auth.metrics_secret.is_some() && !format!("{auth:?}").contains("long enough"));
        for name in ["NONE", "SHORT"] {
            let told = load(&format!("[auth]\nmetrics_secret_env = '{name}'\n")).unwrap_err().to_string();
            assert!(
                told.contains("auth.metrics_secret_env: expected the name of a variable that holds at least 16"),
                "{told}"
            );
        }
    }

    #[test]
    fn the_audience_names_the_resource_and_what_clients_cannot_be_told_is_a_warning() {
        let warned = |text: &str| {
            let env = |name: &str| match name {
                "HOME" => Some("/home/ada".to_owned()),
                "JWT" => Some("a secret that is long enough for HS256".to_owned()),
                _ => None,
            };
            let loaded = Config::parse(Path::new("signalbox.toml"), text, &env, &Overrides::default()).unwrap();
            let all = loaded.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
            (loaded.config.auth.known_resource().map(str::to_owned), all)
        };
        let corp = "[auth.jwt.corp]\nissuer = 'https://idp.example'\njwks_file = 'keys.json'\n";
        let (resource, told) = warned(&format!("{corp}audience = ['https://box.example/mcp', 'api']\n"));
        assert_eq!((resource.as_deref(), told.as_str()), (Some("https://box.example/mcp"), ""));
        let (resource, told) = warned(&format!("{corp}audience = ['api://box']\n"));
        assert!(resource.is_none() && told.contains("set `auth.resource`"), "{told}");
        let (_, told) = warned("[auth.jwt.shared]\nissuer = 'x'\nsecret_env = 'JWT'\n");
        assert!(told.contains("set `auth.authorization_servers`"), "{told}");
        assert_eq!(warned(corp).1, "");
    }

    #[test]
    fn an_issuer_has_one_source_of_keys() {
        let auth =
            load("[auth.jwt.corp]\nissuer = 'https://idp.example'\njwks_url = 'https://idp.example/keys'\n").unwrap();
        assert_eq!(auth.authorization_servers, ["https://idp.example"]);
        assert_eq!(auth.issuers[0].algorithms, ["RS256", "ES256", "EdDSA"]);
        let auth = load("[auth.jwt.shared]\nissuer = 'x'\nsecret_env = 'JWT'\n").unwrap();
        assert!(auth.authorization_servers.is_empty() && !format!("{auth:?}").contains("long enough"));
        for (text, told) in [
            ("issuer = 'x'", "needs one of `jwks_file`, `jwks_url` and `secret_env`"),
            ("issuer = 'x'\njwks_file = 'a'\nsecret_env = 'JWT'", "not several"),
            ("jwks_file = 'a'", "needs an `issuer`"),
            ("issuer = 'x'\nsecret_env = 'NONE'", "set in the environment"),
            ("issuer = 'x'\nsecret_env = 'SHORT'", "at least 32 characters"),
            ("issuer = 'x'\njwks_file = 'a'\nalgorithms = ['HS256']", "algorithm of public keys"),
            ("issuer = 'x'\njwks_file = 'a'\nalgorithms = ['none']", "algorithm of public keys"),
            ("issuer = 'x'\njwks_url = 'ftp://x/y'", "https address"),
        ] {
            let error = load(&format!("[auth.jwt.x]\n{text}\n")).unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }

    #[test]
    fn users_groups_certificates_and_scopes_are_read() {
        let auth = load(
            "[auth.scopes]\n'files:write' = ['fs/write_*']\n[auth.users.'corp:ada']\nroles = ['admin']\ntrust = 'system'\n\
             [auth.groups.ops]\nroles = ['operator']\n[auth.certificates.ci]\nname = 'dns:ci.example'\n",
        );
        let auth = auth.unwrap();
        assert_eq!(auth.scopes, [("files:write".to_owned(), vec!["fs/write_*".to_owned()])]);
        assert_eq!(
            (auth.users[0].0.as_str(), auth.users[0].1.roles.as_slice()),
            ("corp:ada", &["admin".to_owned()][..])
        );
        assert_eq!((auth.groups.len(), auth.certificates[0].principal.as_str()), (1, "ci"));
        assert!(
            load("[auth.certificates.ci]\nroles = ['a']\n").unwrap_err().to_string().contains("needs a `fingerprint`")
        );
        assert!(load("[auth]\norder = ['magic']\n").unwrap_err().to_string().contains("`key`, `token`"));
    }
}
