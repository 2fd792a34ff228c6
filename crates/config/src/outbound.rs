//! Reads the table `auth.outbound`: the addresses that OAuth requests may go to, and how they are sent.

use super::backend_auth::url;
use super::error::{ConfigError, Problem};
use super::read::Table;
use super::tls::file;
use super::values::bad;
use signalbox_oauth_client::OutboundSettings;
use signalbox_oauth_client::client_identity::is_client_metadata_url;
use signalbox_transport::tls::BackTlsSpec;

pub(super) fn check(table: &Table<'_>) -> Result<OutboundSettings, ConfigError> {
    let mut allow = Vec::new();
    for text in table.texts("allow")? {
        let entry = text.value.parse();
        allow.push(
            entry.map_err(|_| bad(table, &text, "a host such as `localhost`, or a network such as `10.0.0.0/8`"))?,
        );
    }
    let client_metadata_url = table.text("client_metadata_url")?;
    if let Some(text) = client_metadata_url.as_ref().filter(|text| !is_client_metadata_url(&text.value)) {
        return Err(bad(table, text, "an https address with a path, without query and fragment"));
    }
    let key_command: Vec<String> = table.texts("key_command")?.into_iter().map(|text| text.value).collect();
    if table.has("key_command") && key_command.first().is_none_or(String::is_empty) {
        return Err(table.key_error("key_command", Problem::BadHiddenValue("a program and its arguments")));
    }
    let public_url = url(table, "public_url")?;
    if public_url.as_deref().is_some_and(|url| !may_be_redirected_to(url)) {
        let problem = Problem::BadHiddenValue("an https address, or one of loopback: browsers bring codes there");
        return Err(table.key_error("public_url", problem));
    }
    Ok(OutboundSettings {
        allow,
        tls: BackTlsSpec { ca_file: file(table, "ca_file")?, ..BackTlsSpec::default() },
        client_metadata_url: client_metadata_url.map(|text| text.value),
        public_url,
        key_command,
    })
}

/// Returns `true` for https and for addresses on this machine, the only ones that may receive authorization codes.
fn may_be_redirected_to(url: &str) -> bool {
    let host = url.parse::<http::Uri>().ok().and_then(|uri| uri.host().map(str::to_owned)).unwrap_or_default();
    let inner = host.trim_matches(['[', ']']);
    url.starts_with("https://")
        || inner == "localhost"
        || inner.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use crate::{Config, Overrides};
    use std::path::Path;

    #[test]
    fn nothing_is_allowed_unless_the_file_says_so() {
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        let load = |text: &str| {
            let loaded = Config::parse(Path::new("a.toml"), text, &env, &Overrides::default());
            loaded.map(|loaded| loaded.config.outbound).map_err(|error| error.to_string())
        };
        assert!(load("").unwrap().allow.is_empty());
        let some = load("[auth.outbound]\nallow = [\"localhost\", \"10.0.0.0/8\"]\nkey_command = [\"pass\"]").unwrap();
        assert_eq!((some.allow.len(), some.key_command.len()), (2, 1));
        for (bad, says) in [
            ("allow = [\"http://x\"]", "allow"),
            ("client_metadata_url = \"http://x/y\"", "an https address with a path"),
            ("public_url = \"x\"", "an https address"),
            ("public_url = \"http://gate.example\"", "an https address, or one of loopback"),
            ("key_command = []", "a program and its arguments"),
        ] {
            let error = load(&format!("[auth.outbound]\n{bad}")).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
