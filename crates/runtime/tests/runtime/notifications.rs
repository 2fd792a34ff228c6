//! Records of client notifications that go to backends.

use crate::client::Client;
use crate::fake::{Fake, Shape, plain};
use crate::{Setup, pass, start};
use serde_json::json;
use signalbox_engine::audit::{Intent, IntentKind, IntentLog, IntentWrite};
use signalbox_wire::Envelope;
use std::sync::{Arc, Mutex};

/// Log that keeps the method and backend of notifications, and confirms everything.
#[derive(Default)]
struct Notifications(Mutex<Vec<(String, String)>>);

impl IntentLog for Notifications {
    fn intend(&self, intents: Vec<Intent>) -> IntentWrite {
        let told = intents.into_iter().filter(|intent| intent.kind == IntentKind::Notification);
        self.0.lock().unwrap().extend(told.map(|intent| (intent.method.into_owned(), intent.backend.to_string())));
        Box::pin(std::future::ready(true))
    }
}

#[tokio::test(start_paused = true)]
async fn a_notification_is_recorded_only_if_it_leaves() {
    let (fake, log) = (Fake::new(Shape::Web, plain), Arc::new(Notifications::default()));
    let gateway = start(&fake, Setup { intents: Some(log.clone()), ..Setup::default() });
    let client = Client::open(&gateway, json!({})).await;
    client.tools().await;
    let notify = async || {
        let note = json!({"jsonrpc": "2.0", "method": "notifications/foo", "params": {"a": 1}});
        let stream = client.session.open_stream().unwrap();
        client.session.receive(&stream, Envelope::parse(note.to_string().into()).unwrap());
        pass(100).await;
        (fake.heard("notifications/foo").len(), log.0.lock().unwrap().clone())
    };
    assert_eq!(notify().await, (0, Vec::new()), "the session has no connection yet");
    client.call("t1").await;
    let record = ("notifications/foo".to_owned(), "a".to_owned());
    assert_eq!(notify().await, (1, vec![record]));
}
