//! The banner that `serve` prints when it is ready.

use signalbox_assembly::assemble;
use signalbox_config::{Config, Transport};
use signalbox_tape::recorder::Sampling;
use signalbox_transport::tls::GeneratedCertificate;
use signalbox_wire::timestamp;
use std::fmt::Write as _;

/// Formats the banner: the address, the folders, ways to connect, and what to do next.
#[must_use]
pub fn serving(config: &Config, url: &str, not_recording: Option<&str>) -> String {
    let mut text = format!("signalbox {} serves MCP at {url}\n", env!("CARGO_PKG_VERSION"));
    let mut line = |label: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {label:<9} {value}");
    };
    line("data", &config.data_dir.display().to_string());
    line("config", &source(config));
    line("backends", &backends(config));
    match not_recording {
        Some(why) => line("tape", &format!("NOTHING CAN BE RECORDED: {why}")),
        None => line("tape", &recording(config)),
    }
    let needs_key = config.auth.required && config.auth.server.is_none();
    for (label, value) in connect(config.listen.transport, url, needs_key) {
        line(label, &value);
    }
    if needs_key {
        line("KEY", "is a credential of the caller; `signalbox keys new NAME` makes one");
    }
    if config.relay.is_some()
        && let Some(base) = url.strip_suffix(config.listen.path.as_str())
    {
        line("relay", &format!("a page with tools at {base}/relay/demo/, its agents at {base}/api/mcp"));
    }
    line("next", next(config));
    text
}

/// Formats how a client can trust our self-signed certificate.
#[must_use]
pub fn trusting(own: &GeneratedCertificate) -> String {
    let ca_file = own.ca_file.display();
    let GeneratedCertificate { info, .. } = own;
    format!(
        "  trust     {ca_file}, for this machine until {}\n  \
           sha256    {}\n  \
           as in     NODE_EXTRA_CA_CERTS={ca_file} or SSL_CERT_FILE={ca_file} or curl --cacert {ca_file}\n",
        timestamp::readable(info.not_after),
        info.fingerprint,
    )
}

/// Lists the ways to connect, and those that are off. With `needs_key` the lines have a placeholder for the caller's
/// key.
fn connect(transport: Transport, url: &str, needs_key: bool) -> Vec<(&'static str, String)> {
    let (flag, member) = match needs_key {
        true => (r#" --header "Authorization: Bearer KEY""#, r#", "headers": {"Authorization": "Bearer KEY"}"#),
        false => ("", ""),
    };
    let http = |url: &str| {
        vec![
            ("connect", format!("claude mcp add --transport http signalbox {url}{flag}")),
            ("or", format!(r#"{{"mcpServers": {{"signalbox": {{"type": "http", "url": "{url}"{member}}}}}}}"#)),
        ]
    };
    match transport {
        Transport::Http => http(url),
        Transport::WebSocket => {
            let mut lines = http(&url.replacen("ws", "http", 1));
            lines.insert(
                0,
                ("speak", "WebSocket with subprotocol `mcp`, or Streamable HTTP, at the same address".to_owned()),
            );
            lines
        }
        Transport::Tcp => vec![
            ("speak", "one JSON-RPC message per line, each connection a session of its own".to_owned()),
            (
                "absent",
                "/healthz, /readyz and /metrics, which need type = \"http\"; `signalbox status` works".to_owned(),
            ),
        ],
    }
}

fn source(config: &Config) -> String {
    match &config.source {
        Some(file) => file.display().to_string(),
        None => "none found, using defaults".to_owned(),
    }
}

/// Describes what is recorded. Users of a gateway that records must be able to know it.
fn recording(config: &Config) -> String {
    if !config.record.enabled {
        return "nothing is recorded: `record.enabled` is false".to_owned();
    }
    let recorder = config.record.recorder();
    let is_whole = matches!(recorder.sampling, Sampling::All) && recorder.priorities.rules.is_empty();
    let what = match is_whole && recorder.filter.is_all() {
        true => "every call is recorded".to_owned(),
        false if is_whole => "only calls that `record` selects are recorded".to_owned(),
        false => format!("not every call is recorded ({})", recorder.sampling_words()),
    };
    let secrets =
        if config.record.redaction.is_none() { "including secrets" } else { "with the usual secrets redacted" };
    format!("{what}, {secrets}; see `signalbox tape show last`")
}

fn backends(config: &Config) -> String {
    if assemble::uses_demo(config) {
        return format!(
            "none configured: the demo tools directory_list, echo and countdown look at {}",
            config.gateway.demo_root.display()
        );
    }
    let names: Vec<&str> = config.backends.iter().filter(|one| !one.disabled).map(|one| one.name.as_str()).collect();
    if names.is_empty() { "all are disabled".to_owned() } else { names.join(", ") }
}

fn next(config: &Config) -> &'static str {
    if assemble::uses_demo(config) {
        "bring your own servers: `signalbox import YOUR_CLIENTS_MCP.json -o signalbox.toml`, then start again"
    } else {
        "`signalbox status` shows the state of the backends, `signalbox tools list` what they offer"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_config::{ConfigLocation, Overrides};

    /// Proves G-32.
    #[test]
    fn the_banner_says_what_is_spoken_and_what_is_not_there() {
        let lines = |transport, url: &str| {
            let lines = connect(transport, url, false);
            lines.into_iter().map(|(label, value)| format!("{label}: {value}")).collect::<Vec<_>>().join("\n")
        };
        let websocket = lines(Transport::WebSocket, "ws://127.0.0.1:8080/mcp");
        assert!(websocket.starts_with("speak: WebSocket"), "{websocket}");
        assert!(websocket.contains("signalbox http://127.0.0.1:8080/mcp"), "{websocket}");
        let secure = lines(Transport::WebSocket, "wss://127.0.0.1:8080/mcp");
        assert!(secure.contains("signalbox https://127.0.0.1:8080/mcp"), "{secure}");
        let tcp = lines(Transport::Tcp, "tcp://127.0.0.1:8080");
        assert!(tcp.contains("absent: /healthz, /readyz and /metrics") && !tcp.contains("http://"), "{tcp}");
    }

    #[test]
    fn with_authentication_the_lines_to_connect_have_the_header() {
        let env = |name: &str| (name == "HOME").then(|| "/home/me".to_owned());
        let mut config = Config::load(&ConfigLocation::Defaults, &env, &Overrides::default()).unwrap().config;
        let shown = |config: &Config| serving(config, "http://127.0.0.1:8080/mcp", None);
        assert!(!shown(&config).contains("KEY"), "{}", shown(&config));
        config.auth.required = true;
        let text = shown(&config);
        assert!(text.contains("http://127.0.0.1:8080/mcp --header \"Authorization: Bearer KEY\"\n"), "{text}");
        assert!(text.contains(r#""headers": {"Authorization": "Bearer KEY"}}}}"#), "{text}");
        assert!(text.contains("signalbox keys new NAME"), "{text}");
    }

    #[test]
    fn the_banner_says_that_calls_are_recorded_only_where_all_are() {
        let env = |name: &str| (name == "HOME").then(|| "/home/me".to_owned());
        let mut config = Config::load(&ConfigLocation::Defaults, &env, &Overrides::default()).unwrap().config;
        assert!(recording(&config).starts_with("every call is recorded, with"), "{}", recording(&config));
        config.record.sampling = Sampling::Slow { took: std::time::Duration::from_secs(1) };
        assert!(
            recording(&config).starts_with("not every call is recorded (slower than 1s)"),
            "{}",
            recording(&config)
        );
    }

    #[test]
    fn the_banner_says_where_and_how() {
        let env = |name: &str| (name == "HOME").then(|| "/home/me".to_owned());
        let config = Config::load(&ConfigLocation::Defaults, &env, &Overrides::default()).unwrap().config;
        assert_eq!(
            serving(&config, "http://127.0.0.1:8080/mcp", None),
            concat!(
                "signalbox ",
                env!("CARGO_PKG_VERSION"),
                " serves MCP at http://127.0.0.1:8080/mcp\n",
                "  data      /home/me/.local/state/signalbox\n",
                "  config    none found, using defaults\n",
                "  backends  none configured: the demo tools directory_list, echo and countdown look at .\n",
                "  tape      every call is recorded, with the usual secrets redacted; see `signalbox tape show last`\n",
                "  connect   claude mcp add --transport http signalbox http://127.0.0.1:8080/mcp\n",
                "  or        {\"mcpServers\": {\"signalbox\": {\"type\": \"http\", \"url\": \"http://127.0.0.1:8080/mcp\"}}}\n",
                "  next      bring your own servers: `signalbox import YOUR_CLIENTS_MCP.json -o signalbox.toml`, then start again\n",
            )
        );
    }
}
