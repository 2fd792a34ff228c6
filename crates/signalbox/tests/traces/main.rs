//! Trace context on its way through the real program, and what it exports of it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod backend;
#[path = "../cli/program.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line")]
mod program;
mod scene;

#[cfg(feature = "otel")]
mod collector;
#[cfg(feature = "otel")]
mod exported;
#[cfg(feature = "otel")]
mod lost;
#[cfg(feature = "otel")]
mod metrics;
#[cfg(feature = "otel")]
mod protobuf;

use backend::Era;
use scene::{PARENT, Scene, call, id_of};

/// Whoever does not trace changes nothing, whatever the build.
#[tokio::test]
async fn while_nobody_traces_the_context_passes_byte_for_byte() {
    for era in [Era::Old, Era::New] {
        let scene = Scene::new(era, "").await;
        let own =
            format!(r#" "traceparent":"{PARENT}", "tracestate" : "a=1,b=2","baggage":"user=ann" ,"x/y" : [1 , 2] "#);
        let sent = call(era, "echo", &own);
        let headers = [("traceparent", "00-11111111111111111111111111111111-2222222222222222-01")];
        let answer = scene.client(era).await.post(&sent, &headers).await;
        assert!(answer.contains("done"), "{answer}");
        let got = scene.backend.last_call();
        assert_eq!(got, sent.replace("\"mine\"", &id_of(&got)), "{era:?}");
    }
}

#[tokio::test]
async fn the_bridge_between_the_eras_keeps_the_context() {
    for (client, backend) in [(Era::Old, Era::New), (Era::New, Era::Old)] {
        let scene = Scene::new(backend, "").await;
        let own = format!(r#""traceparent":"{PARENT}", "tracestate" : "a=1,b=2","baggage":"user=ann""#);
        let answer = scene.client(client).await.post(&call(client, "echo", &own), &[]).await;
        assert!(answer.contains("done"), "{answer}");
        let got = scene.backend.last_call();
        assert!(got.contains(&own), "{client:?} to {backend:?}: {got}");
    }
}

#[cfg(not(feature = "otel"))]
#[test]
fn traces_are_refused_by_name_in_a_build_without_them() {
    use signalbox_config::{Config, Overrides};
    for key in [
        "enabled = false",
        "endpoint = 'http://h'",
        "sample_ratio = 1",
        "service_name = 'x'",
        "headers = {}",
        "metrics = true",
        "metrics_interval = '1s'",
    ] {
        let (path, text) = (std::path::Path::new("signalbox.toml"), format!("[gateway.otel]\n{key}\n"));
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        let error = Config::parse(path, &text, &env, &Overrides::default()).expect_err(key).to_string();
        let name = key.split(' ').next().unwrap_or_default();
        assert_eq!(
            error,
            format!(
                "signalbox.toml:2:1: gateway.otel.{name}: OpenTelemetry export is not in this build; remove the key, or use a program built with `cargo build --release --features otel`"
            )
        );
    }
}
