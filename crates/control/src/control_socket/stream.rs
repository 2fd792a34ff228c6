//! Client side of an answer that is streamed line by line.

use super::ask::{AskError, refused};
use super::process_address::ProcessAddress;
use bytes::{Buf as _, Bytes, BytesMut};
use http::{Method, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Timeout for the start of the answer.
const BEGIN: Duration = Duration::from_secs(5);
/// Maximum length of a line in bytes.
const MAX_LINE: usize = 64 * 1024 * 1024;

/// Stream of the lines of an answer.
pub struct LineStream {
    body: Incoming,
    buffer: BytesMut,
    /// Length of the buffer's prefix that contains no line break.
    searched: usize,
    connection: JoinHandle<()>,
}

impl LineStream {
    /// Sends a GET request whose answer is streamed.
    ///
    /// # Errors
    /// If the process does not start to answer.
    pub async fn open(process: impl Into<ProcessAddress>, path: &str) -> Result<Self, AskError> {
        Self::request(&process.into(), Method::GET, path, Bytes::new()).await
    }

    /// Sends a POST request whose answer is streamed.
    ///
    /// # Errors
    /// If the process does not start to answer.
    pub async fn send(process: impl Into<ProcessAddress>, path: &str, body: String) -> Result<Self, AskError> {
        Self::request(&process.into(), Method::POST, path, body.into()).await
    }

    async fn request(process: &ProcessAddress, method: Method, path: &str, body: Bytes) -> Result<Self, AskError> {
        let opening = async {
            let (stream, request) = process.open().await?;
            let (mut sender, connection) = http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await?;
            let connection = tokio::spawn(async move {
                // The reader of the body notices how the connection ended.
                let _ = connection.await;
            });
            let request = request.method(method).uri(path).body(Full::new(body));
            let answer = sender.send_request(request.map_err(|error| AskError::Body(error.to_string()))?).await?;
            if answer.status() == StatusCode::OK {
                return Ok(Self { body: answer.into_body(), buffer: BytesMut::new(), searched: 0, connection });
            }
            let status = answer.status();
            let body = answer.into_body().collect().await.map(|body| body.to_bytes()).ok();
            Err(refused(status, body.as_deref()))
        };
        tokio::time::timeout(BEGIN, opening).await.unwrap_or(Err(AskError::TimedOut(BEGIN)))
    }

    /// Returns the next line without its line break, or `None` once the process is gone. Cancel safe.
    ///
    /// # Errors
    /// If a line is too long.
    pub async fn next(&mut self) -> Result<Option<Bytes>, AskError> {
        loop {
            if let Some(end) = self.buffer[self.searched..].iter().position(|&byte| byte == b'\n') {
                let line = self.buffer.split_to(std::mem::take(&mut self.searched) + end).freeze();
                self.buffer.advance(1);
                return Ok(Some(line));
            }
            self.searched = self.buffer.len();
            if self.buffer.len() > MAX_LINE {
                return Err(AskError::Body("a line is too long".to_owned()));
            }
            match self.body.frame().await {
                // A stream has no end of its own: whether it ends cleanly or breaks off, the process is gone.
                None | Some(Err(_)) => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}

impl Drop for LineStream {
    fn drop(&mut self) {
        self.connection.abort();
    }
}
