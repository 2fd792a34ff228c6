//! Detects backends that lead back to the gateway itself.

use crate::backend::BackendTarget;
use crate::listen::ListenConfig;
use std::path::{Path, PathBuf};

/// Variable with the configurations, one per line, of the gateways that started this process as a backend.
pub const INSIDE: &str = "SIGNALBOX_INSIDE";

/// Returns the value of [`INSIDE`] for backends of the configuration `source`. `own` is the value of this process.
#[must_use]
pub fn inside(own: Option<&str>, source: &Path) -> String {
    let before = own.map(|own| format!("{own}\n")).unwrap_or_default();
    format!("{before}{}", whole(source).display())
}

/// Returns `true` if a gateway with the configuration `source` has started this process, whose value of [`INSIDE`] is
/// `own`.
#[must_use]
pub fn is_inside(own: &str, source: &Path) -> bool {
    let source = whole(source);
    own.lines().any(|line| Path::new(line) == source)
}

fn whole(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Configuration file of a gateway.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OwnFile<'a> {
    /// Not known: the file that an import is about to write.
    Any,
    /// This file, and the one that a process finds if it is given none.
    Known(Option<&'a Path>, Option<&'a Path>),
}

/// Returns `true` if this backend is the gateway that listens at `listen`, or one that runs with the same file.
pub(crate) fn leads_back(target: &BackendTarget, listen: &ListenConfig, own: OwnFile<'_>) -> bool {
    match target {
        BackendTarget::Url { url, .. } => is_listener(url, listen),
        BackendTarget::Command { program, args, .. } => is_own_program(program, args, own),
        _ => false,
    }
}

fn is_listener(url: &http::Uri, listen: &ListenConfig) -> bool {
    let secure = matches!(url.scheme_str(), Some("https" | "wss"));
    let port = url.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let host = url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let here = ["localhost", "127.0.0.1", "::1"].contains(&host) || host == listen.host.to_string();
    // The transport of 2024-11-05 has a path of its own.
    here && port == listen.port && listen.port != 0 && (url.path() == listen.path || url.path() == "/sse")
}

/// Returns `true` for `signalbox`, `signalbox serve` and `signalbox stdio` with the same configuration. Other commands,
/// such as `wrap` and `replay serve`, have servers of their own.
fn is_own_program(program: &str, args: &[String], own: OwnFile<'_>) -> bool {
    if Path::new(program).file_name().is_none_or(|name| name != "signalbox") {
        return false;
    }
    let mut config = None;
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-c" | "--config" => config = words.next().map(String::as_str),
            "--data-dir" | "--log-level" | "--listen" => _ = words.next(),
            "serve" | "stdio" => {}
            word if word.starts_with("--config=") => config = word.strip_prefix("--config="),
            word if word.starts_with('-') => {}
            _ => return false,
        }
    }
    match (own, config) {
        (OwnFile::Any, _) => true,
        (OwnFile::Known(Some(own), _), Some(config)) => whole(Path::new(config)) == whole(own),
        (OwnFile::Known(Some(own), Some(found)), None) => whole(found) == whole(own),
        (OwnFile::Known(..), _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Overrides};

    #[test]
    fn a_listener_by_default_is_that_of_an_empty_configuration() {
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        let loaded = Config::parse(Path::new("signalbox.toml"), "", &env, &Overrides::default()).unwrap();
        assert_eq!(loaded.config.listen, ListenConfig::default());
    }

    #[test]
    fn a_gateway_knows_that_it_runs_inside_itself() {
        let (one, two) = (Path::new("/x/one.toml"), Path::new("/x/two.toml"));
        let first = inside(None, one);
        assert!(is_inside(&first, one) && !is_inside(&first, two));
        let second = inside(Some(&first), two);
        assert!(is_inside(&second, one) && is_inside(&second, two));
    }

    #[test]
    fn the_gateway_itself_is_known_by_its_address_and_its_command() {
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        let warned = |backend: &str| {
            let text = format!("[backends.a]\n{backend}\n[mcp.protocol.transport]\nport = 9000\n");
            let loaded = Config::parse(Path::new("/x/signalbox.toml"), &text, &env, &Overrides::default()).unwrap();
            loaded.warnings.iter().any(|warning| warning.to_string().contains("leads back to this gateway"))
        };
        for own in [
            "url = 'http://127.0.0.1:9000/mcp'",
            "url = 'http://localhost:9000/sse'",
            "url = 'ws://[::1]:9000/mcp'",
            "command = 'signalbox'\nargs = ['--json', 'stdio', '-c', '/x/signalbox.toml']",
            "command = 'signalbox'\nargs = ['stdio', '--config=/x/signalbox.toml']",
        ] {
            assert!(warned(own), "{own}");
        }
        for other in [
            "url = 'http://127.0.0.1:8080/mcp'",
            "url = 'http://127.0.0.1:9000/other'",
            "url = 'http://example.com:9000/mcp'",
            "command = 'signalbox'\nargs = ['stdio', '-c', '/x/other.toml']",
            "command = 'signalbox'\nargs = ['wrap', '--', 'server']",
            "command = 'signalbox'\nargs = ['talk.tape']",
            "command = 'signalbox'",
            "command = 'signalbox'\ndisabled = true",
        ] {
            assert!(!warned(other), "{other}");
        }
        let (own, other) = (Path::new("/x/signalbox.toml"), Path::new("/y/signalbox.toml"));
        let finds =
            |found| is_own_program("/usr/bin/signalbox", &["stdio".to_owned()], OwnFile::Known(Some(own), found));
        assert!(finds(Some(own)) && !finds(Some(other)) && !finds(None));
    }
}
