//! Baseline: the minimum that a hyper process has to do to forward a request and its response.
//!
//! Each worker thread keeps its idle upstream connections in its own stack, which measured faster than hyper-util's
//! pooling client. Bodies are collected and forwarded whole: streaming measured the same for the benched sizes, and a
//! gateway that checks messages before forwarding has to buffer them too.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1 as client;
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::args::{Args, usage};
use crate::echo_workers::EchoWorkers;

/// Maximum number of idle upstream connections per worker.
const IDLE_LIMIT: usize = 1024;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Sender = client::SendRequest<Full<Bytes>>;

/// Serves until the process ends.
pub fn run(args: &Args) -> io::Result<()> {
    let upstream: String = args.required("upstream")?;
    let address: SocketAddr = upstream
        .strip_prefix("http://")
        .and_then(|rest| rest.split('/').next())
        .and_then(|authority| authority.parse().ok())
        .ok_or_else(|| usage(format!("--upstream {upstream}: expected http://IP:PORT")))?;
    let workers = EchoWorkers::bind(args.required("listen")?, args.optional("workers")?)?;
    println!("listening http://{}/mcp", workers.address()?);
    workers.serve(move || {
        let upstream = Arc::new(Upstream { address, idle: Mutex::default() });
        move |stream| serve(stream, Arc::clone(&upstream))
    })
}

fn serve(stream: TcpStream, upstream: Arc<Upstream>) {
    let service = service_fn(move |request| forward(Arc::clone(&upstream), request));
    tokio::spawn(server::Builder::new().auto_date_header(false).serve_connection(TokioIo::new(stream), service));
}

async fn forward(upstream: Arc<Upstream>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let mut connection = upstream.take().await?;
    let request = Request::from_parts(head, Full::new(body));
    let (head, body) = connection.send_request(request).await?.into_parts();
    let body = body.collect().await?.to_bytes();
    upstream.put_back(connection);
    Ok(Response::from_parts(head, Full::new(body)))
}

/// Connections of one worker to the backend.
struct Upstream {
    address: SocketAddr,
    idle: Mutex<Vec<Sender>>,
}

impl Upstream {
    async fn take(&self) -> Result<Sender, Error> {
        while let Some(mut connection) = self.pop() {
            if connection.ready().await.is_ok() {
                return Ok(connection);
            }
        }
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let (connection, driver) = client::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(driver);
        Ok(connection)
    }

    fn pop(&self) -> Option<Sender> {
        self.idle().pop()
    }

    fn put_back(&self, connection: Sender) {
        let mut idle = self.idle();
        if idle.len() < IDLE_LIMIT {
            idle.push(connection);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Sender>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
