//! Compares two configurations: which backends change, and which settings need a restart.

use signalbox_config::{BackendConfig, Config};

/// Setting that applies without a restart.
struct LiveSetting {
    key: &'static str,
    differs: fn(&Config, &Config) -> bool,
    copy: fn(&Config, &mut Config),
}

macro_rules! live {
    ($key:literal, $($field:ident).+) => {
        LiveSetting {
            key: $key,
            differs: |before, next| before.$($field).+ != next.$($field).+,
            copy: |next, into| into.$($field).+.clone_from(&next.$($field).+),
        }
    };
}

/// Settings that apply without a restart. All others need one.
const LIVE: &[LiveSetting] = &[
    live!("mcp.protocol.security.session_timeout", gateway.session_timeout),
    live!("mcp.protocol.security.max_concurrent_sessions", gateway.max_sessions),
    live!("gateway.first_list_wait", gateway.first_list_wait),
    live!("gateway.drain", gateway.drain),
    live!("gateway.call_timeout", gateway.call_timeout),
    live!("gateway.park_timeout", gateway.park_timeout),
    live!("gateway.max_connections", gateway.max_connections),
    live!("gateway.max_streams", gateway.max_streams),
    live!("gateway.max_in_flight", gateway.max_in_flight),
    live!("gateway.max_message", gateway.max_message),
    live!("gateway.memory", gateway.memory),
    live!("gateway.allowed_origins", gateway.allowed_origins),
    live!("gateway.allowed_hosts", gateway.allowed_hosts),
    live!("gateway.demo_root", gateway.demo_root),
    live!("gateway.watch_config", gateway.watch_config),
    live!("gateway.log_level", log_level),
    live!("rules", rules),
    live!("auth.users", auth.users),
    live!("auth.groups", auth.groups),
    live!("auth.default_trust", auth.default_trust),
    live!("auth.max_sessions", auth.max_sessions),
    live!("mcp.protocol.security.error_detail", auth.error_detail),
    live!("mcp.protocol.security.tool_error_detail", auth.tool_error_detail),
    LiveSetting {
        key: "auth.server.openid",
        differs: |before, next| provider(before) != provider(next),
        copy: |next, into| {
            // The removal of a provider must not wait for a restart. A new provider needs one.
            if provider(next) != provider(into)
                && let Some(server) = &mut into.auth.server
            {
                server.openid = None;
            }
        },
    },
    LiveSetting {
        key: "auth.jwt",
        differs: |before, next| before.auth.issuers != next.auth.issuers,
        copy: copy_issuers,
    },
    LiveSetting {
        key: "mcp.protocol.audit",
        differs: |before, next| before.audit != next.audit,
        copy: |next, into| {
            // Turning the log on or off needs a restart.
            if next.audit.is_some() && into.audit.is_some() {
                into.audit.clone_from(&next.audit);
            }
        },
    },
    live!("mcp.protocol.rate_limits", rate_limits),
    live!("tools", tool_labels),
    live!("permissions", permissions),
    live!("mcp.protocol.performance", performance),
    live!("guard", guard),
];

/// Setting that needs a restart: its key, and whether it differs.
type FixedSetting = (&'static str, fn(&Config, &Config) -> bool);

/// Settings that need a restart, by the keys in reports.
const FIXED: &[FixedSetting] = &[
    ("mcp.protocol.transport.type", |before, next| before.listen.transport != next.listen.transport),
    ("mcp.protocol.transport.host", |before, next| before.listen.host != next.listen.host),
    ("mcp.protocol.transport.port", |before, next| before.listen.port != next.listen.port),
    ("mcp.protocol.transport.path", |before, next| before.listen.path != next.listen.path),
    ("auth.outbound", |before, next| before.outbound != next.outbound),
    ("mcp.protocol.transport.tls", |before, next| before.listen.tls != next.listen.tls),
    ("gateway.rule_seed", |before, next| before.gateway.rule_seed != next.gateway.rule_seed),
    ("record", |before, next| before.record != next.record),
    ("mcp.protocol.audit.enabled", |before, next| before.audit.is_some() != next.audit.is_some()),
    ("relay", |before, next| before.relay != next.relay),
    ("seal", |before, next| before.seal != next.seal),
    ("mcp.protocol.security.require_authentication", |before, next| before.auth.required != next.auth.required),
    ("mcp.protocol.security.authentication_timeout", |before, next| before.auth.timeout != next.auth.timeout),
    ("auth.order", |before, next| {
        before.auth.order != next.auth.order || before.auth.order_given != next.auth.order_given
    }),
    ("auth.resource", |before, next| before.auth.resource != next.auth.resource),
    ("auth.authorization_servers", |before, next| before.auth.authorization_servers != next.auth.authorization_servers),
    ("auth.required_scopes", |before, next| before.auth.required_scopes != next.auth.required_scopes),
    ("auth.scopes", |before, next| before.auth.scopes != next.auth.scopes),
    ("auth.scope_hierarchy", |before, next| before.auth.scope_hierarchy != next.auth.scope_hierarchy),
    ("auth.metrics_secret_env", |before, next| before.auth.metrics_secret != next.auth.metrics_secret),
    ("auth.jwt", |before, next| before.auth.issuers != next.auth.issuers),
    ("auth.certificates", |before, next| before.auth.certificates != next.auth.certificates),
    ("auth.server", |before, next| before.auth.server != next.auth.server),
    ("gateway.data_dir", |before, next| before.data_dir != next.data_dir),
];

/// Changes that a reload makes.
#[derive(Debug)]
pub(super) struct Plan {
    /// Configuration to apply: the next one, except for settings that need a restart.
    pub(super) config: Config,
    /// Keys outside `backends` that apply now.
    pub(super) settings: Vec<&'static str>,
    /// Keys that need a restart.
    pub(super) held_back: Vec<&'static str>,
}

/// Compares the settings outside `backends`. Settings that need a restart do not delay others: switches, users and
/// roles always apply at once.
pub(super) fn settings(before: &Config, next: &Config) -> Plan {
    let mut config = before.clone();
    copy_live(next, &mut config);
    // The file may appear after the start, and the backends are compared one by one.
    config.source.clone_from(&next.source);
    config.backends.clone_from(&next.backends);
    let held_back = FIXED.iter().filter(|(_, differs)| differs(&config, next)).map(|(key, _)| *key);
    let mut held_back: Vec<&'static str> = held_back.collect();
    if held_back.is_empty() && config != *next {
        held_back.push("a setting of the gateway");
    }
    let settings = LIVE.iter().filter(|live| (live.differs)(before, &config)).map(|live| live.key).collect();
    Plan { config, settings, held_back }
}

/// Returns a sentence for each kind of event that the audit log leaves out from now on, because a reload that turns one
/// off must be visible.
pub(super) fn no_longer_recorded(before: &Config, next: &Config) -> Vec<String> {
    let (Some(before), Some(next)) = (&before.audit, &next.audit) else { return Vec::new() };
    let (before, next) = (before.logged, next.logged);
    [
        ("log_tool_invocations", "calls", before.tool_invocations && !next.tool_invocations),
        ("log_security_events", "violations", before.security_events && !next.security_events),
        ("log_performance_events", "slow calls", before.performance_events && !next.performance_events),
        ("log_protocol_errors", "protocol errors", before.protocol_errors && !next.protocol_errors),
    ]
    .into_iter()
    .filter(|(.., ends)| *ends)
    .map(|(key, what, _)| format!("`mcp.protocol.audit.{key}` is off now: {what} are no longer in the audit log"))
    .collect()
}

/// Returns the issuer of the OpenID provider at which people sign in for tokens of the gateway.
fn provider(config: &Config) -> Option<&str> {
    Some(config.auth.server.as_ref()?.openid.as_ref()?.issuer.as_str())
}

/// Copies the removal of token issuers, which must not wait for a restart. New issuers need their keys first.
fn copy_issuers(next: &Config, into: &mut Config) {
    if next.auth.issuers.iter().all(|issuer| into.auth.issuers.contains(issuer)) {
        into.auth.issuers.clone_from(&next.auth.issuers);
    } else {
        into.auth.issuers.retain(|known| next.auth.issuers.iter().any(|issuer| issuer.name == known.name));
    }
}

fn copy_live(next: &Config, into: &mut Config) {
    for live in LIVE {
        (live.copy)(next, into);
    }
}

/// Change of a backend that exists before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    Same,
    /// Settings changed. Connections stay, and tools are listed again if the filter differs.
    Retuned {
        /// True if the filter differs.
        tools: bool,
    },
    /// The backend is restarted.
    Anew,
}

/// Compares two configurations of a backend. Any setting that is not known to be harmless restarts it.
pub(super) fn course(before: &BackendConfig, next: &BackendConfig) -> Course {
    if before == next {
        return Course::Same;
    }
    let mut followed = before.clone();
    followed.timeout = next.timeout;
    followed.start_timeout = next.start_timeout;
    followed.max_children = next.max_children;
    followed.lifetime = next.lifetime;
    followed.tools.clone_from(&next.tools);
    followed.category.clone_from(&next.category);
    followed.trust_level = next.trust_level;
    match followed == *next {
        true => Course::Retuned { tools: before.tools != next.tools },
        false => Course::Anew,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_config::{Overrides, keys};
    use std::path::Path;

    fn config(text: &str) -> Config {
        let overrides = Overrides { data_dir: Some("/data".into()), ..Overrides::default() };
        Config::parse(Path::new("/etc/signalbox.toml"), text, &|_| None, &overrides).unwrap().config
    }

    fn backend(text: &str) -> BackendConfig {
        config(&format!("[backends.a]\n{text}")).backends.remove(0)
    }

    #[test]
    fn settings_that_can_change_are_named_and_the_others_refused() {
        let before = config("[gateway]\ndrain = 1\n");
        let plan = |next: &Config| {
            let plan = settings(&before, next);
            (plan.settings, plan.held_back)
        };
        assert_eq!(plan(&before), (vec![], vec![]));
        let next = config("[gateway]\ndrain = 2\nlog_level = 'debug'\nallowed_hosts = ['a.example']\n");
        assert_eq!(plan(&next), (vec!["gateway.drain", "gateway.allowed_hosts", "gateway.log_level"], vec![]));
        for (text, key) in [
            ("port = 1", "mcp.protocol.transport.port"),
            ("host = '::1'", "mcp.protocol.transport.host"),
            ("path = '/other'", "mcp.protocol.transport.path"),
            ("type = 'tcp'", "mcp.protocol.transport.type"),
        ] {
            let next = config(&format!("[mcp.protocol.transport]\n{text}\n[gateway]\ndrain = 2\n"));
            assert_eq!(plan(&next), (vec!["gateway.drain"], vec![key]), "the rest is taken over");
            let plan = settings(&before, &next);
            assert_eq!((&plan.config.listen, plan.config.gateway.drain), (&before.listen, next.gateway.drain));
        }
        assert_eq!(plan(&config("[gateway]\ndrain = 1\nrule_seed = 7\n")), (vec![], vec!["gateway.rule_seed"]));
        let next = Config { data_dir: "/elsewhere".into(), ..before.clone() };
        assert_eq!(plan(&next), (vec![], vec!["gateway.data_dir"]));
        let audit = "[mcp.protocol.audit]\nenabled = true\n";
        let next = config(&format!("[gateway]\ndrain = 1\n{audit}"));
        assert_eq!(plan(&next), (vec![], vec!["mcp.protocol.audit.enabled"]));
        let more = config(&format!("[gateway]\ndrain = 1\n{audit}payloads = true\n"));
        let plan = settings(&next, &more);
        assert_eq!((plan.settings, plan.held_back), (vec!["mcp.protocol.audit"], vec![]));
    }

    /// Users, roles and switches do not wait for another key of `auth`, and a removed issuer is gone at once.
    #[test]
    fn a_key_of_auth_that_needs_a_restart_holds_no_other_back() {
        let issuer = |name: &str, skew: u32| {
            format!(
                "[auth.jwt.{name}]\nissuer = 'https://{name}.example'\njwks_url = 'https://{name}.example/keys'\n\
                 audience = ['x']\nclock_skew = {skew}\n"
            )
        };
        // Without this key, the servers are those of the issuers.
        let of = |auth: &str, rest: &str| {
            config(&format!("[auth]\nauthorization_servers = ['https://one.example']\n{auth}{rest}"))
        };
        let (one, two) = (issuer("one", 60), issuer("two", 60));
        let before = of("", &format!("{one}{two}"));
        let changed = "[auth.users.'key:ada']\nroles = ['r']\n[kill_switch]\ntools = ['a/b']\n";
        let plan = settings(&before, &of("resource = 'https://a.example/mcp'\n", &format!("{one}{changed}")));
        assert_eq!(plan.held_back, ["auth.resource"]);
        assert_eq!(plan.settings, ["auth.users", "auth.jwt", "permissions"]);
        assert_eq!(plan.config.auth.issuers.len(), 1);
        // Another issuer needs a restart, and the one whose place it takes is gone all the same.
        let plan = settings(&before, &of("", &format!("{one}{}", issuer("three", 60))));
        let names: Vec<&str> = plan.config.auth.issuers.iter().map(|issuer| issuer.name.as_str()).collect();
        assert_eq!((names, plan.held_back), (vec!["one"], vec!["auth.jwt"]));
        // One that is only changed goes on as it was.
        let plan = settings(&before, &of("", &format!("{one}{}", issuer("two", 30))));
        assert_eq!((plan.config.auth == before.auth, plan.held_back), (true, vec!["auth.jwt"]));
    }

    /// A provider that is removed, or has another address, is gone at once; another one needs a restart.
    #[test]
    fn a_removed_provider_of_people_does_not_wait_for_a_restart() {
        let of = |name: Option<&str>| {
            let section =
                |name| format!("[auth.server.openid]\nissuer = 'https://{name}.example'\nclient_id = 'box'\n");
            let section = name.map_or_else(String::new, section);
            config(&format!("[auth]\nresource = 'https://box.example/mcp'\n[auth.server]\nenabled = true\n{section}"))
        };
        let before = of(Some("one"));
        let after = |name: Option<&str>| {
            let plan = settings(&before, &of(name));
            (provider(&plan.config).map(str::to_owned), plan.settings, plan.held_back)
        };
        assert_eq!(after(Some("one")), (Some("https://one.example".to_owned()), vec![], vec![]));
        assert_eq!(after(None), (None, vec!["auth.server.openid"], vec![]));
        assert_eq!(after(Some("two")), (None, vec!["auth.server.openid"], vec!["auth.server"]));
    }

    #[test]
    fn every_key_that_is_named_exists() {
        let known = |key: &str| {
            let inside =
                |path: &str| path.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
            keys::KEYS.iter().any(|one| inside(one.path))
        };
        for key in LIVE.iter().map(|live| live.key).chain(FIXED.iter().map(|(key, _)| *key)) {
            assert!(known(key), "{key}");
        }
    }

    #[test]
    fn a_backend_is_started_anew_only_where_it_is_another_one() {
        let before = backend("command = 'x'\nenv = { TOKEN = 'one' }\n");
        assert_eq!(course(&before, &before.clone()), Course::Same);
        for (text, expected) in [
            ("command = 'x'\nenv = { TOKEN = 'one' }\ntimeout = 7\n", Course::Retuned { tools: false }),
            ("command = 'x'\nenv = { TOKEN = 'one' }\ncategory = 'files'\n", Course::Retuned { tools: false }),
            ("command = 'x'\nenv = { TOKEN = 'one' }\nmax_children = 2\n", Course::Retuned { tools: false }),
            ("command = 'x'\nenv = { TOKEN = 'one' }\nidle_stop = '10m'\n", Course::Retuned { tools: false }),
            ("command = 'x'\nenv = { TOKEN = 'one' }\nstart = 'first_use'\n", Course::Retuned { tools: false }),
            ("command = 'x'\nenv = { TOKEN = 'one' }\ntools = { exclude = ['a'] }\n", Course::Retuned { tools: true }),
            ("command = 'x'\nenv = { TOKEN = 'two' }\n", Course::Anew),
            ("command = 'y'\nenv = { TOKEN = 'one' }\n", Course::Anew),
            ("command = 'x'\nenv = { TOKEN = 'one' }\nargs = ['-v']\n", Course::Anew),
            ("command = 'x'\nenv = { TOKEN = 'one' }\nera = 'old'\n", Course::Anew),
            ("url = 'http://h/'\n", Course::Anew),
        ] {
            assert_eq!(course(&before, &backend(text)), expected, "{text}");
        }
        let remote = backend("url = 'http://h/'\nheaders = { Authorization = 'one' }\n");
        let other = backend("url = 'http://h/'\nheaders = { Authorization = 'two' }\n");
        assert_eq!(course(&remote, &other), Course::Anew);
    }
}
