//! What sessions want to hear: resources and log levels, told to every connection that comes after them.

use crate::client::{Client, answer, next};
use crate::fake::{Fake, Shape, Step, plain};
use crate::{Setup, pass, start};
use serde_json::json;
use signalbox_runtime::StreamReader;
use std::time::Duration;

const UPDATED: &str = "notifications/resources/updated";

/// Fails unless the connection was told of the resource and the level.
fn told(fake: &Fake, link: usize) {
    let followed = fake.heard_on(link, "resources/subscribe");
    assert!(followed.iter().any(|one| one.params["uri"] == "x://y"), "connection {link}: {followed:?}");
    let levels = fake.heard_on(link, "logging/setLevel");
    assert!(levels.iter().any(|one| one.params["level"] == "error"), "connection {link}: {levels:?}");
}

/// Fails unless an update that this connection tells arrives.
async fn arrives(fake: &Fake, link: usize, general: &StreamReader) {
    fake.tell(link, UPDATED, &json!({"uri": "x://y"}));
    loop {
        let message = next(general).await.expect("the general stream ended");
        if message["method"] == UPDATED {
            return assert_eq!(message["params"]["uri"], "x://y");
        }
    }
}

/// M4: what is wanted while a backend starts reaches it, and reaches it again after a restart.
#[tokio::test(start_paused = true)]
async fn resources_and_levels_wanted_during_a_start_outlive_it_and_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let setup = || Setup { catalog_file: Some(folder.path().join("catalog.json")), ..Setup::default() };
    let gateway = start(&Fake::new(Shape::Pipe, plain), setup());
    assert_eq!(Client::open(&gateway, json!({})).await.tools().await, ["t1"]);
    gateway.shut_down(Duration::ZERO).await;

    let fake = Fake::new(Shape::Pipe, |heard| match (&*heard.method, heard.link) {
        ("initialize", 1) => [Step::Wait(2_000)].into_iter().chain(plain(heard)).collect(),
        _ => plain(heard),
    });
    let gateway = start(&fake, setup());
    let client = Client::open(&gateway, json!({})).await;
    let general = client.session.open_general().unwrap();
    let level = client.ask("logging/setLevel", json!({"level": "error"})).await;
    assert!(level["result"].is_object(), "{level}");
    let subscribing = client.post("resources/subscribe", json!({"uri": "x://y"}));
    pass(1_000).await;
    assert!(fake.heard("resources/subscribe").is_empty(), "the backend is up too early for this test");
    assert!(answer(&subscribing).await.unwrap()["result"].is_object());
    pass(500).await;
    told(&fake, 1);
    arrives(&fake, 1, &general).await;

    fake.kill(1);
    pass(5_000).await;
    assert_eq!(fake.open_links(), [2]);
    told(&fake, 2);
    arrives(&fake, 2, &general).await;
}

/// M4: a backend that forgot a session is told again in the new one.
#[tokio::test(start_paused = true)]
async fn resources_and_levels_are_told_again_in_a_new_backend_session() {
    let fake = Fake::new(Shape::Web, |heard| match (&*heard.method, heard.link, heard.nth) {
        ("tools/call", 2, 2) => vec![Step::Forget],
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    let general = client.session.open_general().unwrap();
    client.call("t1").await;
    client.ask("resources/subscribe", json!({"uri": "x://y"})).await;
    client.ask("logging/setLevel", json!({"level": "error"})).await;
    client.call("t1").await;
    pass(500).await;
    assert_eq!(fake.heard_on(2, "initialize").len(), 2);
    assert_eq!(fake.heard_on(2, "resources/subscribe").len(), 2);
    assert_eq!(fake.heard_on(2, "logging/setLevel").len(), 2);
    arrives(&fake, 2, &general).await;
}
