//! Reads the permissions: the tables `permissions`, `roles`, `kill_switch` and `constraints`.

use super::constraints::{self, ConstraintRule};
use super::error::{ConfigError, Problem};
use super::policy_folder::PolicyFolder;
use super::read::{Table, Text};
use super::secret::{Secret, token_from_env};
use super::values::{bad, folder};
use std::time::Duration;

/// Rules for what callers may see and use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PermissionRules {
    /// `true` if denials are only recorded.
    pub shadow: bool,
    /// `true` if callers are told that an entry exists that they may not see.
    pub reveal: bool,
    /// Role of callers that have none.
    pub default_role: Option<String>,
    /// Cedar policies, if configured.
    pub policies: Option<PolicyFolder>,
    /// `true` if callers may decide about their own calls.
    pub approve_own: bool,
    /// Time that an approver has to decide.
    pub ask_timeout: Duration,
    /// Recipients of questions about consent, and how they are notified.
    pub ask: AskRule,
    /// Emergency access to everything for a limited time.
    pub break_glass: BreakGlassRule,
    /// External service that is asked in addition.
    pub decision_point: Option<DecisionPointRule>,
    /// Roles of the table `roles`, by name.
    pub roles: Vec<(String, RoleRule)>,
    /// Entries that are switched off.
    pub kill_switch: KillSwitch,
    /// Constraints on calls that are allowed.
    pub constraints: Vec<ConstraintRule>,
}

/// Recipients of questions about consent, and how they are notified.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AskRule {
    /// `true` if the caller is asked when neither a role nor a policy names an approver.
    pub caller: bool,
    /// `true` if approvers are asked when the client of a caller cannot ask.
    pub others: bool,
    /// Address that is notified of calls that wait for approvers.
    pub webhook: Option<String>,
    /// Bearer token for `webhook`.
    pub webhook_token: Option<Secret>,
    /// Address under which browsers reach the gateway, without a `/` at its end.
    pub public_url: Option<String>,
}

/// Emergency access to everything for a limited time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BreakGlassRule {
    pub allowed: bool,
    /// Maximum duration of one such access.
    pub longest: Duration,
    /// Address that is notified.
    pub webhook: Option<String>,
}

/// External service that decides about uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionPointRule {
    /// Address that decisions are requested from.
    pub url: String,
    /// `true` if the service is an Open Policy Agent.
    pub is_opa: bool,
    /// Time limit for a decision.
    pub timeout: Duration,
    /// Time for which a decision is cached, if at all.
    pub cache: Option<Duration>,
    /// `true` if uses are allowed while the service does not answer.
    pub allow_when_down: bool,
    /// Patterns of the entries that the service is asked about.
    pub entries: Vec<String>,
}

/// Permissions and patterns of one role.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RoleRule {
    /// Permissions that its holders have.
    pub permissions: Vec<String>,
    /// Patterns of the entries that the role grants.
    pub allow: Vec<String>,
    /// Patterns of the entries that its holders may not use.
    pub deny: Vec<String>,
    /// Patterns of the entries whose calls need an approval.
    pub ask: Vec<String>,
}

/// Patterns of the entries that are switched off.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KillSwitch {
    /// Tools, prompts and resources.
    pub tools: Vec<String>,
    pub backends: Vec<String>,
    /// Principals whose calls are refused.
    pub principals: Vec<String>,
    /// Entries and backends in quarantine.
    pub quarantine: Vec<String>,
}

/// Checks the four tables.
pub(crate) fn check(root: &Table<'_>) -> Result<PermissionRules, ConfigError> {
    let table = root.table("permissions")?;
    let roles = root.table("roles")?;
    let roles: Vec<(String, RoleRule)> = roles
        .entries
        .iter()
        .map(|entry| Ok((entry.key.clone(), role(&roles.inside(entry)?)?)))
        .collect::<Result<_, ConfigError>>()?;
    let default_role = table.text("default_role")?.filter(|text| !text.value.is_empty());
    if let Some(text) = default_role.as_ref().filter(|text| !roles.iter().any(|(name, _)| *name == text.value)) {
        return Err(bad(&table, text, "the name of a role under `roles`"));
    }
    let policies = match folder(&table, "policies")?.filter(|_| table.has("policies")) {
        Some(path) => {
            Some(PolicyFolder::read(&path).map_err(|error| table.key_error("policies", Problem::Policies(error)))?)
        }
        None => None,
    };
    let decision_point = decision_point(&table.table("decision_point")?)?;
    let (ask, glass) = (table.table("ask")?, table.table("break_glass")?);
    let off = root.table("kill_switch")?;
    Ok(PermissionRules {
        shadow: table.choice("mode")? == "shadow",
        reveal: table.flag("reveal")?,
        default_role: default_role.map(|text| text.value),
        policies,
        approve_own: table.flag("approve_own")?,
        ask_timeout: table.duration("ask_timeout")?,
        ask: AskRule {
            caller: ask.choice("of")? == "caller",
            others: ask.choice("without_elicitation")? == "approver",
            webhook: address(&ask, "webhook")?,
            webhook_token: token_from_env(&ask, "webhook_token_env")?,
            public_url: address(&ask, "public_url")?.map(|url| url.trim_end_matches('/').to_owned()),
        },
        break_glass: BreakGlassRule {
            allowed: glass.flag("allowed")?,
            longest: glass.duration("longest")?,
            webhook: address(&glass, "webhook")?,
        },
        decision_point,
        roles,
        kill_switch: KillSwitch {
            tools: patterns(&off, "tools")?,
            backends: values(off.texts("backends")?),
            principals: values(off.texts("principals")?),
            quarantine: patterns(&off, "quarantine")?,
        },
        constraints: constraints::check(&root.table("constraints")?)?,
    })
}

/// Reads the address of a web server, if one is given.
fn address(table: &Table<'_>, key: &str) -> Result<Option<String>, ConfigError> {
    let Some(url) = table.text(key)?.filter(|text| !text.value.is_empty()) else { return Ok(None) };
    if !is_web_address(&url.value) {
        return Err(bad(table, &url, "an address like `https://chat.example/hooks/1`"));
    }
    Ok(Some(url.value))
}

fn is_web_address(url: &str) -> bool {
    let parsed = url.parse::<http::Uri>();
    parsed.is_ok_and(|uri| uri.host().is_some() && matches!(uri.scheme_str(), Some("http" | "https")))
}

fn decision_point(table: &Table<'_>) -> Result<Option<DecisionPointRule>, ConfigError> {
    let Some(url) = table.text("url")?.filter(|text| !text.value.is_empty()) else { return Ok(None) };
    if !is_web_address(&url.value) {
        return Err(bad(table, &url, "an address like `https://pdp.example/access/v1/evaluation`"));
    }
    let entries = patterns(table, "entries")?;
    Ok(Some(DecisionPointRule {
        url: url.value,
        is_opa: table.choice("api")? == "opa",
        timeout: table.duration("timeout")?,
        cache: table.seconds("cache")?,
        allow_when_down: table.choice("when_down")? == "allow",
        entries: if entries.is_empty() { vec!["*".to_owned()] } else { entries },
    }))
}

fn role(table: &Table<'_>) -> Result<RoleRule, ConfigError> {
    let or =
        |key: &str, given: Vec<String>, default: &str| if table.has(key) { given } else { vec![default.to_owned()] };
    Ok(RoleRule {
        permissions: or("permissions", values(table.texts("permissions")?), "tools.execute"),
        allow: or("allow", patterns(table, "allow")?, "*"),
        deny: patterns(table, "deny")?,
        ask: patterns(table, "ask")?,
    })
}

/// Reads patterns of the form `BACKEND` or `BACKEND/NAME`.
fn patterns(table: &Table<'_>, key: &str) -> Result<Vec<String>, ConfigError> {
    let texts = table.texts(key)?;
    for text in &texts {
        let (backend, name) = text.value.split_once('/').unwrap_or((&text.value, "*"));
        if backend.is_empty() || name.is_empty() {
            return Err(bad(table, text, "a pattern `BACKEND` or `BACKEND/NAME`, with `*` and `?`"));
        }
    }
    Ok(values(texts))
}

fn values(texts: Vec<Text<'_>>) -> Vec<String> {
    texts.into_iter().map(|text| text.value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Overrides};
    use std::path::Path;

    fn load(file: &Path, text: &str) -> Result<PermissionRules, ConfigError> {
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        Ok(Config::parse(file, text, &env, &Overrides::default())?.config.permissions)
    }

    /// Proves NO-2.
    #[test]
    fn roles_and_switches_are_read_and_absent_ones_restrict_nobody() {
        let none = load(Path::new("signalbox.toml"), "").unwrap();
        assert!(none.roles.is_empty() && none.policies.is_none() && !none.shadow && !none.reveal);
        let text = "[permissions]\nmode = 'shadow'\nreveal = true\ndefault_role = 'reader'\nask_timeout = '1m'\n\
                    [roles.reader]\npermissions = ['tools.read']\n[roles.writer]\nallow = ['files']\ndeny = ['files/x*']\n\
                    ask = ['files/w*']\n[kill_switch]\ntools = ['a/b']\nbackends = ['c']\nprincipals = ['user:*']\n\
                    quarantine = ['d']\n";
        let rules = load(Path::new("signalbox.toml"), text).unwrap();
        assert!(rules.shadow && rules.reveal && rules.ask_timeout == Duration::from_secs(60));
        assert_eq!(rules.default_role.as_deref(), Some("reader"));
        assert_eq!(
            (rules.roles[0].1.allow.join(" "), rules.roles[1].1.permissions.join(" ")),
            ("*".into(), "tools.execute".into())
        );
        let KillSwitch { tools, backends, principals, quarantine } = rules.kill_switch;
        assert_eq!([tools, backends, principals, quarantine].map(|one| one.join(" ")), ["a/b", "c", "user:*", "d"]);
    }

    #[test]
    fn a_role_that_is_not_there_and_a_pattern_of_nothing_are_errors() {
        for (text, told) in [
            (
                "[permissions]\ndefault_role = 'nobody'\n",
                "permissions.default_role: expected the name of a role under `roles`",
            ),
            ("[roles.a]\nallow = ['/x']\n", "roles.a.allow"),
            ("[kill_switch]\ntools = ['files/']\n", "kill_switch.tools"),
            ("[permissions]\nmode = 'off'\n", "permissions.mode"),
            ("[permissions.decision_point]\nurl = 'pdp'\n", "permissions.decision_point.url"),
            ("[permissions.ask]\nof = 'everybody'\n", "permissions.ask.of"),
            ("[permissions.ask]\nwebhook = 'chat'\n", "permissions.ask.webhook"),
            ("[permissions.ask]\npublic_url = 'ftp://a'\n", "permissions.ask.public_url"),
            ("[permissions.break_glass]\nwebhook = 'chat'\n", "permissions.break_glass.webhook"),
            ("[permissions.break_glass]\nlongest = '2d'\n", "permissions.break_glass.longest"),
            ("[permissions]\npolicies = 'not-there'\n", "cannot be read"),
        ] {
            let error = load(Path::new("/nowhere/signalbox.toml"), text).unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }

    #[test]
    fn who_is_asked_and_who_hears_of_it() {
        let text = "[permissions.ask]\nof = 'caller'\nwithout_elicitation = 'approver'\nwebhook = 'https://chat.example/1'\n\
                    public_url = 'https://mcp.example/'\n[permissions.break_glass]\nallowed = true\nlongest = '10m'\n";
        let rules = load(Path::new("signalbox.toml"), text).unwrap();
        assert!(rules.ask.caller && rules.ask.others && rules.break_glass.allowed);
        assert_eq!(rules.ask.webhook.as_deref(), Some("https://chat.example/1"));
        assert_eq!(rules.ask.public_url.as_deref(), Some("https://mcp.example"));
        assert_eq!(rules.break_glass.longest, Duration::from_secs(600));
        let none = load(Path::new("signalbox.toml"), "").unwrap();
        assert!(!none.ask.caller && !none.break_glass.allowed && none.ask.webhook.is_none());
    }

    #[test]
    fn a_folder_of_policies_is_taken_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("signalbox.toml");
        std::fs::create_dir(folder.path().join("policies")).unwrap();
        std::fs::write(folder.path().join("policies/b.cedar"), "permit(principal, action, resource);").unwrap();
        std::fs::write(folder.path().join("policies/a.cedar"), "@id(\"x\") permit(principal, action, resource);")
            .unwrap();
        std::fs::write(folder.path().join("policies/readme.md"), "not a policy").unwrap();
        let text = "[permissions]\npolicies = 'policies'\n";
        let policies = load(&file, text).unwrap().policies.unwrap();
        let ids: Vec<&str> = policies.policies.rules().iter().map(|rule| &*rule.id).collect();
        assert_eq!((ids, policies.watched().count()), (vec!["x", "b.cedar:1"], 3));
        std::fs::write(folder.path().join("policies/b.cedar"), "permit(principal, action").unwrap();
        let told = load(&file, text).unwrap_err().to_string();
        assert!(told.contains("permissions.policies") && told.contains("b.cedar"), "{told}");
    }
}
