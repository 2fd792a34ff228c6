//! Metrics that a collector gets: what `/metrics` shows of calls, operations and sessions.

use crate::backend::Era;
use crate::collector::Collector;
use crate::program::eventually;
use crate::scene::{SECRET, Scene, call};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// What PyPI `opentelemetry-proto` reads of a request; nothing where it is not installed.
fn read(body: &[u8]) -> Option<Value> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("request.metrics");
    std::fs::write(&file, body).unwrap();
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients/run");
    let output = Command::new(run).arg("otlp-check").arg(&file).output().unwrap();
    if output.status.code() == Some(77) {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "otlp-check is not installed");
        eprintln!("SKIP otlp-check: run script/install-test-deps");
        return None;
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn labels(point: &Value) -> Value {
    let pairs = point["attributes"].as_array().into_iter().flatten();
    pairs.map(|pair| (pair["key"].as_str().unwrap().to_owned(), pair["value"]["stringValue"].clone())).collect()
}

/// The metrics of tools and the four durations of the semantic conventions, by OTLP and without traces; the numbers are
/// those of `/metrics`.
/// Proves G-28, G-29 and G-30.
#[tokio::test]
async fn metrics_are_exported_by_otlp() {
    let collector = Collector::start().await;
    let config = format!(
        "[gateway.otel]\nmetrics = true\nmetrics_endpoint = {:?}\nmetrics_interval = \"200ms\"\nservice_name = \"my box\"\n\
         headers = {{ x-key = \"k\" }}\n[mcp.protocol.performance]\nexecution_time_warning = \"1h\"\n",
        collector.url()
    );
    let scene = Scene::new(Era::Old, &config).await;
    let client = scene.client(Era::Old).await;
    for tool in ["echo", "echo", "sad", "nowhere"] {
        client.post(&call(Era::Old, tool, ""), &[]).await;
    }
    // The next reading that is made after all that.
    let before = collector.exports().len();
    let export = eventually(async || collector.exports().get(before + 1).cloned()).await;
    assert_eq!(
        (export.path.as_str(), &export.headers["content-type"], &export.headers["x-key"]),
        ("/v1/metrics", &"application/x-protobuf".parse().unwrap(), &"k".parse().unwrap())
    );
    let page = scene.metrics().await;
    assert!(!String::from_utf8_lossy(&export.body).contains(SECRET));
    assert!(collector.exports().iter().all(|export| export.path == "/v1/metrics"), "nobody asked for traces");
    let Some(request) = read(&export.body) else { return };
    let of_resource = &request["resourceMetrics"][0];
    assert_eq!(labels(&of_resource["resource"])["service.name"], "my box", "{request}");
    let metrics = of_resource["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let named = |name: &str| {
        metrics.iter().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("{name}: {request}"))
    };
    let point = |name: &str, wanted: Value| {
        let points = |kind: &str| named(name)[kind]["dataPoints"].as_array().cloned().unwrap_or_default();
        let mut all = points("sum").into_iter().chain(points("histogram"));
        all.find(|point| labels(point) == wanted).unwrap_or_else(|| panic!("{name} {wanted}: {request}"))
    };
    let of_echo = json!({"tool_id": "only__echo", "status": "success"});
    assert_eq!(point("mcp_tool_invocations_total", of_echo.clone())["asInt"], "2");
    let took = point("mcp_tool_execution_duration", of_echo);
    let counts: Vec<u64> =
        took["bucketCounts"].as_array().unwrap().iter().map(|count| count.as_str().unwrap().parse().unwrap()).collect();
    assert_eq!((took["count"].as_str(), counts.iter().sum::<u64>()), (Some("2"), 2), "{took}");
    assert_eq!(counts.len(), took["explicitBounds"].as_array().unwrap().len() + 1);
    assert_eq!(took["explicitBounds"][0], 0.001);
    // The page tells the same in its own way.
    for (at, (bound, within)) in [("0.001", counts[0]), ("0.0025", counts[0] + counts[1])].into_iter().enumerate() {
        let line = format!(
            "mcp_tool_execution_duration_bucket{{tool_id=\"only__echo\",status=\"success\",le=\"{bound}\"}} {within}"
        );
        assert!(page.contains(&line), "{at}: {line}\n{page}");
    }
    let sum = format!("mcp_tool_execution_duration_sum{{tool_id=\"only__echo\",status=\"success\"}} {}", took["sum"]);
    assert!(page.contains(&sum), "{sum}\n{page}");
    assert_eq!(point("mcp_tool_invocations_total", json!({"tool_id": "only__sad", "status": "error"}))["asInt"], "1");
    let warned = json!({"tool_id": "only__echo", "warning_type": "slow_execution"});
    assert_eq!(point("mcp_performance_warnings_total", warned)["asInt"], "0");
    let operation = point("mcp.server.operation.duration", json!({"mcp.method.name": "tools/call"}));
    assert_eq!((&operation["count"], &operation["explicitBounds"][0]), (&json!("2"), &json!(0.01)));
    point("mcp.client.operation.duration", json!({"mcp.method.name": "tools/call"}));
    for name in ["mcp_tool_execution_duration", "mcp.server.operation.duration"] {
        let metric = named(name);
        assert_eq!(
            (&metric["unit"], &metric["histogram"]["aggregationTemporality"]),
            (&json!("s"), &json!("AGGREGATION_TEMPORALITY_CUMULATIVE"))
        );
    }
    assert_eq!(named("mcp_tool_invocations_total")["sum"]["isMonotonic"], true);
}

/// Sessions that have ended are told with the last reading, which the end of the gateway waits for.
#[tokio::test]
async fn the_last_metrics_are_exported_when_the_gateway_ends() {
    let collector = Collector::start().await;
    let config =
        format!("[gateway.otel]\nmetrics = true\nmetrics_interval = \"1h\"\nendpoint = {:?}\n", collector.url());
    let mut scene = Scene::new(Era::Old, &config).await;
    let client = scene.client(Era::Old).await;
    client.post(&call(Era::Old, "echo", ""), &[]).await;
    assert!(collector.exports().is_empty());
    scene.program.signal("TERM").await;
    scene.program.ended().await;
    let export = eventually(async || collector.exports().first().cloned()).await;
    let text = String::from_utf8_lossy(&export.body).into_owned();
    for name in ["mcp_tool_invocations_total", "mcp.server.session.duration", "mcp.client.session.duration"] {
        assert!(text.contains(name), "{name}: {text}");
    }
}
