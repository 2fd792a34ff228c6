//! An MCP server of one era over HTTP that keeps the calls it gets, as bytes.

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// What its results say, which is nobody's business but the client's.
pub const RESULT: &str = "all is done, secretly";

/// Which era it speaks.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Era {
    Old,
    New,
}

/// A running server.
pub struct Backend {
    address: SocketAddr,
    calls: Arc<Mutex<Vec<String>>>,
}

impl Backend {
    pub async fn start(era: Era) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let calls: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&calls);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let kept = Arc::clone(&kept);
                let service = service_fn(move |request| answer(era, request, Arc::clone(&kept)));
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        Self { address, calls }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The last call of a tool, byte for byte.
    pub fn last_call(&self) -> String {
        self.calls.lock().unwrap().last().expect("a call").clone()
    }
}

async fn answer(
    era: Era,
    request: http::Request<Incoming>,
    calls: Arc<Mutex<Vec<String>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let status = |status| Response::builder().status(status).body(Full::default()).unwrap();
    if request.method() != Method::POST {
        return Ok(status(StatusCode::METHOD_NOT_ALLOWED));
    }
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(body.to_vec()).unwrap();
    let message: Value = serde_json::from_str(&text).unwrap();
    if message.get("id").is_none() {
        return Ok(status(StatusCode::ACCEPTED));
    }
    if message["method"] == "tools/call" {
        calls.lock().unwrap().push(text);
    }
    let mut reply = said(era, &message);
    reply["jsonrpc"] = json!("2.0");
    reply["id"] = message["id"].clone();
    let body = Full::from(reply.to_string());
    Ok(Response::builder().header("content-type", "application/json").body(body).unwrap())
}

fn said(era: Era, message: &Value) -> Value {
    let result = match (message["method"].as_str().unwrap(), era) {
        ("initialize", Era::Old) => {
            json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}})
        }
        ("server/discover", Era::New) => {
            json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "public",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}}})
        }
        ("tools/list", _) => {
            let tool = |name| json!({"name": name, "inputSchema": {"type": "object"}});
            json!({"tools": [tool("echo"), tool("sad"), tool("broken")], "ttlMs": 0, "cacheScope": "public"})
        }
        ("tools/call", _) if message["params"]["name"] == "broken" => {
            return json!({"error": {"code": -7, "message": RESULT}});
        }
        ("tools/call", _) => {
            let sad = message["params"]["name"] == "sad";
            json!({"content": [{"type": "text", "text": RESULT}], "isError": sad})
        }
        _ => return json!({"error": {"code": -32601, "message": "no such method"}}),
    };
    let mut result = result;
    if era == Era::New {
        result["resultType"] = json!("complete");
    }
    json!({"result": result})
}
