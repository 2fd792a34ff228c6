//! A collector that does not take anything.

use crate::backend::{Era, RESULT};
use crate::program::eventually;
use crate::scene::{Scene, call};
use tokio::net::TcpListener;

fn lost(metrics: &str) -> Option<u64> {
    let line = metrics.lines().find(|line| line.contains("reason=\"span_not_exported\""))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[tokio::test]
async fn a_dead_collector_costs_no_call_is_counted_and_is_named_once() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = nobody.local_addr().unwrap();
    drop(nobody);
    let config = format!("[gateway.otel]\nenabled = true\nendpoint = \"http://{address}\"\n");
    let scene = Scene::new(Era::Old, &config).await;
    let client = scene.client(Era::Old).await;
    let mut before = 0;
    for _ in 0..2 {
        let answer = client.post(&call(Era::Old, "echo", ""), &[]).await;
        assert!(answer.contains(RESULT), "{answer}");
        before = eventually(async || lost(&scene.metrics().await).filter(|lost| *lost > before)).await;
    }
    // The handshake and two calls, each of them at the backend too.
    assert_eq!(eventually(async || lost(&scene.metrics().await).filter(|lost| *lost >= 5)).await, 5);
    assert_eq!(scene.program.stderr().matches("the collector does not accept them").count(), 1);
    assert!(scene.program.stderr().contains(&address.to_string()));
}
