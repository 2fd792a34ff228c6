//! Responses as servers send them, and as they should not, read through a real connection.
//!
//! The situations are those of the response tests of llhttp (<https://github.com/nodejs/llhttp>, `test/response/*.md`,
//! MIT licence, copyright Fedor Indutny and contributors), whose strict mode is what Node.js speaks; each case names
//! the file and the situation there. The bytes are written for these tests. Where this client does something else than
//! the strict mode, the case says why that cannot make it take the bytes of one response for another.

mod cases;

use super::{Conn, HttpError, HttpTarget, RequestDraft, SendError};
use bytes::BytesMut;
use cases::{CASES, Case};
use http::header::HeaderName;
use http::{HeaderValue, Method, Uri};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

/// What is expected of the client.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Expected {
    /// The response is read: its status, its body, and whether another request may follow on the connection.
    Read(u16, &'static str, After),
    /// It is refused as malformed.
    Refused,
    /// The connection ends before the response does.
    CutOff,
}

/// What becomes of the connection.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum After {
    Kept,
    Closed,
}

/// What the client made of a response.
#[derive(PartialEq, Eq, Debug)]
enum Made {
    Read { status: u16, body: Vec<u8>, kept: bool, headers: Vec<Option<HeaderValue>> },
    Refused,
    CutOff,
}

/// Sends a request to a server that answers with these bytes, in pieces of this size, and closes the connection.
async fn exchange(case: &Case, piece: usize) -> Made {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let bytes = case.bytes.as_bytes();
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        stream.readable().await.unwrap();
        for piece in bytes.chunks(piece) {
            // A client that has refused the response does not read the rest.
            if stream.write_all(piece).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        let _ = stream.shutdown().await;
        stream
    };
    let (made, _stream) = tokio::join!(ask(&url, case), serving);
    made
}

async fn ask(url: &str, case: &Case) -> Made {
    let target = HttpTarget::parse(url, "http").unwrap();
    let mut conn = Conn::open(&target, Duration::from_secs(5)).await.unwrap();
    let request = RequestDraft::new(&Method::GET, &Uri::from_static("/"), &target.authority).without_body();
    let head = match conn.send(request).await {
        Ok(head) => head,
        Err(SendError::Failed(error)) => return failed(&error),
        Err(SendError::Unsent(..)) => panic!("{}: the request was not sent", case.name),
    };
    let mut body = BytesMut::new();
    while let Some(data) = conn.frame().await {
        match data {
            Ok(data) => body.extend_from_slice(&data),
            Err(error) => return failed(&error),
        }
    }
    let header = |(name, _): &(&'static str, _)| head.get(&HeaderName::from_static(name));
    let headers = case.headers.iter().map(header).collect();
    Made::Read { status: head.status.as_u16(), body: body.to_vec(), kept: conn.is_idle(), headers }
}

fn failed(error: &HttpError) -> Made {
    match error {
        HttpError::Malformed(_) => Made::Refused,
        HttpError::Closed | HttpError::Io(_) => Made::CutOff,
    }
}

fn expected(case: &Case) -> Made {
    match case.expected {
        Expected::Refused => Made::Refused,
        Expected::CutOff => Made::CutOff,
        Expected::Read(status, body, after) => Made::Read {
            status,
            body: body.as_bytes().to_vec(),
            kept: after == After::Kept,
            headers: case.headers.iter().map(|(_, value)| Some(HeaderValue::from_static(value))).collect(),
        },
    }
}

#[tokio::test]
async fn every_response_of_the_suite_is_read_or_refused_as_written_down() {
    let mut wrong = Vec::new();
    for case in CASES {
        let made = exchange(case, case.bytes.len()).await;
        if made != expected(case) {
            wrong.push(format!("{}: {made:?}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), CASES.len(), wrong.join("\n"));
}

/// What follows a response may come after the connection was given up, so only the response is compared.
#[tokio::test]
async fn a_response_that_comes_byte_by_byte_is_the_same_response() {
    for case in CASES {
        match (exchange(case, 1).await, expected(case)) {
            (
                Made::Read { status, body, headers, .. },
                Made::Read { status: status_then, body: body_then, headers: headers_then, .. },
            ) => assert_eq!((status, body, headers), (status_then, body_then, headers_then), "{}", case.name),
            (made, expected) => assert_eq!(made, expected, "{}", case.name),
        }
    }
}
