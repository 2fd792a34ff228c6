//! Compares two configurations: which backends change, and which settings need a restart.

use super::ReloadError;
use signalbox_config::{BackendConfig, Config};

/// A setting that is taken over while the process runs.
struct Live {
    key: &'static str,
    differs: fn(&Config, &Config) -> bool,
    copy: fn(&Config, &mut Config),
}

macro_rules! live {
    ($key:literal, $($field:ident).+) => {
        Live {
            key: $key,
            differs: |before, next| before.$($field).+ != next.$($field).+,
            copy: |next, into| into.$($field).+.clone_from(&next.$($field).+),
        }
    };
}

/// Every one of them. What is not here needs a restart.
const LIVE: &[Live] = &[
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
    live!("mcp.protocol.rate_limits", rate_limits),
    live!("tools", tool_labels),
    live!("permissions", permissions),
    live!("mcp.protocol.performance", performance),
];

/// A setting that is fixed at the start.
type Fixed = (&'static str, fn(&Config, &Config) -> bool);

/// Those that have a name of their own in the error.
const FIXED: &[Fixed] = &[
    ("mcp.protocol.transport.type", |before, next| before.listen.transport != next.listen.transport),
    ("mcp.protocol.transport.host", |before, next| before.listen.host != next.listen.host),
    ("mcp.protocol.transport.port", |before, next| before.listen.port != next.listen.port),
    ("mcp.protocol.transport.path", |before, next| before.listen.path != next.listen.path),
    ("auth.outbound", |before, next| before.outbound != next.outbound),
    ("mcp.protocol.transport.tls", |before, next| before.listen.tls != next.listen.tls),
    ("gateway.rule_seed", |before, next| before.gateway.rule_seed != next.gateway.rule_seed),
    ("record", |before, next| before.record != next.record),
    ("mcp.protocol.audit", |before, next| before.audit != next.audit),
    ("relay", |before, next| before.relay != next.relay),
    ("seal", |before, next| before.seal != next.seal),
    ("auth", |before, next| {
        let mut followed = before.clone();
        copy_live(next, &mut followed);
        followed.auth != next.auth
    }),
    ("gateway.data_dir", |before, next| before.data_dir != next.data_dir),
];

/// The keys outside `backends` whose values differ.
///
/// # Errors
/// If one of them needs a restart.
pub(super) fn settings(before: &Config, next: &Config) -> Result<Vec<&'static str>, ReloadError> {
    let fixed: Vec<&'static str> =
        FIXED.iter().filter(|(_, differs)| differs(before, next)).map(|(key, _)| *key).collect();
    if !fixed.is_empty() {
        return Err(ReloadError::NeedsRestart(fixed));
    }
    let mut followed = before.clone();
    copy_live(next, &mut followed);
    // The file may appear after the start, and the backends are compared one by one.
    followed.source.clone_from(&next.source);
    followed.backends.clone_from(&next.backends);
    if followed != *next {
        return Err(ReloadError::NeedsRestart(vec!["a setting of the gateway"]));
    }
    Ok(LIVE.iter().filter(|live| (live.differs)(before, next)).map(|live| live.key).collect())
}

fn copy_live(next: &Config, into: &mut Config) {
    for live in LIVE {
        (live.copy)(next, into);
    }
}

/// How a backend that has the same name before and after goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    /// As it is.
    Same,
    /// With its connections, under other terms; its tools are listed again where the filter differs.
    Retuned {
        /// Another filter.
        tools: bool,
    },
    /// As another one, which is restarted.
    Anew,
}

/// Compares two configurations of a backend. What is not known to be harmless is a reason to restart it.
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
        assert_eq!(settings(&before, &before), Ok(Vec::new()));
        let next = config("[gateway]\ndrain = 2\nlog_level = 'debug'\nallowed_hosts = ['a.example']\n");
        assert_eq!(settings(&before, &next), Ok(vec!["gateway.drain", "gateway.allowed_hosts", "gateway.log_level"]));
        for (text, key) in [
            ("port = 1", "mcp.protocol.transport.port"),
            ("host = '::1'", "mcp.protocol.transport.host"),
            ("path = '/other'", "mcp.protocol.transport.path"),
            ("type = 'tcp'", "mcp.protocol.transport.type"),
        ] {
            let next = config(&format!("[mcp.protocol.transport]\n{text}\n[gateway]\ndrain = 2\n"));
            let refused = settings(&before, &next).unwrap_err();
            assert_eq!(refused, ReloadError::NeedsRestart(vec![key]));
            let text = refused.to_string();
            assert!(text.contains(key) && text.contains("restart"), "{text}");
        }
        let seeded = settings(&before, &config("[gateway]\nrule_seed = 7\n"));
        assert_eq!(seeded, Err(ReloadError::NeedsRestart(vec!["gateway.rule_seed"])));
        let auth = "[auth.users.'key:ada']\nroles = ['r']\n[auth.groups.ops]\nroles = ['r']\n[auth]\ndefault_trust = 'community'\n";
        let live = settings(&before, &config(&format!("[gateway]\ndrain = 1\n{auth}")));
        assert_eq!(live, Ok(vec!["auth.users", "auth.groups", "auth.default_trust"]));
        let fixed =
            settings(&before, &config(&format!("[gateway]\ndrain = 1\n{auth}resource = 'https://a.example/mcp'\n")));
        assert_eq!(fixed, Err(ReloadError::NeedsRestart(vec!["auth"])));
        let next = Config { data_dir: "/elsewhere".into(), ..before.clone() };
        assert_eq!(settings(&before, &next), Err(ReloadError::NeedsRestart(vec!["gateway.data_dir"])));
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
