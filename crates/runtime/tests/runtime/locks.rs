//! Locks of a session and of a backend are taken in one order.

use crate::client::{Client, answer};
use crate::fake::{Fake, Shape, plain};
use crate::{Setup, start};
use serde_json::json;
use signalbox_runtime::Settings;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long lists are asked for.
const WORK: Duration = Duration::from_millis(1_000);
/// How long after that the last answer may come.
const PATIENCE: Duration = Duration::from_secs(2);
const SESSIONS: usize = 2;
const ASKERS: usize = 8;

/// Asks for lists that never come, with many streams of a few sessions at once.
async fn ask_for_lists() -> usize {
    // The lists of a client with capabilities are never read, so that every request for them waits and looks again.
    let fake = Fake::new(Shape::Web, |heard| match (&*heard.method, heard.link) {
        ("tools/list", 2..) => Vec::new(),
        _ => plain(heard),
    });
    let settings = Settings { first_list_wait: Duration::from_millis(1), ..Settings::default() };
    let gateway = start(&fake, Setup { settings, ..Setup::default() });
    while !gateway.is_ready() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let end = Instant::now() + WORK;
    let mut tasks = Vec::new();
    for _ in 0..SESSIONS {
        let client = Arc::new(Client::open(&gateway, json!({"sampling": {}})).await);
        for _ in 0..ASKERS {
            let client = Arc::clone(&client);
            tasks.push(tokio::spawn(async move {
                let mut done = 0;
                while Instant::now() < end {
                    assert!(answer(&client.post("tools/list", json!({}))).await.is_some());
                    done += 1;
                }
                done
            }));
        }
    }
    let mut done = 0;
    for task in tasks {
        done += task.await.unwrap();
    }
    done
}

/// C1: what a backend asks of a session while it is locked takes no lock of the session's, which asks the backend while
/// it is locked itself.
#[test]
fn many_lists_of_one_session_at_once_do_not_block_each_other() {
    let (sender, receiver) = mpsc::channel();
    // A deadlock stops the whole runtime, its clock and its end too, so somebody outside has to look.
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
        let done = runtime.block_on(runtime.spawn(ask_for_lists())).unwrap();
        sender.send(done).unwrap();
    });
    let done = receiver.recv_timeout(WORK + PATIENCE).expect("the runtime stands still: a deadlock");
    assert!(done >= SESSIONS * ASKERS, "{done} lists");
}
