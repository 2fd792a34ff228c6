//! Requests that the relay refuses before they are calls, by every route and for every reason, and their records.

use crate::refusals::told;
use crate::{log_of, records};
use http::Method;
use serde_json::{Value, json};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::{HttpAnswer, HttpClient};
use signalbox_testkit::scene::{eventually, signalbox};
use std::collections::BTreeMap;

/// Routes of the relay, with bodies that they read.
const ROUTES: [(Method, &str, &str); 15] = [
    (Method::POST, "/api/sessions", "{}"),
    (Method::GET, "/api/metadata?code=AAAAAAAA", ""),
    (Method::POST, "/api/request", r#"{"code":"AAAAAAAA","tool":"t"}"#),
    (Method::GET, "/api/request/AAAAAAAA", ""),
    (Method::POST, "/api/response", r#"{"code":"AAAAAAAA","id":"1","result":1}"#),
    (Method::GET, "/api/stream?code=AAAAAAAA", ""),
    (Method::GET, "/api/stream?code=AAAAAAAA&role=client", ""),
    (Method::GET, "/api/stream?code=AAAAAAAA&role=worker", ""),
    (Method::PUT, "/api/tools", r#"{"code":"AAAAAAAA","tools":[]}"#),
    (Method::POST, "/api/mcp", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
    (Method::GET, "/api/mcp", ""),
    (Method::DELETE, "/api/mcp", ""),
    (Method::GET, "/api/mcp/metrics", ""),
    (Method::GET, "/relay/worker.js", ""),
    (Method::GET, "/.well-known/codap-mcp.json", ""),
];

async fn gateway(relay: &str) -> GatewayProcess {
    let text = format!(
        "[mcp.protocol.security]\nrequire_authentication = true\n[mcp.protocol.audit]\nenabled = true\n\
         [relay]\nenabled = true\n{relay}"
    );
    let gateway = GatewayProcess::serve(&text).await.unwrap();
    gateway.ready().await.unwrap();
    gateway
}

async fn send(client: &HttpClient, method: &Method, path: &str, body: &'static str) -> u16 {
    let client = client.clone().with("content-type", "application/json");
    client.send(method.clone(), path, body.into()).await.unwrap().status
}

/// A wrong credential is refused and recorded as at the main endpoint, also by routes that need none.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_credential_is_refused_by_every_route_of_the_relay() {
    let wrong =
        [("authorization", "Bearer sbx_made_up"), ("authorization", "Bearer made.up.token"), ("x-api-key", "made-up")];
    for anonymous in [true, false] {
        let gateway = gateway(&format!("anonymous = {anonymous}\n")).await;
        for (name, value) in wrong {
            let client = HttpClient::new(gateway.address()).with(name, value);
            for (method, path, body) in &ROUTES {
                let status = send(&client, method, path, body).await;
                assert_eq!(status, 401, "anonymous = {anonymous}: {method} {path} with {name}: {value}");
            }
        }
        let anybody = HttpClient::new(gateway.address());
        assert_eq!(send(&anybody, &Method::POST, "/api/sessions", "{}").await, 201, "pages need no credential");
        let folder = gateway.terminate().await.unwrap();
        let all = records(&log_of(folder.path()));
        let failed: Vec<&Value> =
            all.iter().filter(|one| one["details"]["violation"] == "authentication_failed").collect();
        assert_eq!(told(&failed), wrong.len() * ROUTES.len(), "anonymous = {anonymous}: {failed:#?}");
        assert!(failed.iter().all(|one| one["details"]["http_status"] == json!(401)), "{failed:#?}");
    }
}

/// A request that is refused, and the reason that its record gives.
struct Refused {
    method: Method,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: String,
    status: u16,
    reason: &'static str,
}

impl Refused {
    fn new(method: Method, path: impl Into<String>, status: u16, reason: &'static str) -> Self {
        Self { method, path: path.into(), headers: Vec::new(), body: String::new(), status, reason }
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    fn body(self, body: impl Into<String>) -> Self {
        Self { body: body.into(), ..self }
    }

    async fn check(&self, client: &HttpClient) {
        let mut client = client.clone().with("content-type", "application/json");
        for (name, value) in &self.headers {
            client = client.with(name, value);
        }
        let answer = client.send(self.method.clone(), &self.path, self.body.clone().into()).await.unwrap();
        assert_eq!(answer.status, self.status, "{} {} {}: {answer:?}", self.method, self.path, self.body);
    }
}

/// Requests that a caller may not make, for want of a key or of the scope that every request needs. With a key,
/// messages are judged one by one, so that routes for them are not in the list.
fn not_admitted(code: &str, status: u16, reason: &'static str) -> Vec<Refused> {
    let refused = |method, path: String| Refused::new(method, path, status, reason);
    let mut all = vec![
        refused(Method::GET, format!("/api/metadata?code={code}")),
        refused(Method::GET, format!("/api/stream?code={code}&role=client")),
        refused(Method::GET, "/api/mcp".to_owned()).with("accept", "application/json"),
        refused(Method::GET, "/api/mcp".to_owned()).with("accept", "text/event-stream"),
    ];
    if status == 401 {
        let call = format!(r#"{{"code":"{code}","tool":"t"}}"#);
        all.push(refused(Method::POST, "/api/request".to_owned()).body(call));
        all.push(refused(Method::POST, "/api/mcp".to_owned()).body(ROUTES[9].2));
        all.push(refused(Method::DELETE, "/api/mcp".to_owned()));
        all.push(refused(Method::GET, "/api/mcp/metrics".to_owned()));
    } else {
        all.push(refused(Method::GET, format!("/api/request/{code}")));
        all.push(refused(Method::GET, "/api/mcp/metrics".to_owned()));
        all.push(refused(Method::HEAD, format!("/api/metadata?code={code}")));
    }
    all
}

/// Requests that are refused to every caller.
fn malformed(code: &str) -> Vec<Refused> {
    let mut all = Vec::new();
    let served = [
        ("/api/sessions", Method::POST),
        ("/api/metadata", Method::GET),
        ("/api/request", Method::POST),
        ("/api/request/AAAAAAAA", Method::GET),
        ("/api/response", Method::POST),
        ("/api/stream", Method::GET),
        ("/api/tools", Method::PUT),
    ];
    for (path, own) in served {
        for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
            if method != own {
                all.push(Refused::new(method, path, 405, "invalid_request"));
            }
        }
        // What the router refuses never reaches the relay.
        all.push(Refused::new(own.clone(), format!("{path}?code=%zz"), 400, "invalid_request"));
        if own != Method::GET {
            all.push(Refused::new(own, path, 413, "invalid_request").body("x".repeat(5_000)));
        }
    }
    let bad = |method, path: &str, status| Refused::new(method, path, status, "invalid_request");
    let token = |method, path: &str| Refused::new(method, path, 403, "unauthenticated");
    let wrong = ("x-worker-token", "made-up");
    let of = |more: &str| format!(r#"{{"code":"{code}",{more}}}"#);
    all.extend([
        bad(Method::GET, "/api/metadata", 400),
        bad(Method::GET, "/api/metadata?code=short", 400),
        bad(Method::GET, "/api/metadata?code=AAAAAAAA", 404),
        bad(Method::GET, &format!("/api/metadata?code={code}"), 406).with("accept-version", "2"),
        bad(Method::GET, "/api/stream?code=AAAAAAAA", 404),
        bad(Method::GET, &format!("/api/stream?code={code}&role=other"), 400),
        bad(Method::GET, "/api/request/AAAAAAAA", 404),
        bad(Method::POST, "/api/sessions", 400).body(r#"{"ttl":1}"#),
        bad(Method::POST, "/api/request", 400).body(of(r#""tool":1"#)),
        bad(Method::POST, "/api/response", 400).body(of(r#""id":"1""#)),
        bad(Method::POST, "/api/response", 404).body(of(r#""id":"1","result":1"#)),
        bad(Method::POST, "/api/mcp", 404).with("content-type", "text/plain"),
        token(Method::GET, &format!("/api/stream?code={code}&role=worker")).with(wrong.0, wrong.1),
        token(Method::GET, &format!("/api/request/{code}")).with(wrong.0, wrong.1),
        token(Method::POST, "/api/response").with(wrong.0, wrong.1).body(of(r#""id":"1","result":1"#)),
        token(Method::PUT, "/api/tools").body(of(r#""tools":[]"#)),
    ]);
    all
}

/// Each kind of route × each reason: the number of records by reason is that of the requests.
#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_of_the_relay_leaves_its_record() {
    let limits = "[relay.limits]\nbody = 2048\nwrong_codes_per_minute = 0\n[auth]\nrequired_scopes = ['mcp']\n";
    let gateway = gateway(limits).await;
    let anybody = HttpClient::new(gateway.address());
    let key = async |name: &str, scope: &str| {
        let key = signalbox(&gateway.data_dir(), &["keys", "new", name, "--scope", scope]).await.unwrap();
        anybody.clone().with("authorization", &format!("Bearer {}", key.trim()))
    };
    let (may, lacks) = (key("ada", "mcp").await, key("low", "other").await);
    eventually("the keys are known", async || {
        let health =
            async |client: &HttpClient| client.clone().with("accept", "application/json").get("/api/mcp").await;
        let known = [health(&may).await.ok()?.status, health(&lacks).await.ok()?.status];
        (known == [200, 403]).then_some(())
    })
    .await
    .unwrap();
    let page = send_for(&anybody, "/api/sessions", "{}").await.message().unwrap();
    let code = page["sessionCode"].as_str().unwrap();
    let batch = format!(r#"[{{"code":"AAAAAAAA","id":"1","result":1}},{{"code":"{code}","id":"1","result":1}}]"#);
    assert_eq!(send_for(&anybody, "/api/response", &batch).await.status, 200);
    let mut expected = BTreeMap::from([("invalid_request", 2)]);
    let sent = [
        (&anybody, not_admitted(code, 401, "unauthenticated")),
        (&lacks, not_admitted(code, 403, "insufficient_scope")),
        (&may, malformed(code)),
    ];
    for (client, requests) in sent {
        for request in requests {
            request.check(client).await;
            *expected.entry(request.reason).or_default() += 1;
        }
    }
    let folder = gateway.terminate().await.unwrap();
    let all = records(&log_of(folder.path()));
    for (reason, count) in expected {
        let own: Vec<&Value> = all.iter().filter(|one| one["details"]["reason"] == reason).collect();
        // One more while the key was not known yet, or did not have its scope refused.
        let extra = told(&own).checked_sub(count);
        let probes = matches!(reason, "unauthenticated" | "insufficient_scope");
        assert!(extra.is_some_and(|extra| extra == 0 || probes), "{reason}: {count} of {own:#?}");
    }
    let low: Vec<&Value> = all.iter().filter(|one| one["details"]["reason"] == "insufficient_scope").collect();
    assert!(low.iter().all(|one| one["user_context"]["principal"] == "key:low"), "{low:#?}");
    let text = std::fs::read_to_string(log_of(folder.path())).unwrap();
    assert!(!text.contains(code), "session codes are secrets");
}

async fn send_for(client: &HttpClient, path: &str, body: &str) -> HttpAnswer {
    let client = client.clone().with("content-type", "application/json");
    client.send(Method::POST, path, body.to_owned().into()).await.unwrap()
}
