//! `/metrics` of a real gateway: what it tells of tools, processes, operations and sessions, and the dashboard and
//! alert rules that are made of it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use http::Method;
use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::scene::{call, child, eventually, signalbox};
use std::collections::BTreeSet;
use std::path::Path;

const VERSION: &str = "2025-06-18";

fn config(more: &str) -> String {
    format!("{more}\n{}", child("one", ServedEra::Both, "").unwrap())
}

async fn gateway(more: &str) -> (GatewayProcess, HttpClient) {
    let gateway = GatewayProcess::serve(&config(more)).await.unwrap();
    gateway.ready().await.unwrap();
    let client = HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap();
    (gateway, client)
}

async fn page(gateway: &GatewayProcess) -> String {
    let answer = HttpClient::new(gateway.address()).get("/metrics").await.unwrap();
    assert_eq!(answer.status, 200);
    String::from_utf8(answer.body.to_vec()).unwrap()
}

/// The value of one sample.
fn value(page: &str, sample: &str) -> Option<f64> {
    page.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ')?.parse().ok())
}

async fn calls(client: &HttpClient, tool: &str, arguments: Value) -> Value {
    client.post(&call(1, tool, &arguments).to_string()).await.unwrap().message().unwrap()
}

/// Each listed tool under its qualified name, whatever clients call it; names that nothing has are one.
/// Proves G-28 and G-29.
#[tokio::test(flavor = "multi_thread")]
async fn calls_of_a_tool_are_counted_by_its_qualified_name() {
    let (gateway, client) = gateway("").await;
    for tool in ["greet", "one__greet", "greet"] {
        calls(&client, tool, json!({"name": "Ada"})).await;
    }
    for number in 0..20 {
        assert!(calls(&client, &format!("one__made_up_{number}"), json!({})).await["error"].is_object());
    }
    let page = page(&gateway).await;
    let success = r#"{tool_id="one__greet",status="success"}"#;
    assert_eq!(value(&page, &format!("mcp_tool_invocations_total{success}")), Some(3.0), "{page}");
    assert_eq!(value(&page, &format!("mcp_tool_execution_duration_count{success}")), Some(3.0));
    assert_eq!(value(&page, r#"mcp_tool_invocations_total{tool_id="other",status="error"}"#), Some(20.0));
    assert!(!page.contains("made_up"), "clients cannot add labels");
    assert!(!page.contains("sentinel_"), "these are shown where somebody wants them");
}

/// Thresholds that a reload changes; memory is that of the server's process.
/// Proves G-30.
#[tokio::test(flavor = "multi_thread")]
async fn slow_calls_and_large_processes_are_warned_about() {
    let (gateway, client) = gateway("").await;
    let slow = r#"mcp_performance_warnings_total{tool_id="one__slow",warning_type="slow_execution"}"#;
    let large = r#"mcp_performance_warnings_total{tool_id="one__slow",warning_type="high_memory"}"#;
    calls(&client, "slow", json!({"ms": 30})).await;
    let before = page(&gateway).await;
    assert_eq!((value(&before, slow), value(&before, large)), (Some(0.0), Some(0.0)), "nothing is asked for");
    let held = value(&before, r#"signalbox_backend_memory_bytes{backend="one"}"#).unwrap();
    assert!(held > 500_000.0, "{held}");

    let thresholds = "[mcp.protocol.performance]\nexecution_time_warning = '20ms'\nmemory_usage_warning = 500000";
    std::fs::write(gateway.config_file(), config(thresholds)).unwrap();
    signalbox(&gateway.data_dir(), &["reload"]).await.unwrap();
    for _ in 0..3 {
        calls(&client, "slow", json!({"ms": 30})).await;
    }
    let warned = page(&gateway).await;
    assert_eq!((value(&warned, slow), value(&warned, large)), (Some(3.0), Some(3.0)), "{warned}");

    let generous = "[mcp.protocol.performance]\nexecution_time_warning = '1h'\nmemory_usage_warning = 1000000000000";
    std::fs::write(gateway.config_file(), config(generous)).unwrap();
    signalbox(&gateway.data_dir(), &["reload"]).await.unwrap();
    calls(&client, "slow", json!({"ms": 30})).await;
    let after = page(&gateway).await;
    assert_eq!((value(&after, slow), value(&after, large)), (Some(3.0), Some(3.0)));
}

/// The names of Sentinel.
/// Proves NO-12.
#[tokio::test(flavor = "multi_thread")]
async fn calls_are_shown_under_the_names_of_sentinel_where_the_configuration_says_so() {
    let limits = "[mcp.protocol.rate_limits]\ntool_requests_per_minute = 2\n[gateway.metrics]\nsentinel_names = true";
    let (gateway, client) = gateway(limits).await;
    for _ in 0..3 {
        calls(&client, "greet", json!({"name": "Ada"})).await;
    }
    let page = page(&gateway).await;
    for (sample, expected) in [
        (r#"sentinel_requests_total{tool="one__greet",status="success"}"#, 2.0),
        (r#"sentinel_requests_total{tool="one__greet",status="rate_limited"}"#, 1.0),
        (r#"sentinel_request_duration_seconds_count{tool="one__greet"}"#, 3.0),
        (r#"sentinel_errors_total{tool="one__greet",error_type="rate_limited"}"#, 1.0),
        (r#"sentinel_rate_limit_hits_total{tool="one__greet"}"#, 1.0),
        (r#"sentinel_backend_healthy{backend="one"}"#, 1.0),
    ] {
        assert_eq!(value(&page, sample), Some(expected), "{sample}\n{page}");
    }
}

/// The four durations of the semantic conventions of OpenTelemetry for MCP.
#[tokio::test(flavor = "multi_thread")]
async fn operations_and_sessions_have_durations_on_both_sides() {
    let (gateway, client) = gateway("").await;
    calls(&client, "greet", json!({"name": "Ada"})).await;
    calls(&client, "test_error_handling", json!({})).await;
    client.send(Method::DELETE, "/mcp", bytes::Bytes::new()).await.unwrap();
    // The last connection to a server that is gone from the configuration ends.
    std::fs::write(gateway.config_file(), child("two", ServedEra::Both, "").unwrap()).unwrap();
    signalbox(&gateway.data_dir(), &["reload"]).await.unwrap();
    let ended = async || {
        let page = page(&gateway).await;
        value(&page, r#"mcp_client_session_duration_seconds_count{network_transport="pipe"}"#).map(|_| page)
    };
    let page = eventually("a session with a server has ended", ended).await.unwrap();
    for side in ["server", "client"] {
        let name = format!("mcp_{side}_operation_duration_seconds");
        let good = format!(r#"{name}_count{{mcp_method_name="tools/call"}}"#);
        assert_eq!(value(&page, &good), Some(1.0), "{good}\n{page}");
        let bad = format!(r#"{name}_count{{mcp_method_name="tools/call",error_type="tool_error"}}"#);
        assert_eq!(value(&page, &bad), Some(1.0), "{bad}\n{page}");
        let bucket = format!(r#"{name}_bucket{{mcp_method_name="tools/call",le="300"}}"#);
        assert_eq!(value(&page, &bucket), Some(1.0), "the bounds are those of the conventions");
    }
    let sessions = r#"mcp_server_session_duration_seconds_count{network_transport="tcp"}"#;
    assert_eq!(value(&page, sessions), Some(1.0), "{page}");
}

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/monitoring").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// The alert rules: their names and expressions. Of YAML it reads what the file uses, and refuses everything else.
fn rules(text: &str) -> Vec<(String, String)> {
    let mut rules: Vec<(String, String)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let deep = line.len() - line.trim_start().len();
        let (key, value) = line.trim_start().split_once(':').unwrap_or_else(|| panic!("line {number}: {line}"));
        let value = value.trim();
        match (deep, key) {
            (0, "groups") | (4, "rules") | (8, "labels" | "annotations") => assert_eq!(value, "", "{line}"),
            (2, "- name") => assert_eq!(value, "signalbox"),
            (6, "- alert") => rules.push((value.to_owned(), String::new())),
            (8, "expr") => rules.last_mut().unwrap().1 = value.to_owned(),
            (8, "for") => assert!(value.trim_end_matches('m').parse::<u32>().is_ok(), "{line}"),
            (10, "severity") => assert!(["info", "warning", "critical"].contains(&value), "{line}"),
            (10, "summary") => assert!(value.trim_matches('"').ends_with('.'), "{line}"),
            _ => panic!("line {number}: {line}"),
        }
    }
    assert!(rules.iter().all(|(_, expression)| !expression.is_empty()));
    rules
}

/// The metrics that an expression names, each with the labels that it asks of them.
fn named(expression: &str) -> Vec<(String, BTreeSet<String>)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let mut grouped = BTreeSet::new();
    let mut rest = String::new();
    for (number, part) in expression.split("by (").enumerate() {
        match part.split_once(')').filter(|_| number > 0) {
            Some((labels, after)) => {
                grouped.extend(labels.split(',').map(|label| label.trim().to_owned()));
                rest.push_str(after);
            }
            None => rest.push_str(part),
        }
    }
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = rest[at..].find(is_word).map(|start| at + start) {
        let end = rest[start..].find(|c| !is_word(c)).map_or(rest.len(), |end| start + end);
        let (word, after) = (&rest[start..end], rest[end..].chars().next());
        at = end;
        if after == Some('{') {
            let close = end + rest[end..].find('}').unwrap();
            let pairs = rest[end + 1..close].split(',');
            let own = pairs.map(|pair| pair.split(['=', '!']).next().unwrap().trim().to_owned());
            found.push((word.to_owned(), own.chain(grouped.clone()).collect()));
            at = close + 1;
        } else if word.contains('_') && after != Some('(') {
            found.push((word.to_owned(), grouped.clone()));
        }
        if rest[at..].starts_with('[') {
            at += rest[at..].find(']').unwrap();
        }
    }
    found
}

/// True if the page has a family of this name, and a sample of it with these labels; `le` is added by histograms.
fn shows(page: &str, metric: &str, labels: &BTreeSet<String>) -> bool {
    let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| metric.strip_suffix(end)).unwrap_or(metric);
    let typed = [family, metric].iter().any(|name| page.contains(&format!("# TYPE {name} ")));
    let has =
        |line: &str, label: &String| ['{', ','].iter().any(|before| line.contains(&format!("{before}{label}=\"")));
    let mut samples = page.lines().filter(|line| line.split(['{', ' ']).next() == Some(metric));
    typed && (labels.is_empty() || samples.any(|line| labels.iter().all(|label| has(line, label))))
}

/// The dashboard and the alert rules name metrics and labels that `/metrics` shows.
/// Proves NO-18.
#[tokio::test(flavor = "multi_thread")]
async fn every_metric_of_the_dashboard_and_the_alert_rules_is_shown() {
    let (gateway, client) = gateway("").await;
    calls(&client, "greet", json!({"name": "Ada"})).await;
    let page = page(&gateway).await;

    let dashboard: Value = serde_json::from_str(&example("dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() >= 5, "NO-18 wants five panels");
    let mut expressions = Vec::new();
    for panel in panels {
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty() && panel["title"].is_string(), "{panel}");
        let expression = |target: &Value| target["expr"].as_str().unwrap().to_owned();
        expressions.extend(targets.iter().map(expression));
    }
    let rules = rules(&example("alerts.yml"));
    let names: BTreeSet<&String> = rules.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), rules.len(), "every alert has a name of its own");
    expressions.extend(rules.iter().map(|(_, expression)| expression.clone()));

    let mut count = 0;
    for expression in &expressions {
        // `up` is Prometheus' own.
        for (metric, labels) in named(expression).into_iter().filter(|(metric, _)| metric != "up") {
            assert!(shows(&page, &metric, &labels), "{metric} with {labels:?} of {expression}\n{page}");
            count += 1;
        }
    }
    assert!(count >= expressions.len(), "{count} metrics in {} expressions", expressions.len());
    let none = BTreeSet::new();
    assert!(
        !shows(&page, "mcp_tool_invocation_total", &none)
            && !shows(&page, "mcp_tool_invocations_total", &["tool".to_owned()].into())
    );
}

/// A relay that waits for its first page is not down, so that the alert for that does not fire.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_relay_is_asleep_and_not_down() {
    let (gateway, _client) = gateway("[relay]\nenabled = true\n").await;
    let page = page(&gateway).await;
    assert!(page.contains("signalbox_backend_asleep{backend=\"relay\"} 1\n"), "{page}");
}

/// Readers whom permissions restrict find no names of what is hidden from them; administrators, the bearer of the
/// page's own secret and the owner at the control socket find all.
#[tokio::test(flavor = "multi_thread")]
async fn names_of_hidden_tools_and_backends_are_in_no_metrics() {
    let access = "[mcp.protocol.security]\nrequire_authentication = true\n[gateway.metrics]\nsentinel_names = true\n\
        [roles.reader]\nallow = ['one/greet']\n[roles.admin]\nallow = ['*']\n\
        [auth.users.'key:ada']\nroles = ['reader']\n[auth.users.'key:root']\nroles = ['admin']\n\
        [backends.broken]\ncommand = '/no/such/program'\n";
    let text = config(&format!("{access}{}", child("vault", ServedEra::Old, "").unwrap()));
    for (secret, restricted) in [("", true), ("[auth]\nmetrics_secret_env = 'PATH'\n", false)] {
        let gateway = GatewayProcess::serve(&format!("{text}{secret}")).await.unwrap();
        gateway.ready().await.unwrap();
        let key = async |name: &str| {
            let key = signalbox(&gateway.data_dir(), &["keys", "new", name]).await.unwrap();
            HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {}", key.trim()))
        };
        let (ada, root) = (key("ada").await, key("root").await);
        let session = async || root.clone().initialize(VERSION, json!({})).await.ok();
        let session = eventually("the key is known", session).await.unwrap();
        for tool in ["one__greet", "one__slow", "vault__greet"] {
            calls(&session, tool, json!({"name": "Ada", "ms": 1})).await;
        }
        let read = async |client: &HttpClient, path: &str| {
            String::from_utf8(client.get(path).await.unwrap().body.to_vec()).unwrap()
        };
        let ready = read(&HttpClient::new(gateway.address()), "/readyz").await;
        assert!(!ready.contains("broken") && read(&root, "/readyz").await.contains("broken"), "{ready}");
        let monitor = HttpClient::new(gateway.address())
            .with("authorization", &format!("Bearer {}", std::env::var("PATH").unwrap()));
        let all = read(if restricted { &root } else { &monitor }, "/metrics").await;
        for name in [r#"tool_id="one__slow""#, r#"tool_id="vault__greet""#, r#"backend="vault""#, r#"backend="broken""#]
        {
            assert!(all.contains(name), "{name}: {all}");
        }
        if restricted {
            let few = read(&ada, "/metrics").await;
            for name in ["vault", "broken", "one__slow"] {
                assert!(!few.contains(name), "{name}: {few}");
            }
            for name in
                [r#"tool_id="one__greet""#, r#"tool="one__greet""#, r#"backend="one""#, "signalbox_uptime_seconds "]
            {
                assert!(few.contains(name), "{name}: {few}");
            }
        }
    }
}
