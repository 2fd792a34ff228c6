//! A POST whose body is a protobuf message. The response is a stream of length-delimited messages.

use super::FrontAnswer;
use super::answer::{SESSION_ID, plain, refusal};
use super::client_connection::{BusyConnection, ClientConnection};
use super::heads::Heads;
use super::post::{era_of, find_session, open_modern, opens_session, read_message, trace_of, unreadable_body};
use super::routed::FrontBody;
use crate::protobuf::{self, DecodedMessage, RequestOrigin};
use crate::read_body::read_body;
use crate::signer_proof::SignerProof;
use crate::unknown_caller;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use hyper::body::Incoming;
use signalbox_engine::front::Mode;
use signalbox_engine::{Carrier, Fault, FaultKind, Limit};
use signalbox_runtime::{Gateway, OutgoingMessage, Session, StreamReader};
use signalbox_wire::{Envelope, Era, Kind};
use std::sync::Arc;
use std::task::{Context, Poll};

pub async fn handle(connection: &Arc<ClientConnection>, headers: HeaderMap, body: Incoming) -> FrontAnswer {
    let (front, heads) = (&connection.front, Heads::read(&headers));
    let most = front.gateway.settings().limits.message;
    let limit = unknown_caller::limit(&front.gateway, || connection.caller(), most, true);
    let bytes = match read_body(body, limit, front.spec.body_timeout, || Some(connection.share())).await {
        Ok(bytes) => bytes,
        Err(error) => {
            let error = unknown_caller::explain(&front.gateway, || connection.caller(), error, most);
            return unreadable_body(front, error);
        }
    };
    let DecodedMessage { json, proof, origin } =
        match protobuf::decode(&front.gateway, &connection.caller(), bytes).await {
            Ok(decoded) => decoded,
            Err(fault) => return refusal(StatusCode::BAD_REQUEST, None, Era::Legacy, &fault),
        };
    let message = match read_message(front, json) {
        Ok(message) => message,
        Err(answer) => return *answer,
    };
    match era_of(&heads, &message) {
        Era::Modern => match open_modern(connection, &heads, &message, proof) {
            Ok(opened) => {
                let carrier = trace_of(front, &headers);
                opened.session.receive_with(&opened.reader, message, opened.proof.carried(carrier));
                answer(connection, opened.reader, origin).await
            }
            Err(answer) => *answer,
        },
        Era::Legacy if opens_session(&message) => initialize(connection, &headers, message, &proof, origin).await,
        Era::Legacy => match find_session(connection, &heads) {
            Ok(session) => legacy(connection, &session, &headers, message, &proof, origin).await,
            Err(answer) => *answer,
        },
    }
}

async fn initialize(
    connection: &Arc<ClientConnection>,
    headers: &HeaderMap,
    message: Envelope,
    proof: &SignerProof,
    origin: RequestOrigin,
) -> FrontAnswer {
    let opened = Gateway::new_session_id().and_then(|external| {
        connection.front.gateway.open_session(connection.caller(), Mode::Session, &external, "http")
    });
    let session = match opened {
        Ok(session) => session,
        Err(fault) => return refusal(StatusCode::SERVICE_UNAVAILABLE, message.id().as_ref(), Era::Legacy, &fault),
    };
    let mut answer = legacy(connection, &session, headers, message, proof, origin).await;
    if session.client().is_none() {
        session.close();
    } else if let Ok(value) = HeaderValue::from_str(&session.external) {
        answer.headers_mut().insert(&SESSION_ID, value);
    }
    answer
}

async fn legacy(
    connection: &Arc<ClientConnection>,
    session: &Arc<Session>,
    headers: &HeaderMap,
    message: Envelope,
    proof: &SignerProof,
    origin: RequestOrigin,
) -> FrontAnswer {
    let front = &connection.front;
    let Some(reader) = session.open_stream() else {
        front.gateway.counters.refused(Limit::Streams);
        let fault = Fault::new(FaultKind::Overloaded, "too many streams are open in this session");
        return refusal(StatusCode::TOO_MANY_REQUESTS, message.id().as_ref(), Era::Legacy, &fault);
    };
    let expects_answer = message.kind() == Kind::Request;
    let distinct = session.distinct_caller(|| connection.caller());
    let carrier = Carrier { connection_caller: distinct.as_ref(), ..trace_of(front, headers) };
    session.receive_with(&reader, message, proof.carried(carrier));
    if expects_answer { answer(connection, reader, origin).await } else { plain(StatusCode::ACCEPTED) }
}

/// Builds the response stream. It takes its status from the first message if that one arrives soon and is the last.
async fn answer(connection: &Arc<ClientConnection>, reader: StreamReader, origin: RequestOrigin) -> FrontAnswer {
    let first = match connection.wait_briefly(|cx| reader.outbox().poll_next(cx)).await {
        Some(None) => return plain(StatusCode::ACCEPTED),
        Some(first) => first,
        None => None,
    };
    let status = first.as_ref().filter(|out| out.last).map_or(200, |out| out.status);
    let gateway = Arc::clone(&connection.front.gateway);
    let body = ProtobufBody { gateway, first, reader, origin, ended: false };
    let mut answer = Response::new(FrontBody::Protobuf(Box::new((body, BusyConnection::new(connection)))));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    answer.headers_mut().insert(CONTENT_TYPE, protobuf::CONTENT_TYPE);
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    answer
}

/// Length-delimited messages of one stream.
pub struct ProtobufBody {
    gateway: Arc<Gateway>,
    /// Request that the stream answers.
    origin: RequestOrigin,
    first: Option<OutgoingMessage>,
    reader: StreamReader,
    ended: bool,
}

impl ProtobufBody {
    /// Fails the stream's request with an error. Returns `false` if its session serves more than one request.
    pub fn end_early(&self, fault: &Fault) -> bool {
        self.reader.session().fail_lone_request(fault)
    }

    /// Polls the next message.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        while !self.ended {
            let out = match self.first.take() {
                Some(out) => Some(out),
                None => std::task::ready!(self.reader.outbox().poll_next(cx)),
            };
            let Some(out) = out else { break };
            self.ended = out.last;
            if out.part {
                continue;
            }
            let origin = |_: &[u8]| self.origin.clone();
            if let Some(bytes) = protobuf::encode(&self.gateway, self.reader.session(), out.into_bytes(), origin) {
                return Poll::Ready(Some(protobuf::delimited(&bytes)));
            }
        }
        Poll::Ready(None)
    }
}
