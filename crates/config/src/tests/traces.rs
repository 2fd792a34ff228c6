//! The table `gateway.otel`, in a build that takes it. What another build says of it is tested by the program's own
//! test `traces`.

use super::*;

#[test]
fn traces_go_where_the_file_says_or_the_environment_or_where_collectors_listen() {
    let with = |variables: &'static [(&str, &str)], text: &str| {
        let env = move |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned()).or_else(|| env(name))
        };
        let loaded = Config::parse(Path::new("signalbox.toml"), text, &env, &Overrides::default());
        loaded.map(|loaded| loaded.config.gateway.otel.map(|otel| otel.endpoint.to_string()))
    };
    let on = "[gateway.otel]\nenabled = true\n";
    let general = &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://box:1/base/")];
    let both =
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://box:1"), ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t:2/x")];
    assert_eq!(with(general, "").unwrap(), None);
    assert_eq!(with(&[], on).unwrap().as_deref(), Some("http://localhost:4318/v1/traces"));
    assert_eq!(with(general, on).unwrap().as_deref(), Some("http://box:1/base/v1/traces"));
    assert_eq!(with(both, on).unwrap().as_deref(), Some("http://t:2/x"));
    let named = format!("{on}endpoint = 'http://mine:3'\n");
    assert_eq!(with(both, &named).unwrap().as_deref(), Some("http://mine:3/v1/traces"));
    let bad = &[("OTEL_EXPORTER_OTLP_ENDPOINT", "box:1")];
    let error = with(bad, on).unwrap_err().to_string();
    assert_eq!(error, "environment: OTEL_EXPORTER_OTLP_ENDPOINT: expected an address like `http://127.0.0.1:4318`");
}

#[test]
fn metrics_go_to_an_address_of_their_own_or_to_the_collector_of_traces() {
    let with = |variables: &'static [(&str, &str)], text: &str| {
        let env = move |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned()).or_else(|| env(name))
        };
        let loaded = Config::parse(Path::new("signalbox.toml"), text, &env, &Overrides::default());
        loaded.map(|loaded| loaded.config.gateway.otel_metrics.map(|otel| (otel.endpoint.to_string(), otel.interval)))
    };
    let on = "[gateway.otel]\nmetrics = true\n";
    let minute = Duration::from_secs(60);
    let at = |url: &str| Some((url.to_owned(), minute));
    let general = &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://box:1/base/")];
    let own =
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://box:1"), ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://m:2/x")];
    assert_eq!(with(&[], "[gateway.otel]\nenabled = true\n").unwrap(), None);
    assert_eq!(with(&[], on).unwrap(), at("http://localhost:4318/v1/metrics"));
    assert_eq!(with(general, on).unwrap(), at("http://box:1/base/v1/metrics"));
    assert_eq!(with(own, on).unwrap(), at("http://m:2/x"));
    let shared = format!("{on}endpoint = 'http://mine:3'\n");
    assert_eq!(with(own, &shared).unwrap(), at("http://mine:3/v1/metrics"));
    let both = format!("{shared}metrics_endpoint = 'http://other:4'\nmetrics_interval = '5s'\n");
    assert_eq!(with(own, &both).unwrap(), Some(("http://other:4/v1/metrics".to_owned(), Duration::from_secs(5))));
    let error = with(&[], &format!("{on}endpoint = 'http://mine:3/spans'\n")).unwrap_err().to_string();
    assert!(error.contains("gateway.otel.metrics: needs `metrics_endpoint`"), "{error}");
}

#[test]
fn what_is_wrong_with_traces_is_said() {
    for (key, expected) in [
        ("sample_ratio = 1.5", "sample_ratio: expected a number from 0 to 1, found `1.5`"),
        ("sample_ratio = 'all'", "sample_ratio: expected a number from 0 to 1, found a string"),
        ("service_name = ''", "service_name: expected a name of 1 to 255 bytes, found an empty string"),
        ("endpoint = 'https://h'", "endpoint: a collector behind `https://` is not in this version yet;"),
        ("metrics = 1", "metrics: expected `true` or `false`, found a whole number"),
        (
            "metrics_interval = '2h'",
            "metrics_interval: expected a time such as \"30s\", from 0.001 to 3600 seconds, found `7200`",
        ),
        ("metrics_endpoint = 'box'", "metrics_endpoint: expected an address like `http://127.0.0.1:4318`"),
        ("headers = { Host = 'h' }", "headers.Host: the gateway sets this header itself; remove it"),
    ] {
        let error = load("signalbox.toml", &format!("[gateway.otel]\n{key}\n")).expect_err(key).to_string();
        assert!(error.contains(expected), "{error}");
    }
    let otel = good("[gateway.otel]\nenabled = true\nheaders = { Authorization = 'Basic c2VjcmV0' }\n").gateway.otel;
    assert!(!format!("{otel:?}").contains("c2VjcmV0"));
}
