//! The gateway's own authorization server, by HTTP.

use http::header::{CONTENT_TYPE, COOKIE};
use http::{HeaderName, HeaderValue, StatusCode};
use signalbox_assembly::authorization::Authorization;
use signalbox_authorization::Reply;
use signalbox_oauth::form;
use signalbox_transport::router::{Answered, Problem, RoutedAnswer, RoutedRequest};
use std::net::IpAddr;
use std::sync::Arc;

/// The largest form or registration.
pub(super) const MAX_BODY: usize = 16 * 1024;

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

pub(super) async fn metadata(server: Arc<Authorization>, _: RoutedRequest) -> Answered {
    Ok(answer(server.metadata()))
}

pub(super) async fn key_set(server: Arc<Authorization>, _: RoutedRequest) -> Answered {
    Ok(answer(server.key_set()))
}

pub(super) async fn authorize(server: Arc<Authorization>, request: RoutedRequest) -> Answered {
    let pairs: Vec<(&str, &str)> = request.query.iter().collect();
    Ok(answer(server.authorize(&form::write(&pairs), address(&request)).await))
}

pub(super) async fn sign_in(server: Arc<Authorization>, request: RoutedRequest) -> Answered {
    let (cookies, address) = (cookies(&request), address(&request));
    let form = body(request, FORM).await?;
    Ok(answer(server.sign_in(&form, &cookies, address).await))
}

pub(super) async fn consent(server: Arc<Authorization>, request: RoutedRequest) -> Answered {
    let cookies = cookies(&request);
    let form = body(request, FORM).await?;
    Ok(answer(server.consent(&form, &cookies).await))
}

pub(super) async fn openid(server: Arc<Authorization>, request: RoutedRequest) -> Answered {
    let pairs: Vec<(&str, &str)> = request.query.iter().collect();
    Ok(answer(server.openid(&pairs, &cookies(&request)).await))
}

pub(super) async fn token(server: Arc<Authorization>, request: RoutedRequest) -> Answered {
    Ok(answer(server.token(&body(request, FORM).await?).await))
}

pub(super) async fn register(server: Arc<Authorization>, request: RoutedRequest) -> Answered {
    let address = address(&request);
    Ok(answer(server.register(body(request, JSON).await?.as_bytes(), address).await))
}

pub(super) async fn revoke(server: Arc<Authorization>, request: RoutedRequest) -> Answered {
    Ok(answer(server.revoke(&body(request, FORM).await?).await))
}

pub(super) fn address(request: &RoutedRequest) -> Option<IpAddr> {
    request.caller.identity().address.map(|address| address.ip())
}

/// All cookies. A browser may send them in several headers.
pub(super) fn cookies(request: &RoutedRequest) -> String {
    let all = request.headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    all.collect::<Vec<_>>().join(";")
}

/// The body, if it is text of this type.
pub(super) async fn body(request: RoutedRequest, kind: &'static str) -> Result<String, Problem> {
    let given = request.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let given = given.split(';').next().unwrap_or_default().trim();
    if !given.eq_ignore_ascii_case(kind) {
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, format_args!("the body must be {kind}")));
    }
    let text = request.body.bytes().await?;
    String::from_utf8(text.to_vec()).map_err(|_| super::bad("the body is not UTF-8"))
}

pub(super) fn answer(reply: Reply) -> RoutedAnswer {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = RoutedAnswer::whole(status, reply.kind, reply.body);
    for (name, value) in reply.headers {
        if let Ok(value) = HeaderValue::try_from(value) {
            answer.headers.append(HeaderName::from_static(name), value);
        }
    }
    answer
}
