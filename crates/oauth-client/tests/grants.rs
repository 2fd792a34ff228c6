//! The OAuth client against small authorization servers on loopback, which note what they are asked.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it wants")]

use serde_json::{Value, json};
use signalbox_engine::standing::{Credential as Shown, Revocation, Standing, SubjectToken};
use signalbox_engine::{BackendUser, Caller, FaultKind, Identity, Principal, Proof};
use signalbox_oauth_client::page_host::PageHost;
use signalbox_oauth_client::token_exchange::{ACCESS_TOKEN, ID_TOKEN};
use signalbox_oauth_client::{
    ClientSpec, ExchangeSpec, GrantType, OauthClientState, OauthCredentials, OauthSpec, OutboundSettings, Provider,
    SecretSource, Vault,
};
use signalbox_runtime::{AuthHeader, AuthRefusal, BackendCredentials as _, RequestIdentity, RequestSender};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

type Script = dyn Fn(&str, &HashMap<String, String>) -> (u16, Value) + Send + Sync;

/// A path and the form that came to it.
type Noted = (String, HashMap<String, String>);

/// A server that answers by a script of path and form, and notes both.
struct FakeServer {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Noted>>>,
}

impl FakeServer {
    async fn start(
        script: impl Fn(&str, &str, &HashMap<String, String>) -> (u16, Value) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<_>>> = Arc::default();
        let base = format!("http://{address}");
        let script: Arc<Script> = Arc::new(move |path, form| script(&base, path, form));
        let noted = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let (script, noted) = (Arc::clone(&script), Arc::clone(&noted));
                tokio::spawn(async move {
                    let mut bytes = vec![0; 16 * 1024];
                    let mut length = 0;
                    let (head, body) = loop {
                        length += socket.read(&mut bytes[length..]).await.unwrap();
                        let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
                        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                        let announced =
                            head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                        if body.len() >= announced.unwrap_or(0) {
                            break (head.to_owned(), body.to_owned());
                        }
                    };
                    let path = head.split(' ').nth(1).unwrap().to_owned();
                    let mut form = form(&body);
                    if body.starts_with('{') {
                        form.insert("json".to_owned(), body);
                    }
                    if let Some(basic) = head.lines().find_map(|line| line.strip_prefix("authorization: ")) {
                        form.insert("authorization".to_owned(), basic.to_owned());
                    }
                    noted.lock().unwrap().push((path.clone(), form.clone()));
                    let (status, answer) = script(&path, &form);
                    let answer = answer.to_string();
                    let text = format!(
                        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
                        answer.len()
                    );
                    socket.write_all(text.as_bytes()).await.unwrap();
                });
            }
        });
        Self { address, seen }
    }

    fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The forms that came to this path.
    fn forms(&self, path: &str) -> Vec<HashMap<String, String>> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|(own, _)| own == path).map(|(_, form)| form.clone()).collect()
    }
}

fn form(body: &str) -> HashMap<String, String> {
    let decode = |text: &str| percent(text);
    body.split('&').filter_map(|pair| pair.split_once('=')).map(|(name, value)| (decode(name), decode(value))).collect()
}

fn percent(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// A protected server and its authorization server at one address, which gives numbered tokens.
fn usual(base: &str, path: &str, form: &HashMap<String, String>) -> (u16, Value) {
    match path {
        "/.well-known/oauth-protected-resource/mcp" => (
            200,
            json!({"resource": format!("{base}/mcp"), "authorization_servers": [base], "scopes_supported": ["all"]}),
        ),
        "/.well-known/oauth-authorization-server" => (
            200,
            json!({
                "issuer": base, "authorization_endpoint": format!("{base}/authorize"), "token_endpoint": format!("{base}/token"),
                "registration_endpoint": format!("{base}/register"), "code_challenge_methods_supported": ["S256"],
            }),
        ),
        "/register" => (201, json!({"client_id": "made-up"})),
        "/token" => {
            let token =
                format!("made-up-{}-{}", form.get("scope").map_or("", String::as_str).replace(' ', "+"), form.len());
            (200, json!({"access_token": token, "token_type": "bearer"}))
        }
        _ => (404, json!({})),
    }
}

fn oauth(folder: &Path) -> Arc<OauthClientState> {
    let outbound = OutboundSettings { allow: vec!["127.0.0.1".parse().unwrap()], ..OutboundSettings::default() };
    OauthClientState::new(outbound, Vault::of(folder, Vec::new()), PageHost::Person)
}

fn spec(grant: GrantType) -> OauthSpec {
    OauthSpec {
        grant,
        per_user: false,
        client: None,
        scopes: Vec::new(),
        issuer: None,
        resource: None,
        provider: Provider::Standard,
    }
}

fn client(folder: &Path, id: &str) -> ClientSpec {
    let file = folder.join(format!("secret-of-{id}"));
    std::fs::write(&file, format!("made-up-secret-of-{id}\n")).unwrap();
    ClientSpec { id: id.to_owned(), secret: Some(SecretSource::File(file)), key_file: None }
}

fn refusal(status: u16, challenge: &str, used: Option<&AuthHeader>) -> AuthRefusal {
    AuthRefusal { status, challenges: vec![challenge.to_owned()], used: used.cloned() }
}

#[tokio::test]
async fn the_scopes_of_the_challenge_count_and_a_step_up_keeps_those_of_before() {
    let folder = tempfile::tempdir().unwrap();
    let server = FakeServer::start(usual).await;
    let spec = OauthSpec { client: Some(client(folder.path(), "me")), ..spec(GrantType::ClientCredentials) };
    let credentials = OauthCredentials::new("b", &format!("{}/mcp", server.base()), spec, oauth(folder.path()));
    assert_eq!(credentials.current(RequestIdentity::default()).await.unwrap(), None);
    let first = credentials
        .renewed(RequestIdentity::default(), refusal(401, "Bearer scope=\"read\"", None))
        .await
        .unwrap()
        .unwrap();
    let more = "Bearer error=\"insufficient_scope\", scope=\"write\"";
    let second =
        credentials.renewed(RequestIdentity::default(), refusal(403, more, Some(&first))).await.unwrap().unwrap();
    assert_ne!(first.value, second.value);
    assert_eq!(
        credentials.renewed(RequestIdentity::default(), refusal(403, more, Some(&second))).await.unwrap(),
        None,
        "asked for already"
    );
    assert_eq!(
        credentials.renewed(RequestIdentity::default(), refusal(403, "Bearer", Some(&second))).await.unwrap(),
        None,
        "no matter of scopes"
    );
    let forms = server.forms("/token");
    let scopes: Vec<&str> = forms.iter().map(|form| form["scope"].as_str()).collect();
    assert_eq!(scopes, ["read", "write read"]);
    assert!(forms.iter().all(|form| form["resource"] == format!("{}/mcp", server.base())), "a_c8");
    assert!(forms.iter().all(|form| form["authorization"].starts_with("Basic ")));
}

#[tokio::test]
async fn one_flow_at_a_time_and_a_token_is_kept_for_the_next_process() {
    let folder = tempfile::tempdir().unwrap();
    let server = FakeServer::start(usual).await;
    let spec = OauthSpec { client: Some(client(folder.path(), "me")), ..spec(GrantType::ClientCredentials) };
    let url = format!("{}/mcp", server.base());
    let credentials = Arc::new(OauthCredentials::new("b", &url, spec.clone(), oauth(folder.path())));
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let credentials = Arc::clone(&credentials);
        all.spawn(async move {
            credentials.renewed(RequestIdentity::default(), refusal(401, "Bearer", None)).await.unwrap().unwrap().value
        });
    }
    let values = all.join_all().await;
    assert!(values.iter().all(|value| *value == values[0]));
    assert_eq!(server.forms("/token").len(), 1);
    let next = OauthCredentials::new("b", &url, spec, oauth(folder.path()));
    assert_eq!(next.current(RequestIdentity::default()).await.unwrap().unwrap().value, values[0]);
}

#[tokio::test]
async fn a_token_is_not_sent_to_another_server_under_the_same_name() {
    let folder = tempfile::tempdir().unwrap();
    let server = FakeServer::start(usual).await;
    let spec = OauthSpec { client: Some(client(folder.path(), "me")), ..spec(GrantType::ClientCredentials) };
    let credentials = OauthCredentials::new("b", &format!("{}/mcp", server.base()), spec.clone(), oauth(folder.path()));
    credentials.renewed(RequestIdentity::default(), refusal(401, "Bearer", None)).await.unwrap().unwrap();
    for (url, sent) in [(format!("{}/mcp", server.base()), true), ("https://evil.example/mcp".to_owned(), false)] {
        let credentials = OauthCredentials::new("b", &url, spec.clone(), oauth(folder.path()));
        assert_eq!(credentials.current(RequestIdentity::default()).await.unwrap().is_some(), sent, "{url}");
    }
}

#[tokio::test]
async fn each_principal_has_its_own_token() {
    let folder = tempfile::tempdir().unwrap();
    let server = FakeServer::start(|base, path, form| match path {
        "/exchange" => (200, json!({"access_token": format!("made-up-for-{}", form["subject_token"])})),
        _ => usual(base, path, form),
    })
    .await;
    let mut users = BTreeMap::new();
    for name in ["ada", "bob"] {
        let file = folder.path().join(name);
        std::fs::write(&file, name).unwrap();
        users.insert(format!("local:{name}"), SecretSource::File(file));
    }
    let exchange = ExchangeSpec {
        url: format!("{}/exchange", server.base()),
        client: None,
        from_caller: false,
        shared: None,
        users,
        token_type: ACCESS_TOKEN.to_owned(),
        audience: Some("tracker".to_owned()),
    };
    let spec = OauthSpec {
        client: Some(client(folder.path(), "me")),
        per_user: true,
        ..spec(GrantType::TokenExchange(exchange))
    };
    let credentials = OauthCredentials::new("b", "https://b.example/mcp", spec, oauth(folder.path()));
    let (ada, bob) = (Principal::local("ada"), Principal::local("bob"));
    for _ in 0..3 {
        for (who, token) in [(&ada, "Bearer made-up-for-ada"), (&bob, "Bearer made-up-for-bob")] {
            let known = credentials.current(Some(who.clone()).into()).await.unwrap();
            let given = match known {
                Some(known) => known,
                None => {
                    credentials.renewed(Some(who.clone()).into(), refusal(401, "Bearer", None)).await.unwrap().unwrap()
                }
            };
            assert_eq!(given.value, token);
        }
    }
    let eve =
        credentials.renewed(Some(Principal::local("eve")).into(), refusal(401, "Bearer", None)).await.unwrap_err();
    assert_eq!(eve.kind, FaultKind::Refused, "that says nothing of the backend");
    assert!(credentials.current(RequestIdentity::default()).await.is_err(), "nobody is nobody");
    // The members of RFC 8693, section 2.1.
    let form = &server.forms("/exchange")[0];
    assert_eq!(form["grant_type"], "urn:ietf:params:oauth:grant-type:token-exchange");
    assert_eq!(form["subject_token_type"], "urn:ietf:params:oauth:token-type:access_token");
    assert_eq!(form["requested_token_type"], "urn:ietf:params:oauth:token-type:access_token");
    assert_eq!((form["audience"].as_str(), form["resource"].as_str()), ("tracker", "https://b.example/mcp"));
}

/// A request of corp:ada, with this token or without any. The token is good until it is revoked.
fn request_of_ada(token: Option<&str>) -> (RequestIdentity, Revocation) {
    let (mut credential, revocation) = Shown::new("corp/-", None);
    credential.token = token.map(SubjectToken::new);
    let standing = Standing { credential: Some(credential), ..Standing::default() };
    let principal = Principal::named("corp:ada");
    let caller = Caller::new(Identity {
        principal: principal.clone(),
        proof: if token.is_some() { Proof::Token } else { Proof::ApiKey },
        claims: Vec::new(),
        address: None,
        transport: "http",
        standing: Some(Arc::new(standing)),
    });
    (
        RequestIdentity { user: Some(BackendUser::of(principal, &caller)), asker: RequestSender::Caller(caller) },
        revocation,
    )
}

/// A backend that takes what is got in exchange for callers' tokens, and the server that exchanges them: each into one
/// that names it and how often it was exchanged, for the given time. It refuses one that is worth nothing.
async fn exchanging(folder: &Path, expires_in: u64) -> (FakeServer, Arc<OauthCredentials>) {
    let times: Mutex<HashMap<String, u32>> = Mutex::default();
    let server = FakeServer::start(move |_, _, form| {
        let subject = &form["subject_token"];
        if subject == "worthless" {
            return (400, json!({"error": "invalid_grant"}));
        }
        let mut times = times.lock().unwrap();
        let time = times.entry(subject.clone()).and_modify(|time| *time += 1).or_insert(1);
        (200, json!({"access_token": format!("made-up-for-{subject}-{time}"), "expires_in": expires_in}))
    })
    .await;
    let exchange = ExchangeSpec {
        url: format!("{}/exchange", server.base()),
        client: None,
        from_caller: true,
        shared: None,
        users: BTreeMap::new(),
        token_type: ACCESS_TOKEN.to_owned(),
        audience: None,
    };
    let spec =
        OauthSpec { client: Some(client(folder, "me")), per_user: true, ..spec(GrantType::TokenExchange(exchange)) };
    let oauth = oauth(folder);
    let credentials = Arc::new(OauthCredentials::new("b", "https://b.example/mcp", spec, Arc::clone(&oauth)));
    (server, credentials)
}

/// The credential of a request: the second one, if the first was refused.
async fn sent_with(credentials: &OauthCredentials, whose: &RequestIdentity) -> Result<String, FaultKind> {
    let known = credentials.current(whose.clone()).await.map_err(|fault| fault.kind)?;
    let given = match known {
        Some(known) => known,
        None => {
            let renewed = credentials.renewed(whose.clone(), refusal(401, "Bearer", None)).await;
            renewed.map_err(|fault| fault.kind)?.unwrap()
        }
    };
    Ok(given.value.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn what_is_exchanged_is_bound_to_the_token_that_the_request_shows() {
    let folder = tempfile::tempdir().unwrap();
    let (server, credentials) = exchanging(folder.path(), 3_600).await;
    let (strong, revocation) = request_of_ada(Some("strong"));
    let ((weak, _), (key, _), (worthless, _)) =
        (request_of_ada(Some("weak")), request_of_ada(None), request_of_ada(Some("worthless")));
    let gone = RequestIdentity { asker: RequestSender::Gone, ..strong.clone() };
    for _ in 0..3 {
        assert_eq!(sent_with(&credentials, &strong).await.unwrap(), "Bearer made-up-for-strong-1");
        assert_eq!(sent_with(&credentials, &weak).await.unwrap(), "Bearer made-up-for-weak-1");
        for without in [&key, &worthless, &gone] {
            // Neither a fault of the backend, nor one that trips a breaker.
            assert_eq!(sent_with(&credentials, without).await, Err(FaultKind::Refused), "{without:?}");
            let renewed = credentials.renewed(without.clone(), refusal(401, "Bearer", None)).await;
            assert_eq!(renewed.unwrap_err().kind, FaultKind::Refused);
        }
    }
    // What the gateway asks by itself, as for lists, goes with the token of the user whose connection it is.
    for (whose, sent) in [(&strong, "Bearer made-up-for-strong-1"), (&weak, "Bearer made-up-for-weak-1")] {
        let lists = RequestIdentity { asker: RequestSender::Gateway, ..whose.clone() };
        assert_eq!(sent_with(&credentials, &lists).await.unwrap(), sent);
    }
    let lists = RequestIdentity { asker: RequestSender::Gateway, ..key.clone() };
    assert_eq!(sent_with(&credentials, &lists).await, Err(FaultKind::Refused));
    let exchanged = server.forms("/exchange").iter().filter(|form| form["subject_token"] != "worthless").count();
    assert_eq!(exchanged, 2, "each token once");
    let kept =
        std::fs::read_dir(folder.path()).unwrap().map(|file| std::fs::read(file.unwrap().path()).unwrap_or_default());
    assert!(kept.into_iter().all(|bytes| !String::from_utf8_lossy(&bytes).contains("made-up-for")), "only in memory");
    revocation.revoke();
    assert_eq!(sent_with(&credentials, &strong).await, Err(FaultKind::Refused), "nothing is worth more than its token");
    assert_eq!(sent_with(&credentials, &weak).await.unwrap(), "Bearer made-up-for-weak-1");
}

#[tokio::test]
async fn what_has_expired_is_exchanged_anew_for_the_same_token() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, credentials) = exchanging(folder.path(), 0).await;
    let ((strong, _), (weak, _)) = (request_of_ada(Some("strong")), request_of_ada(Some("weak")));
    for time in 1..=3 {
        assert_eq!(sent_with(&credentials, &strong).await.unwrap(), format!("Bearer made-up-for-strong-{time}"));
        assert_eq!(sent_with(&credentials, &weak).await.unwrap(), format!("Bearer made-up-for-weak-{time}"));
    }
}

#[tokio::test]
async fn two_tokens_of_one_principal_are_exchanged_at_once_each_for_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (server, credentials) = exchanging(folder.path(), 3_600).await;
    let mut all = tokio::task::JoinSet::new();
    for round in 0..40 {
        let credentials = Arc::clone(&credentials);
        all.spawn(async move {
            let name = if round % 2 == 0 { "strong" } else { "weak" };
            let given = sent_with(&credentials, &request_of_ada(Some(name)).0).await.unwrap();
            assert_eq!(given, format!("Bearer made-up-for-{name}-1"));
        });
    }
    all.join_all().await;
    assert_eq!(server.forms("/exchange").len(), 2);
}

/// The example of RFC 8693, section 2.3: its client, its resource, its subject token, and its answer.
#[tokio::test]
async fn rfc_8693_2_3_the_example_of_the_standard_is_sent_and_its_answer_is_taken() {
    const SUBJECT: &str = "accVkjcJyb4BWCxGsndESCJQbGFMogUC5PbRDqceLTC";
    const ISSUED: &str = "eyJhbGciOiJFUzI1NiIsImtpZCI6IjllciJ9.eyJhdWQiOiJodHRwczovL2JhY2tlbmQuZXhhbXBsZS5jb20iLCJpc3MiOiJodHRwczovL2FzLmV4YW1wbGUuY29tIiwiZXhwIjoxNDQxOTE3NTkzLCJpYXQiOjE0NDE5MTc1MzMsInN1YiI6ImJkY0BleGFtcGxlLmNvbSIsInNjb3BlIjoiYXBpIn0.40y3ZgQedw6rxf59WlwHDD9jryFOr0_Wh3CGozQBihNBhnXEQgU85AI9x3KmsPottVMLPIWvmDCMy5-kdXjwhw";
    let folder = tempfile::tempdir().unwrap();
    let server = FakeServer::start(|_, _, _| {
        let kind = "urn:ietf:params:oauth:token-type:access_token";
        (200, json!({"access_token": ISSUED, "issued_token_type": kind, "token_type": "Bearer", "expires_in": 60}))
    })
    .await;
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        SecretSource::File(path)
    };
    let secret = Some(file("secret", "long-secure-random-secret"));
    let exchange = ExchangeSpec {
        url: format!("{}/as/token.oauth2", server.base()),
        client: Some(ClientSpec { id: "rs08".to_owned(), secret, key_file: None }),
        from_caller: false,
        shared: Some(file("subject", SUBJECT)),
        users: BTreeMap::new(),
        token_type: ACCESS_TOKEN.to_owned(),
        audience: None,
    };
    let credentials = OauthCredentials::new(
        "b",
        "https://backend.example.com/api",
        spec(GrantType::TokenExchange(exchange)),
        oauth(folder.path()),
    );
    let given = credentials.renewed(RequestIdentity::default(), refusal(401, "Bearer", None)).await.unwrap().unwrap();
    assert_eq!(given.value, format!("Bearer {ISSUED}"));
    let mut sent = server.forms("/as/token.oauth2").remove(0);
    // We say which kind we want; the example leaves that to the server.
    assert_eq!(sent.remove("requested_token_type").as_deref(), Some(ACCESS_TOKEN));
    let example = form(
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange\
         &resource=https%3A%2F%2Fbackend.example.com%2Fapi\
         &subject_token=accVkjcJyb4BWCxGsndESCJQbGFMogUC5PbRDqceLTC\
         &subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token\
         &authorization=Basic%20cnMwODpsb25nLXNlY3VyZS1yYW5kb20tc2VjcmV0",
    );
    assert_eq!(sent, example);
}

/// An identity provider and a protected server with its authorization server.
async fn enterprise(folder: &Path, issued: &'static str) -> (FakeServer, FakeServer, OauthCredentials) {
    enterprise_granting(folder, issued, None).await
}

/// The same with a provider that grants these scopes, if it names any.
async fn enterprise_granting(
    folder: &Path,
    issued: &'static str,
    scope: Option<&'static str>,
) -> (FakeServer, FakeServer, OauthCredentials) {
    let provider = FakeServer::start(move |_, _, _| {
        let answer = json!({
            "access_token": "made-up-assertion", "issued_token_type": issued, "token_type": "N_A", "scope": scope,
        });
        (200, answer)
    })
    .await;
    let server = FakeServer::start(usual).await;
    let file = folder.join("id-token");
    std::fs::write(&file, "made-up-id-token").unwrap();
    let exchange = ExchangeSpec {
        url: format!("{}/token", provider.base()),
        client: Some(client(folder, "at-provider")),
        from_caller: false,
        shared: Some(SecretSource::File(file)),
        users: BTreeMap::new(),
        token_type: ID_TOKEN.to_owned(),
        audience: None,
    };
    let spec = OauthSpec { client: Some(client(folder, "at-server")), ..spec(GrantType::Enterprise(exchange)) };
    let credentials = OauthCredentials::new("b", &format!("{}/mcp", server.base()), spec, oauth(folder));
    (provider, server, credentials)
}

const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

#[tokio::test]
async fn the_assertion_is_for_the_issuer_and_names_the_resource() {
    let folder = tempfile::tempdir().unwrap();
    let (provider, server, credentials) = enterprise(folder.path(), ID_JAG).await;
    credentials
        .renewed(RequestIdentity::default(), refusal(401, "Bearer scope=\"read\"", None))
        .await
        .unwrap()
        .unwrap();
    let form = &provider.forms("/token")[0];
    assert_eq!(form["audience"], server.base());
    assert_eq!(form["resource"], format!("{}/mcp", server.base()));
    assert_eq!((form["requested_token_type"].as_str(), form["subject_token"].as_str()), (ID_JAG, "made-up-id-token"));
    assert!(!format!("{:?}", server.seen.lock().unwrap()).contains("id-token"), "only the provider sees the ID token");
}

#[tokio::test]
async fn the_assertion_becomes_a_token_for_that_resource_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (_provider, server, credentials) = enterprise(folder.path(), ID_JAG).await;
    credentials
        .renewed(RequestIdentity::default(), refusal(401, "Bearer scope=\"read\"", None))
        .await
        .unwrap()
        .unwrap();
    let form = &server.forms("/token")[0];
    assert_eq!(form["grant_type"], "urn:ietf:params:oauth:grant-type:jwt-bearer");
    assert_eq!((form["assertion"].as_str(), form["scope"].as_str()), ("made-up-assertion", "read"));
    assert_eq!(form["resource"], format!("{}/mcp", server.base()));
    let folder = tempfile::tempdir().unwrap();
    let (_provider, server, credentials) = enterprise(folder.path(), ACCESS_TOKEN).await;
    let other = credentials.renewed(RequestIdentity::default(), refusal(401, "Bearer", None)).await.unwrap_err();
    assert!(other.message.contains("the token exchange"), "{other}");
    assert!(server.forms("/token").is_empty(), "what is no assertion is given to nobody");
}

#[tokio::test]
async fn no_scope_is_asked_for_that_the_provider_did_not_grant() {
    let folder = tempfile::tempdir().unwrap();
    let (provider, server, credentials) = enterprise_granting(folder.path(), ID_JAG, Some("admin read")).await;
    let challenge = "Bearer scope=\"read write\"";
    let token = credentials.renewed(RequestIdentity::default(), refusal(401, challenge, None)).await.unwrap().unwrap();
    assert_eq!(provider.forms("/token")[0]["scope"], "read write");
    assert_eq!(server.forms("/token")[0]["scope"], "read");
    // The provider has been asked for it, so that the refusal stands.
    let lacking = refusal(403, "Bearer error=\"insufficient_scope\", scope=\"write\"", Some(&token));
    assert!(credentials.renewed(RequestIdentity::default(), lacking).await.unwrap().is_none());
    assert_eq!(provider.forms("/token").len(), 1);
}

#[tokio::test]
async fn a_registration_says_the_application_type_and_a_refused_one_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let server = FakeServer::start(|base, path, form| match path {
        "/register" => (400, json!({"error": "invalid_redirect_uri"})),
        _ => usual(base, path, form),
    })
    .await;
    let at = format!("{}/mcp", server.base());
    let credentials = OauthCredentials::new("b", &at, spec(GrantType::SignIn), oauth(folder.path()));
    let fault = credentials.renewed(RequestIdentity::default(), refusal(401, "Bearer", None)).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::BackendDown);
    assert!(fault.message.contains("refused the registration (invalid_redirect_uri)"), "{fault}");
    let asked: Value = serde_json::from_str(&server.forms("/register")[0]["json"]).unwrap();
    assert_eq!(asked["application_type"], "native", "{asked}");
    // Another attempt registers again: a refusal is not kept.
    credentials.renewed(RequestIdentity::default(), refusal(401, "Bearer", None)).await.unwrap_err();
    assert_eq!(server.forms("/register").len(), 2);
}

#[tokio::test]
async fn an_identity_provider_without_tls_is_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (provider, server, _) = enterprise(folder.path(), ID_JAG).await;
    let exchange = ExchangeSpec {
        url: format!("{}/token", provider.base()).replace("127.0.0.1", "localhost"),
        client: None,
        from_caller: false,
        shared: Some(SecretSource::File(folder.path().join("id-token"))),
        users: BTreeMap::new(),
        token_type: ID_TOKEN.to_owned(),
        audience: None,
    };
    let spec = OauthSpec { client: Some(client(folder.path(), "x")), ..spec(GrantType::Enterprise(exchange)) };
    let credentials = OauthCredentials::new("b", &format!("{}/mcp", server.base()), spec, oauth(folder.path()));
    let fault = credentials.renewed(RequestIdentity::default(), refusal(401, "Bearer", None)).await.unwrap_err();
    assert!(fault.message.contains("only https is used"), "{fault}");
    assert!(provider.forms("/token").is_empty());
}

#[tokio::test]
async fn metadata_of_another_issuer_are_discarded() {
    let folder = tempfile::tempdir().unwrap();
    let server = FakeServer::start(|base, path, form| match path {
        "/.well-known/oauth-authorization-server" => {
            (200, json!({"issuer": format!("{base}/"), "token_endpoint": format!("{base}/token")}))
        }
        _ => usual(base, path, form),
    })
    .await;
    let spec = OauthSpec { client: Some(client(folder.path(), "me")), ..spec(GrantType::ClientCredentials) };
    let credentials = OauthCredentials::new("b", &format!("{}/mcp", server.base()), spec, oauth(folder.path()));
    let fault = credentials.renewed(RequestIdentity::default(), refusal(401, "Bearer", None)).await.unwrap_err();
    assert!(fault.message.contains("they are of another issuer"), "{fault}");
    assert!(server.forms("/token").is_empty());
}

#[tokio::test]
async fn a_client_that_was_registered_by_hand_is_not_shown_to_another_issuer() {
    let folder = tempfile::tempdir().unwrap();
    let other = FakeServer::start(usual).await;
    let moved = Arc::new(Mutex::new(None::<String>));
    let to = Arc::clone(&moved);
    let server = FakeServer::start(move |base, path, form| match (path, &*to.lock().unwrap()) {
        ("/.well-known/oauth-protected-resource/mcp", Some(issuer)) => {
            (200, json!({"resource": format!("{base}/mcp"), "authorization_servers": [issuer]}))
        }
        _ => usual(base, path, form),
    })
    .await;
    let spec = OauthSpec { client: Some(client(folder.path(), "me")), ..spec(GrantType::ClientCredentials) };
    let credentials = OauthCredentials::new("b", &format!("{}/mcp", server.base()), spec, oauth(folder.path()));
    let first = credentials.renewed(RequestIdentity::default(), refusal(401, "Bearer", None)).await.unwrap().unwrap();
    *moved.lock().unwrap() = Some(other.base());
    let fault =
        credentials.renewed(RequestIdentity::default(), refusal(401, "Bearer", Some(&first))).await.unwrap_err();
    assert!(fault.message.contains("has changed"), "{fault}");
    assert!(other.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn only_the_provider_that_refuses_it_gets_no_resource() {
    let folder = tempfile::tempdir().unwrap();
    let server = FakeServer::start(usual).await;
    let own = client(folder.path(), "me");
    let spec = OauthSpec { client: Some(own), provider: Provider::Entra, ..spec(GrantType::ClientCredentials) };
    let credentials = OauthCredentials::new("b", &format!("{}/mcp", server.base()), spec, oauth(folder.path()));
    credentials.renewed(RequestIdentity::default(), refusal(401, "Bearer", None)).await.unwrap().unwrap();
    assert!(!server.forms("/token")[0].contains_key("resource"));
}

#[tokio::test]
async fn a_sign_in_is_offered_once_to_whoever_asks_for_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let server = FakeServer::start(usual).await;
    let oauth = oauth(folder.path());
    let credentials =
        OauthCredentials::new("b", &format!("{}/mcp", server.base()), spec(GrantType::SignIn), Arc::clone(&oauth));
    let ask = async |challenge: &str| {
        credentials.renewed(RequestIdentity::default(), refusal(401, challenge, None)).await.unwrap_err()
    };
    let first = ask("Bearer").await;
    assert_eq!(first.kind, FaultKind::SignInNeeded);
    assert_eq!(ask("Bearer").await.data, first.data);
    assert_ne!(ask("Bearer scope=\"more\"").await.data, first.data);
    assert_eq!(server.forms("/register").len(), 1);
}
