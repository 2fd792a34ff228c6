//! A collector on loopback that keeps what is posted to it.

use crate::program::eventually;
use crate::protobuf::{all, number, text};
use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// A request to export.
#[derive(Clone, Debug)]
pub struct Export {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// A span as it came.
#[derive(Clone, Debug)]
pub struct Span {
    pub trace: String,
    pub id: String,
    pub parent: Option<String>,
    pub name: String,
    pub kind: &'static str,
    pub start: u64,
    pub end: u64,
    pub error: Option<String>,
    pub attributes: BTreeMap<String, String>,
}

impl Span {
    pub fn get(&self, key: &str) -> &str {
        self.attributes.get(key).map_or("", String::as_str)
    }
}

/// A running collector.
pub struct Collector {
    address: SocketAddr,
    exports: Arc<Mutex<Vec<Export>>>,
}

impl Collector {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let exports: Arc<Mutex<Vec<Export>>> = Arc::default();
        let kept = Arc::clone(&exports);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let kept = Arc::clone(&kept);
                let service = service_fn(move |request| keep(request, Arc::clone(&kept)));
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        Self { address, exports }
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The configuration that exports to it.
    pub fn config(&self, more: &str) -> String {
        format!("[gateway.otel]\nenabled = true\nendpoint = \"http://{}\"\n{more}\n", self.address)
    }

    pub fn exports(&self) -> Vec<Export> {
        self.exports.lock().unwrap().clone()
    }

    /// The spans that have come so far.
    pub fn spans(&self) -> Vec<Span> {
        let of_traces = self.exports().into_iter().filter(|export| export.path == "/v1/traces");
        let resources = of_traces.flat_map(|export| all(&export.body, 1));
        let scopes = resources.flat_map(|resource| all(&resource, 2));
        scopes.flat_map(|scope| all(&scope, 2)).map(|bytes| span(&bytes)).collect()
    }

    /// The span of this kind and name, once it has come.
    pub async fn span(&self, kind: &str, name: &str) -> Span {
        let fits = |span: &Span| span.kind == kind && span.name == name;
        eventually(async || self.spans().into_iter().find(fits)).await
    }
}

async fn keep(
    request: http::Request<Incoming>,
    exports: Arc<Mutex<Vec<Export>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes().to_vec();
    exports.lock().unwrap().push(Export { path: head.uri.path().to_owned(), headers: head.headers, body });
    Ok(Response::new(Full::default()))
}

fn span(bytes: &[u8]) -> Span {
    let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let status = all(bytes, 15).pop();
    Span {
        trace: all(bytes, 1).pop().map(hex).unwrap(),
        id: all(bytes, 2).pop().map(hex).unwrap(),
        parent: all(bytes, 4).pop().map(hex),
        name: text(bytes, 5).unwrap(),
        kind: match number(bytes, 6) {
            Some(2) => "server",
            Some(3) => "client",
            other => panic!("kind {other:?}"),
        },
        start: number(bytes, 7).unwrap(),
        end: number(bytes, 8).unwrap(),
        error: status.filter(|status| number(status, 3) == Some(2)).map(|status| text(&status, 2).unwrap()),
        attributes: all(bytes, 9).iter().map(|pair| attribute(pair)).collect(),
    }
}

fn attribute(pair: &[u8]) -> (String, String) {
    let value = all(pair, 2).pop().unwrap();
    let shown = text(&value, 1).or_else(|| number(&value, 3).map(|number| number.to_string()));
    (text(pair, 1).unwrap(), shown.unwrap())
}
