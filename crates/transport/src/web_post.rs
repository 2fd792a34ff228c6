//! Posts JSON to web addresses named by rules. Connections are kept per address, within limits.

use crate::http1::{Conn, Head, HttpRequest, HttpTarget, Pool, RequestDraft, SendError, body};
use crate::tls::BackTlsSpec;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method};
use signalbox_engine::chain::MAX_WEBHOOK_ANSWER;
use signalbox_engine::lock::LockResultExt;
use signalbox_runtime::{PostFuture, WebhookError, WebhookTransport};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Maximum number of addresses whose connections are kept.
const MAX_PLACES: usize = 64;
/// Maximum number and age of idle connections to one address.
const MAX_IDLE: usize = 8;
const IDLE_TIME: Duration = Duration::from_secs(30);
/// Maximum time to connect; the caller limits the whole request.
const CONNECT_TIME: Duration = Duration::from_secs(10);

struct Place {
    target: HttpTarget,
    pool: Arc<Pool>,
}

/// Client for web addresses. It does not follow redirects.
#[derive(Default)]
pub struct WebPost {
    places: Mutex<HashMap<Box<str>, Arc<Place>>>,
}

impl WebPost {
    /// Checks that an address can be posted to.
    ///
    /// # Errors
    /// Returns the reason why it cannot.
    pub fn check(url: &str) -> Result<(), WebhookError> {
        place(url).map(drop)
    }

    fn place(&self, url: &str) -> Result<Arc<Place>, WebhookError> {
        let mut places = self.places.lock().unpoisoned();
        if let Some(place) = places.get(url) {
            return Ok(Arc::clone(place));
        }
        let place = Arc::new(place(url)?);
        if places.len() >= MAX_PLACES {
            places.clear();
        }
        places.insert(url.into(), Arc::clone(&place));
        Ok(place)
    }
}

impl WebhookTransport for WebPost {
    fn post(&self, url: &str, body: Bytes, bearer: Option<&str>) -> PostFuture {
        let place = self.place(url);
        let bearer = bearer.map(|token| HeaderValue::try_from(format!("Bearer {token}")));
        Box::pin(async move {
            let place = place?;
            let failed = |why: String| WebhookError::Failed(format!("{}: {why}", place.target));
            // A pooled connection may have been closed: a request that was not written is sent once more on a new one.
            let mut token = bearer.transpose().map_err(|_| failed("its token cannot be sent".to_owned()))?;
            token.iter_mut().for_each(|token| token.set_sensitive(true));
            let mut request = request(&place.target, body, token.as_ref());
            if let Some(mut conn) = place.pool.take() {
                match conn.send(request).await {
                    Ok(head) => return read(&place, conn, &head).await,
                    Err(SendError::Unsent(unsent, _)) => request = unsent,
                    Err(SendError::Failed(error)) => return Err(failed(error.to_string())),
                }
            }
            let mut conn = Conn::open(&place.target, CONNECT_TIME).await.map_err(|error| failed(error.to_string()))?;
            match conn.send(request).await {
                Ok(head) => read(&place, conn, &head).await,
                Err(SendError::Unsent(..)) => {
                    Err(failed("closed the connection before it took the request".to_owned()))
                }
                Err(SendError::Failed(error)) => Err(failed(error.to_string())),
            }
        })
    }
}

fn place(url: &str) -> Result<Place, WebhookError> {
    let name: Arc<str> = "webhook".into();
    let target = HttpTarget::parse(url, "http").and_then(|target| target.with_tls(&name, BackTlsSpec::default()));
    let target = target.map_err(|error| WebhookError::Failed(format!("backend `{name}`: {error}")))?;
    Ok(Place { target, pool: Pool::new(MAX_IDLE, IDLE_TIME) })
}

fn request(target: &HttpTarget, body: Bytes, authorization: Option<&HeaderValue>) -> HttpRequest {
    let mut draft = RequestDraft::new(&Method::POST, &target.uri, &target.authority);
    draft.add(&CONTENT_TYPE, &HeaderValue::from_static("application/json"));
    draft.add(&ACCEPT, &HeaderValue::from_static("application/json"));
    if let Some(value) = authorization {
        draft.add(&AUTHORIZATION, value);
    }
    draft.with_body(body)
}

async fn read(place: &Place, mut conn: Box<Conn>, head: &Head) -> Result<(u16, Bytes), WebhookError> {
    let failed = |why: String| WebhookError::Failed(format!("{}: {why}", place.target));
    let bytes = body::whole(&mut conn, MAX_WEBHOOK_ANSWER, || None).await.map_err(|error| failed(error.to_string()))?;
    place.pool.put(conn);
    Ok((head.status.as_u16(), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// A server that answers one request with a body of this size.
    async fn answering(size: usize) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer).await;
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n");
            let _ = stream.write_all(head.as_bytes()).await;
            let _ = stream.write_all(&vec![b' '; size]).await;
        });
        url
    }

    /// The bound of an answer is one, here and where the rules read it.
    #[tokio::test]
    async fn an_answer_as_large_as_rules_take_is_read_and_no_larger_one() {
        let asked = |url: String| async move { WebPost::default().post(&url, Bytes::from_static(b"{}"), None).await };
        let (status, body) = asked(answering(MAX_WEBHOOK_ANSWER).await).await.unwrap();
        assert_eq!((status, body.len()), (200, MAX_WEBHOOK_ANSWER));
        assert!(asked(answering(MAX_WEBHOOK_ANSWER + 1).await).await.is_err());
    }

    /// An address that wants a token is sent it, and others are sent none.
    #[tokio::test]
    async fn a_token_is_sent_where_one_is_given() {
        for token in [Some("t0ken"), None] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/", listener.local_addr().unwrap());
            let seen = tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                    stream.read_buf(&mut head).await.unwrap();
                }
                stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
                String::from_utf8_lossy(&head).to_ascii_lowercase()
            });
            let (status, _) = WebPost::default().post(&url, Bytes::new(), token).await.unwrap();
            let head = seen.await.unwrap();
            assert_eq!(
                (status, head.contains("\r\nauthorization: bearer t0ken\r\n")),
                (204, token.is_some()),
                "{head}"
            );
        }
    }
}
