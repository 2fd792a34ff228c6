//! Dialogues with the demo backend over its channels, and what they need.

mod listing;
mod protocol;
mod traversal;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::DemoServer;
use signalbox_embedded::revision::{META_CAPABILITIES, META_VERSION};

/// A folder that is removed at the end of its test.
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// An empty folder with a real path.
    pub(super) fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("signalbox-demo-{}-{number}", std::process::id());
        let base = fs::canonicalize(std::env::temp_dir()).expect("a folder for temporary files");
        let path = base.join(name);
        fs::create_dir(&path).expect("a new folder");
        Folder { path }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file of five bytes, with the folders above it.
    pub(super) fn file(&self, name: &str) {
        let path = self.path.join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(path, "hello").expect("a file");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// One peer of a running server.
pub(super) struct Dialogue {
    to: Sender<Bytes>,
    from: Receiver<Bytes>,
    server: JoinHandle<()>,
    next_id: u32,
}

impl Dialogue {
    /// Starts a server over `root`.
    pub(super) fn start(root: &Path) -> Dialogue {
        let (to, incoming) = channel(8);
        let (outgoing, from) = channel(8);
        let server = DemoServer::new(root.to_owned()).expect("the root opens");
        Dialogue { to, from, server: tokio::spawn(server.serve(incoming, outgoing)), next_id: 0 }
    }

    /// Starts a server and opens a session in an old revision.
    pub(super) async fn session(root: &Path, revision: &str) -> Dialogue {
        let mut dialogue = Dialogue::start(root);
        let answer = dialogue.ask("initialize", json!({"protocolVersion": revision})).await;
        assert_eq!(answer["result"]["protocolVersion"], revision);
        dialogue.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        dialogue
    }

    /// Sends one message.
    pub(super) async fn send(&self, message: Value) {
        self.send_raw(&message.to_string()).await;
    }

    /// Sends any bytes.
    pub(super) async fn send_raw(&self, text: &str) {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        self.to.send(bytes).await.expect("the server listens");
    }

    /// The next message from the server.
    pub(super) async fn next(&mut self) -> Value {
        let bytes = timeout(Duration::from_secs(10), self.from.recv())
            .await
            .expect("an answer in time")
            .expect("the server is there");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    /// Asserts that nothing comes for a while.
    pub(super) async fn silence(&mut self, time: Duration) {
        let heard = timeout(time, self.from.recv()).await;
        assert!(heard.is_err(), "{heard:?}");
    }

    /// Sends a request with a new id and waits for its answer.
    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        let answer = self.next().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool in the session.
    pub(super) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Asks without a session.
    pub(super) async fn ask_stateless(&mut self, method: &str, mut params: Value) -> Value {
        params["_meta"][META_VERSION] = "2026-07-28".into();
        params["_meta"][META_CAPABILITIES] = json!({});
        self.ask(method, params).await
    }

    /// Calls a tool without a session.
    pub(super) async fn call_stateless(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask_stateless("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Hangs up and waits for the server to end.
    pub(super) async fn end(self) {
        drop((self.to, self.from));
        timeout(Duration::from_secs(10), self.server).await.expect("the server ends").expect("without a panic");
    }
}
