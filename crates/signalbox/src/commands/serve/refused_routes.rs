//! Refusals of the API, over the table of its routes.

use super::*;
use serde_json::Value;
use signalbox_config::{ConfigLocation, Environment, Overrides};
use signalbox_govern::api_keys::{NewKey, RANDOM};
use signalbox_transport::router::Listener;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const CONFIG: &str = "[mcp.protocol.security]\nrequire_authentication = true\n[mcp.protocol.audit]\nenabled = true\n";

/// The first line of the answer to a request with this key.
async fn status(address: SocketAddr, method: &str, path: &str, key: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n");
    let request = format!("{head}content-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

/// A caller without the role is refused at every route of the API, and each refusal has its record.
#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_of_the_api_is_in_the_audit_log() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("signalbox.toml");
    std::fs::write(&file, CONFIG).unwrap();
    let overrides = Overrides { data_dir: Some(root.path().join("data")), ..Overrides::default() };
    let config = Config::load(&ConfigLocation::File(file.clone()), &|_| None, &overrides).unwrap().config;
    let data_dir = DataDir::prepare(&config.data_dir).unwrap();
    let (name, subject) = ("ada".to_owned(), "key:ada".to_owned());
    let new = NewKey { name, subject, roles: Vec::new(), scopes: None, trust: None, expires: None };
    let (_, key) = KeyFile::of(&config.data_dir).change(|keys| keys.add(new, &[7; RANDOM], 1)).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let loader = Loader::new(Some(file), Environment { overrides, ..Environment::default() }, |_| None);
    let server = Server::build(&config, loader, &data_dir, listener).unwrap();
    let router = Arc::clone(&server.router);
    let (stop, stopping) = watch::channel(false);
    let running = tokio::spawn(server.run(stopping));
    let mut asked = Vec::new();
    for route in router.routes() {
        if route.path().starts_with("/api/v1/") && route.mount().is_at(Listener::Tcp) {
            let (method, path) = (route.method().as_str(), route.path().replace("{id}", "1"));
            let answer = status(address, method, &path, key.reveal()).await;
            assert!(answer.starts_with("HTTP/1.1 403"), "{method} {path}: {answer}");
            asked.push(path);
        }
    }
    stop.send_replace(true);
    running.await.unwrap();
    assert!(asked.len() > 20, "{asked:?}");
    let log = std::fs::read_to_string(config.data_dir.join("audit/audit.log")).unwrap();
    let denied = |record: &Value| {
        let about = (&record["event_type"], &record["details"]["status"], &record["user_context"]["principal"]);
        about == (&"admin_action".into(), &"denied".into(), &"key:ada".into())
    };
    let records = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).filter(denied);
    let mut told: Vec<String> = records.map(|one| one["details"]["target"].as_str().unwrap().to_owned()).collect();
    asked.sort();
    told.sort();
    assert_eq!(told, asked);
}
