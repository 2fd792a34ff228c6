//! A gateway between a client that says exactly what a test wants and a backend that keeps what it gets.

use crate::backend::{Backend, Era};
use crate::program::Program;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What a client says that records.
pub const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// What every request of the new era says of itself in `_meta`.
const DESCRIBED: &str =
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
/// The argument of every call, which is nobody's business but the tool's.
pub const SECRET: &str = "my-secret-argument";

/// A gateway with one backend.
pub struct Scene {
    pub backend: Backend,
    #[cfg_attr(not(feature = "otel"), expect(dead_code, reason = "held so that the program runs"))]
    pub program: Program,
    address: String,
    _folder: TempDir,
}

impl Scene {
    /// Starts both, with `config` added to the gateway's own.
    pub async fn new(era: Era, config: &str) -> Self {
        let backend = Backend::start(era).await;
        let folder = tempfile::tempdir().unwrap();
        let word = if era == Era::Old { "old" } else { "new" };
        let text = format!("{config}\n[backends.only]\nurl = \"http://{}/mcp\"\nera = \"{word}\"\n", backend.address());
        std::fs::write(folder.path().join("signalbox.toml"), text).unwrap();
        let program = Program::start(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
        let url = program.url().await;
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        Self { backend, program, address, _folder: folder }
    }

    /// A client of this era.
    pub async fn client(&self, era: Era) -> Client {
        let mut client = Client { address: self.address.clone(), session: None, era };
        if era == Era::Old {
            let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
            let answer = client.post(hello, &[]).await;
            let header = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
            client.session = Some(header.expect("a session").to_owned());
            client.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, &[]).await;
        }
        client
    }

    /// The page of metrics.
    #[cfg(feature = "otel")]
    pub async fn metrics(&self) -> String {
        crate::program::get(&self.address, "/metrics").await
    }
}

/// A client that opens a connection for every request.
pub struct Client {
    address: String,
    pub session: Option<String>,
    era: Era,
}

impl Client {
    /// Posts a message and gives the whole answer, headers and body.
    pub async fn post(&self, body: &str, headers: &[(&str, &str)]) -> String {
        let mut head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\n",
            self.address,
            body.len()
        );
        let message: Value = serde_json::from_str(body).unwrap();
        let (method, name) = (message["method"].as_str().unwrap_or_default(), message["params"]["name"].as_str());
        if self.era == Era::New {
            head.push_str(&format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n"));
            name.iter().for_each(|name| head.push_str(&format!("mcp-name: {name}\r\n")));
        }
        self.session.iter().for_each(|session| head.push_str(&format!("mcp-session-id: {session}\r\n")));
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }
}

/// A call of a tool, oddly spaced, with these members in `_meta`.
pub fn call(era: Era, tool: &str, own: &str) -> String {
    let comma = if own.is_empty() { "" } else { "," };
    let own = if era == Era::New { format!("{own}{comma}{DESCRIBED}") } else { own.to_owned() };
    let own = if own.is_empty() { String::new() } else { format!(r#", "_meta" : {{{own}}}"#) };
    format!(
        r#"{{"jsonrpc":"2.0", "id": "mine" ,"method":"tools/call","params":{{ "name":"{tool}"{own} , "arguments":{{"a":"{SECRET}"}} }}}}"#
    )
}

/// The id of a message, as it is written.
pub fn id_of(message: &str) -> String {
    let message: Value = serde_json::from_str(message).unwrap();
    message["id"].to_string()
}
