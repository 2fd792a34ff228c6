//! The gateway's own authorization server: real clients sign in there by their own OAuth flows, and call
//! with what they get.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use signalbox_testkit::clients;
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::{HttpAnswer, HttpClient};
use signalbox_testkit::openssl::Authority;
use signalbox_testkit::ports::free_address;
use signalbox_testkit::process::{Spawned, built};
use signalbox_testkit::protected_server::{Demands, ProtectedServer};
use signalbox_testkit::scene::{PATIENCE, child, eventually, files_holding, signalbox, text};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio_rustls::TlsAcceptor;

const PASSWORD: &str = "made-up correct horse";
const BACK: &str = "http://127.0.0.1:9/callback";
/// The verifier of RFC 7636, and its challenge.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

fn config(more: &str) -> String {
    format!(
        "[mcp.protocol.security]\nrequire_authentication = true\n\
         [auth.scopes]\n'greet:use' = ['one/greet']\n\
         [auth.server]\nenabled = true\n{more}\n{}",
        child("one", ServedEra::Both, "").unwrap()
    )
}

/// A gateway with the user `ada`.
async fn gateway(more: &str) -> GatewayProcess {
    gateway_at(free_address().unwrap(), more).await
}

async fn gateway_at(address: SocketAddr, more: &str) -> GatewayProcess {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    add_user(&folder.path().join("data"), "ada").await;
    let gateway = GatewayProcess::serve_at(address, folder, &config(more)).await.unwrap();
    gateway.ready().await.unwrap();
    gateway
}

async fn add_user(data_dir: &Path, name: &str) {
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(["users", "add", name, "--data-dir"]).arg(data_dir).current_dir(data_dir);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{PASSWORD}\n").as_bytes()).await.unwrap();
    let ended = child.wait_with_output().await.unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

/// A client of this library completes its flow, calls, lets its token expire, and calls again.
async fn completes(client: &str, browser: bool) {
    // Short enough to expire while the client waits: it has to refresh.
    let gateway = gateway("access_lifetime = 3\n[auth.users.'user:ada']\nroles = ['admin']").await;
    let variables: &[(&str, &str)] = if browser { &[("MCP_TEST_BROWSER", "1")] } else { &[] };
    let url = gateway.url();
    let args = [client, &url, "greet", r#"{"name":"Eve"}"#, "ada", PASSWORD, "4"];
    let Some(said) = clients::run_with(&args, variables).await.unwrap() else {
        eprintln!("SKIP {client}: run script/install-test-deps");
        return;
    };
    assert_eq!(said["pages"], json!(["Sign in · Signalbox", "Allow access? · Signalbox"]), "{said}");
    assert!(said["tools"].as_array().unwrap().contains(&json!("greet")), "{said}");
    for result in said["results"].as_array().unwrap() {
        assert!(result.as_str().unwrap().contains("Eve"), "{said}");
    }
    assert_eq!((&said["registered"], &said["refreshed"]), (&json!(true), &json!(true)), "{said}");
    assert!(said["scope"].as_str().unwrap().split(' ').any(|scope| scope == "greet:use"), "{said}");
    let folder = gateway.stop().await.unwrap();
    let none = Vec::<PathBuf>::new();
    assert_eq!(files_holding(folder.path(), PASSWORD).unwrap(), none, "the password is kept nowhere");
}

/// Proves NO-17.
#[tokio::test(flavor = "multi_thread")]
async fn the_typescript_client_completes_its_own_flow() {
    completes("oauth-ts-client2", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_completes_its_own_flow() {
    completes("oauth-py-mcp2", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_typescript_client_completes_its_own_flow_in_chromium() {
    completes("oauth-ts-client2", true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_completes_its_own_flow_in_chromium() {
    completes("oauth-py-mcp2", true).await;
}

fn header<'a>(answer: &'a HttpAnswer, name: &str) -> &'a str {
    answer.headers.get(name).unwrap_or_else(|| panic!("no {name}: {answer:?}")).to_str().unwrap()
}

fn document(answer: &HttpAnswer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{answer:?}"))
}

/// A program at one gateway, which is its own browser.
struct Visitor {
    http: HttpClient,
    resource: String,
    client: String,
    /// Where it wants the code to be brought.
    back: String,
}

impl Visitor {
    async fn new(gateway: &GatewayProcess) -> Self {
        Self::register(HttpClient::new(gateway.address()), gateway.url()).await
    }

    async fn register(http: HttpClient, resource: String) -> Self {
        let body = json!({"client_name": "Visitor", "redirect_uris": [BACK]}).to_string();
        let registered = http.send(Method::POST, "/auth/register", Bytes::from(body)).await.unwrap();
        assert_eq!(registered.status, 201, "{registered:?}");
        let client = document(&registered)["client_id"].as_str().unwrap().to_owned();
        Self { http, resource, client, back: BACK.to_owned() }
    }

    async fn form(&self, path: &str, form: &str, cookie: &str) -> HttpAnswer {
        let http = self.http.clone().with("content-type", "application/x-www-form-urlencoded").with("cookie", cookie);
        http.send(Method::POST, path, Bytes::copy_from_slice(form.as_bytes())).await.unwrap()
    }

    fn authorize_path(&self) -> String {
        format!(
            "/auth/authorize?response_type=code&client_id={}&redirect_uri={}&state=st&scope=mcp+greet:use\
             &code_challenge={CHALLENGE}&code_challenge_method=S256&resource={}",
            self.client, self.back, self.resource
        )
    }

    async fn authorize(&self) -> HttpAnswer {
        self.http.get(&self.authorize_path()).await.unwrap()
    }

    /// Signs in at a page that asks for that: the next page, the ticket and the cookie.
    async fn sign_in(&self, page: &HttpAnswer, user: &str) -> (HttpAnswer, String, String) {
        assert_eq!(page.status, 200, "{page:?}");
        let cookie = header(page, "set-cookie").split(';').next().unwrap().to_owned();
        let html = String::from_utf8(page.body.to_vec()).unwrap();
        let ticket = html.split("name=\"ticket\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        let form = format!("ticket={ticket}&user={user}&password={}", PASSWORD.replace(' ', "+"));
        (self.form("/auth/sign-in", &form, &cookie).await, ticket, cookie)
    }

    /// Signs in, says yes, and returns the code.
    async fn code(&self) -> String {
        let (page, ticket, cookie) = self.sign_in(&self.authorize().await, "ada").await;
        assert_eq!(page.status, 200, "{page:?}");
        let answer = self.form("/auth/consent", &format!("ticket={ticket}&answer=allow"), &cookie).await;
        assert_eq!(answer.status, 303, "{answer:?}");
        let location = header(&answer, "location");
        assert!(
            location.starts_with(BACK) && location.contains("state=st") && location.contains("iss=http"),
            "{location}"
        );
        location.split("code=").nth(1).unwrap().split('&').next().unwrap().to_owned()
    }

    async fn tokens(&self) -> (String, String) {
        self.redeem(&self.code().await).await
    }

    async fn redeem(&self, code: &str) -> (String, String) {
        let form = format!(
            "grant_type=authorization_code&client_id={}&code={code}&code_verifier={VERIFIER}&redirect_uri={}&resource={}",
            self.client, self.back, self.resource
        );
        pair(&self.form("/auth/token", &form, "").await)
    }

    async fn refresh(&self, token: &str) -> HttpAnswer {
        let form = format!("grant_type=refresh_token&client_id={}&refresh_token={token}", self.client);
        self.form("/auth/token", &form, "").await
    }

    async fn greet(&self, token: &str) -> HttpAnswer {
        let http = self.http.clone().with("authorization", &format!("Bearer {token}"));
        http.modern(7, "tools/call", json!({"name": "greet", "arguments": {"name": "Eve"}})).await.unwrap()
    }
}

fn pair(answer: &HttpAnswer) -> (String, String) {
    assert_eq!(answer.status, 200, "{answer:?}");
    let document = document(answer);
    let text = |name: &str| document[name].as_str().unwrap().to_owned();
    (text("access_token"), text("refresh_token"))
}

/// npm `oidc-provider` as the provider of people, in its own pages.
async fn signs_in_by_the_provider(browser: bool) {
    let (address, provider) = (free_address().unwrap(), free_address().unwrap());
    let mut command = Command::new(clients::run_script());
    command.args(["oidc-provider", &provider.port().to_string(), &format!("http://{address}/auth/openid")]);
    let mut process = Spawned::start(command).unwrap();
    if process.wait_line("listening ", PATIENCE).await.is_err() {
        let ended = process.wait(PATIENCE).await.unwrap();
        assert!(
            ended.code() == Some(77) && std::env::var("CI").as_deref() != Ok("true"),
            "{:?}",
            process.error_lines()
        );
        return eprintln!("SKIP oidc-provider: run script/install-test-deps");
    }
    let more = format!(
        "[auth.server.openid]\nissuer = 'http://{provider}'\nclient_id = 'box'\nclient_secret_env = 'OPENID_SECRET'\n\
         name = 'Corp'\n[auth.outbound]\nallow = ['127.0.0.1']\n[auth.groups.ops]\nroles = ['admin']"
    );
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    std::fs::write(folder.path().join("signalbox.toml"), config(&more)).unwrap();
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(["serve", "--listen", &address.to_string(), "-c"]).arg(folder.path().join("signalbox.toml"));
    command.arg("--data-dir").arg(folder.path().join("data")).env("OPENID_SECRET", "made-up-openid-secret");
    let gateway = Spawned::start(command).unwrap();
    let http = HttpClient::new(address);
    let up = async || http.get("/readyz").await.ok().filter(|answer| answer.status == 200);
    eventually("the gateway is ready", up).await.unwrap();
    let mut visitor = Visitor::register(http, format!("http://{address}/mcp")).await;
    visitor.back = clients::listening_back().await.unwrap();
    let mut variables = vec![("MCP_TEST_PROVIDER", "1")];
    variables.extend(browser.then_some(("MCP_TEST_BROWSER", "1")));
    let url = format!("http://{address}{}", visitor.authorize_path());
    let said = clients::run_with(&["person", &url, "grace", "anything"], &variables).await.unwrap();
    let Some(said) = said else { return };
    let end = said["end"].as_str().unwrap();
    let code = end.split("code=").nth(1).unwrap_or_else(|| panic!("{said} {:?}", gateway.error_lines()));
    let (access, refresh) = visitor.redeem(code.split('&').next().unwrap()).await;
    assert_eq!(visitor.greet(&access).await.status, 200);
    // The group comes from the provider, and its role from the configuration.
    let admin = visitor.http.clone().with("authorization", &format!("Bearer {access}"));
    let sessions = admin.get("/api/v1/sessions").await.unwrap();
    assert_eq!(sessions.status, 200, "{sessions:?}");
    let (next, refresh) = pair(&visitor.refresh(&refresh).await);
    // All that a person of the provider has can be ended by name.
    let data_dir = folder.path().join("data");
    assert_eq!(visitor.greet(&next).await.status, 200);
    signalbox(&data_dir, &["users", "remove", "user:openid:grace"]).await.unwrap();
    for token in [&access, &next] {
        assert_eq!(visitor.greet(token).await.status, 401);
    }
    assert_eq!(visitor.refresh(&refresh).await.status, 400);
    let log = gateway.error_lines().join("\n");
    assert!(log.contains("openid:grace") && !log.contains("made-up-openid-secret"), "{log}");
    // An answer that belongs to no sign-in of this browser is not redeemed.
    assert_eq!(visitor.http.get("/auth/openid?code=x&state=y").await.unwrap().status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn people_sign_in_by_an_openid_provider() {
    signs_in_by_the_provider(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_sign_in_by_an_openid_provider_in_chromium() {
    signs_in_by_the_provider(true).await;
}

/// The authorization-server mode of the public conformance runner, whose browser we are.
#[tokio::test(flavor = "multi_thread")]
async fn the_conformance_runner_finds_nothing_wrong_with_the_authorization_server() {
    let gateway = gateway("").await;
    let back = free_address().unwrap();
    let http = HttpClient::new(gateway.address());
    let body = json!({"client_name": "Judge", "redirect_uris": [format!("http://{back}/callback")]}).to_string();
    let registered = http.send(Method::POST, "/auth/register", Bytes::from(body)).await.unwrap();
    let client = document(&registered)["client_id"].as_str().unwrap().to_owned();
    let issuer = format!("http://{}", gateway.address());
    let mut command = Command::new(clients::run_script());
    command.args(["conformance-0.2", "authorization", "--url", &issuer, "--resource", &gateway.url()]);
    command.args([&format!("--client-id={client}"), "-p", &back.port().to_string()]);
    let mut runner = command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(runner.stdout.take().unwrap()).lines();
    let mut said = String::new();
    let reading = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.starts_with(&format!("{issuer}/auth/authorize")) {
                let done = clients::run(&["person", &line, "ada", PASSWORD]).await.unwrap();
                assert!(done.unwrap()["end"].as_str().unwrap().contains("code="));
            }
            said.push_str(&line);
            said.push('\n');
        }
    };
    tokio::time::timeout(PATIENCE * 4, reading).await.expect("the runner comes to an end");
    let ended = runner.wait().await.unwrap();
    if ended.code() == Some(77) && std::env::var("CI").as_deref() != Ok("true") {
        eprintln!("SKIP conformance-0.2: run script/install-test-deps");
        return;
    }
    assert!(ended.success() && said.contains("Total: 3 passed, 0 failed"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metadata_of_the_resource_name_the_gateway_as_its_authorization_server() {
    let gateway = gateway("").await;
    let http = HttpClient::new(gateway.address());
    let origin = format!("http://{}", gateway.address());
    let resource = document(&http.get("/.well-known/oauth-protected-resource/mcp").await.unwrap());
    assert_eq!(resource["authorization_servers"], json!([origin]));
    let server = document(&http.get("/.well-known/oauth-authorization-server").await.unwrap());
    assert_eq!((&server["issuer"], &server["code_challenge_methods_supported"]), (&json!(origin), &json!(["S256"])));
    let keys = document(&http.get("/auth/jwks").await.unwrap());
    assert_eq!((&keys["keys"][0]["kty"], keys["keys"][0].get("d")), (&json!("OKP"), None));
    assert_eq!(http.get("/.well-known/oauth-authorization-server/mcp").await.unwrap().status, 401);
    let wrong = http.send(Method::POST, "/auth/token", Bytes::from_static(b"{}")).await.unwrap();
    assert_eq!(wrong.status, 415);
    let large = Bytes::from(vec![b'a'; 20_000]);
    assert_eq!(http.send(Method::POST, "/auth/register", large).await.unwrap().status, 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn rfc_7009_what_is_revoked_or_used_twice_is_refused_at_once_and_after_a_restart() {
    let gateway = gateway("").await;
    let visitor = Visitor::new(&gateway).await;
    let (access, first) = visitor.tokens().await;
    let greeted = visitor.greet(&access).await;
    assert!(text(&greeted.message().unwrap()).unwrap().contains("Eve"), "{greeted:?}");
    let (second_access, second) = pair(&visitor.refresh(&first).await);
    // The first one again: all tokens of the grant end, those that were verified before too.
    assert_eq!(visitor.refresh(&first).await.status, 400);
    for (token, what) in [(&access, "verified before"), (&second_access, "never seen")] {
        assert_eq!(visitor.greet(token).await.status, 401, "{what}");
    }
    assert_eq!(visitor.refresh(&second).await.status, 400);
    let (good, refresh) = visitor.tokens().await;
    let (other, _) = visitor.tokens().await;
    let form = format!("token={other}&client_id={}", visitor.client);
    assert_eq!(visitor.form("/auth/revoke", &form, "").await.status, 200);
    let address = gateway.address();
    let folder = gateway.stop().await.unwrap();
    for token in [&access, &good, &refresh] {
        let secret = token.rsplit('.').next().unwrap();
        assert_eq!(files_holding(folder.path(), secret).unwrap(), Vec::<PathBuf>::new(), "tokens are kept nowhere");
    }
    let again = GatewayProcess::serve_at(address, folder, &config("")).await.unwrap();
    again.ready().await.unwrap();
    assert_eq!(visitor.greet(&good).await.status, 200);
    assert_eq!(visitor.greet(&other).await.status, 401);
    assert_eq!(visitor.refresh(&refresh).await.status, 200);
}

/// Serves a client's metadata document by TLS, with its own address in it, and returns that address.
async fn published(authority: &Authority, id: Option<&str>) -> String {
    let issued = authority.local("client").await.unwrap();
    let certificate = CertificateDer::from_pem_file(&issued.cert).unwrap();
    let key = PrivateKeyDer::from_pem_file(&issued.key).unwrap();
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/client.json", listener.local_addr().unwrap().port());
    let document =
        json!({"client_id": id.unwrap_or(&url), "client_name": "Published", "redirect_uris": [BACK]}).to_string();
    let length = document.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{document}"
    );
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(socket).await else { continue };
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await;
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_known_by_the_document_at_its_address_if_that_may_be_asked() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let allowed = format!("[auth.outbound]\nallow = ['localhost']\nca_file = {:?}", authority.ca());
    let gateway = gateway(&allowed).await;
    let mut visitor = Visitor::new(&gateway).await;
    visitor.client = published(&authority, None).await;
    let (access, refresh) = visitor.tokens().await;
    assert_eq!(visitor.greet(&access).await.status, 200);
    assert_eq!(visitor.refresh(&refresh).await.status, 200);
    let page = visitor.authorize().await;
    assert!(String::from_utf8_lossy(&page.body).contains("Published"));
    // A document that says it is another client's is nobody's.
    visitor.client = published(&authority, Some("https://editor.example/client.json")).await;
    assert_eq!(visitor.authorize().await.status, 400);
    // Addresses that are not public are not asked unless the configuration says so.
    let closed = self::gateway(&allowed.replace("'localhost'", "")).await;
    let mut visitor = Visitor::new(&closed).await;
    visitor.client = published(&authority, None).await;
    assert_eq!(visitor.authorize().await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_caller_completes_a_sign_in_at_a_backend_in_a_browser() {
    let address = free_address().unwrap();
    only_the_caller_completes(address, &format!("public_url = 'http://{address}'\n")).await;
}

/// The pages are on the gateway's listener, where a browser can prove who its user is.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_caller_completes_a_sign_in_without_a_public_address_too() {
    only_the_caller_completes(free_address().unwrap(), "").await;
}

async fn only_the_caller_completes(address: SocketAddr, public_url: &str) {
    let server = ProtectedServer::start(Demands::TokenForCalls, None).await.unwrap();
    let more = format!(
        "[auth.outbound]\nallow = ['127.0.0.1']\n{public_url}\
         [backends.safe]\nurl = '{}'\n[backends.safe.auth]\ntype = 'oauth'\nper_user = true",
        server.url()
    );
    let gateway = gateway_at(address, &more).await;
    add_user(&gateway.data_dir(), "eve").await;
    let visitor = Visitor::new(&gateway).await;
    let (access, _) = visitor.tokens().await;
    let client = visitor.http.clone().with("authorization", &format!("Bearer {access}"));
    let client = client.initialize("2025-06-18", json!({})).await.unwrap();
    let work = async || client.request(2, "tools/call", json!({"name": "safe__work", "arguments": {}})).await.unwrap();
    let asked = async || work().await["error"]["data"]["url"].as_str().map(str::to_owned);
    let url = eventually("the call asks for a sign-in", asked).await.unwrap();
    let path = url.strip_prefix(&format!("http://{address}")).unwrap();
    let open = async |path: &str, cookie: &str| visitor.http.clone().with("cookie", cookie).get(path).await.unwrap();
    // Somebody else opens the address.
    let (back, _, eve) = visitor.sign_in(&open(path, "").await, "eve").await;
    assert_eq!((back.status, header(&back, "location")), (303, path));
    assert_eq!(open(path, &eve).await.status, 403);
    // The caller does, and is sent on.
    let (_, _, ada) = visitor.sign_in(&open(path, "").await, "ada").await;
    let sent = open(path, &ada).await;
    assert_eq!(sent.status, 303, "{sent:?}");
    let bound = header(&sent, "set-cookie").split(';').next().unwrap().to_owned();
    let there: http::Uri = header(&sent, "location").parse().unwrap();
    let there_client = HttpClient::new(there.authority().unwrap().as_str().parse().unwrap());
    let granted = there_client.get(there.path_and_query().unwrap().as_str()).await.unwrap();
    let back = header(&granted, "location").strip_prefix(&format!("http://{address}")).unwrap().to_owned();
    // A code that another person or another browser brings would be for another account.
    for foreign in ["", &eve, &bound, &format!("{eve}; {bound}"), &ada] {
        assert_eq!(open(&back, foreign).await.status, 403, "{foreign}");
    }
    assert_eq!(open(&back, &format!("{ada}; {bound}")).await.status, 200);
    let answer = work().await;
    assert_eq!(text(&answer).as_deref(), Some("done"), "{answer}");
    for secret in server.tokens() {
        assert!(!answer.to_string().contains(&secret) && !url.contains(&secret));
    }
}

/// Lets ada sign in at the backend whose address for that this is, in her browser.
async fn connect(visitor: &Visitor, address: SocketAddr, url: &str) {
    let base = format!("http://{address}");
    let open = async |path: &str, cookie: &str| visitor.http.clone().with("cookie", cookie).get(path).await.unwrap();
    let path = url.strip_prefix(&base).unwrap();
    let (_, _, ada) = visitor.sign_in(&open(path, "").await, "ada").await;
    let sent = open(path, &ada).await;
    let bound = header(&sent, "set-cookie").split(';').next().unwrap().to_owned();
    let there: http::Uri = header(&sent, "location").parse().unwrap();
    let there_client = HttpClient::new(there.authority().unwrap().as_str().parse().unwrap());
    let granted = there_client.get(there.path_and_query().unwrap().as_str()).await.unwrap();
    let back = header(&granted, "location").strip_prefix(&base).unwrap().to_owned();
    assert_eq!(open(&back, &format!("{ada}; {bound}")).await.status, 200);
}

/// The lists of a backend account end with the user, and with the token: neither the next user of the name nor a user
/// who has signed out is shown them, and a sign-in that was offered to the removed user is void.
#[tokio::test(flavor = "multi_thread")]
async fn lists_and_sign_ins_of_a_removed_user_are_not_for_the_next_one_of_that_name() {
    let server = ProtectedServer::start(Demands::TokenOwnTools, None).await.unwrap();
    let address = free_address().unwrap();
    let [safe, other] = ["safe", "other"].map(|name| {
        format!(
            "[backends.{name}]\nurl = '{}'\n[backends.{name}.auth]\ntype = 'oauth'\nper_user = true\n",
            server.url()
        )
    });
    let more = format!("[auth.outbound]\nallow = ['127.0.0.1']\n{safe}{other}");
    let gateway = gateway_at(address, &more).await;
    let data_dir = gateway.data_dir();
    let visitor = Visitor::new(&gateway).await;
    let client = async || {
        let (access, _) = visitor.tokens().await;
        visitor.http.clone().with("authorization", &format!("Bearer {access}"))
    };
    let tools = async |client: &HttpClient| {
        let listed = client.modern(1, "tools/list", json!({})).await.unwrap().message().unwrap();
        listed["result"]["tools"].to_string()
    };
    let address_of = async |client: &HttpClient, backend: &str| {
        let name = format!("{backend}__common");
        let asked = async || {
            let session = client.initialize("2025-06-18", json!({})).await.ok()?;
            let call = json!({"name": name, "arguments": {}});
            let answer = session.request(2, "tools/call", call).await.ok()?;
            answer["error"]["data"]["url"].as_str().map(str::to_owned)
        };
        eventually("the call asks for a sign-in", asked).await.unwrap()
    };
    let first = client().await;
    connect(&visitor, address, &address_of(&first, "safe").await).await;
    let listed = async || tools(&first).await.contains("of_").then_some(());
    eventually("the user's own tool is listed", listed).await.unwrap();
    let offered = address_of(&first, "other").await;

    signalbox(&data_dir, &["users", "remove", "ada"]).await.unwrap();
    add_user(&data_dir, "ada").await;
    let next = client().await;
    let shown = tools(&next).await;
    assert!(!shown.contains("of_"), "{shown}");
    let anew = address_of(&next, "other").await;
    assert_ne!(anew, offered, "the next user is not sent into the sign-in of the removed one");
    let opened = visitor.http.get(offered.strip_prefix(&format!("http://{address}")).unwrap()).await.unwrap();
    assert!(!matches!(opened.status, 200 | 303), "{opened:?}");

    connect(&visitor, address, &address_of(&next, "safe").await).await;
    let listed = async || tools(&next).await.contains("of_").then_some(());
    eventually("the next user's own tool is listed", listed).await.unwrap();
    let config = gateway.config_file();
    let config = config.to_str().unwrap();
    signalbox(&data_dir, &["logout", "safe", "--user", "user:ada", "--config", config]).await.unwrap();
    let shown = tools(&next).await;
    assert!(!shown.contains("of_"), "after logout: {shown}");
}

/// A caller cannot have all callers use its own account.
#[tokio::test(flavor = "multi_thread")]
async fn only_an_administrator_signs_in_for_a_token_that_all_callers_share() {
    let server = ProtectedServer::start(Demands::TokenForCalls, None).await.unwrap();
    let address = free_address().unwrap();
    let more = format!(
        "[auth.users.'user:root']\nroles = ['admin']\n[auth.outbound]\nallow = ['127.0.0.1']\n\
         [backends.safe]\nurl = '{}'\n[backends.safe.auth]\ntype = 'oauth'",
        server.url()
    );
    let gateway = gateway_at(address, &more).await;
    add_user(&gateway.data_dir(), "root").await;
    let visitor = Visitor::new(&gateway).await;
    let (access, _) = visitor.tokens().await;
    let client = visitor.http.clone().with("authorization", &format!("Bearer {access}"));
    let client = client.initialize("2025-06-18", json!({})).await.unwrap();
    let work = async || client.request(2, "tools/call", json!({"name": "safe__work", "arguments": {}})).await.unwrap();
    let asked = async || work().await["error"]["data"]["url"].as_str().map(str::to_owned);
    let url = eventually("the call asks for a sign-in", asked).await.unwrap();
    let path = url.strip_prefix(&format!("http://{address}")).unwrap();
    let open = async |path: &str, cookie: &str| visitor.http.clone().with("cookie", cookie).get(path).await.unwrap();
    let (_, _, ada) = visitor.sign_in(&open(path, "").await, "ada").await;
    let refused = open(path, &ada).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    let (_, _, root) = visitor.sign_in(&open(path, "").await, "root").await;
    let asked = open(path, &root).await;
    let page = String::from_utf8_lossy(&asked.body).into_owned();
    assert!(asked.status == 200 && page.contains("every caller") && page.contains("safe"), "{page}");
    let bound = header(&asked, "set-cookie").split(';').next().unwrap().to_owned();
    let browser = visitor.http.clone().with("cookie", &format!("{root}; {bound}"));
    assert_eq!(browser.send(http::Method::POST, path, bytes::Bytes::new()).await.unwrap().status, 303);
}

/// The keys in use, the one that signs first.
async fn kids(http: &HttpClient) -> Vec<String> {
    let keys = document(&http.get("/auth/jwks").await.unwrap());
    keys["keys"].as_array().unwrap().iter().map(|key| key["kid"].as_str().unwrap().to_owned()).collect()
}

/// As if this file had been written an hour ago.
fn age(path: &Path) {
    let then = std::time::SystemTime::now() - std::time::Duration::from_secs(3_600);
    std::fs::File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_keys_are_rotated_and_tokens_of_the_former_key_are_good_to_their_end() {
    let more = "access_lifetime = 1800\nkey_lifetime = 3000";
    let gateway = gateway(more).await;
    let visitor = Visitor::new(&gateway).await;
    let (before, refresh) = visitor.tokens().await;
    let first = kids(&visitor.http).await;
    assert_eq!(first.len(), 1);
    let folder = gateway.data_dir().join("auth");
    age(&folder.join("server.key"));
    let (after, _) = pair(&visitor.refresh(&refresh).await);
    let both = kids(&visitor.http).await;
    assert_eq!((both.len(), &both[1]), (2, &first[0]), "the former key is still published");
    for token in [&before, &after] {
        assert_eq!(visitor.greet(token).await.status, 200);
    }
    let former = folder.join("server.former.key");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&former).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    // The next process knows both.
    let address = gateway.address();
    let again = GatewayProcess::serve_at(address, gateway.stop().await.unwrap(), &config(more)).await.unwrap();
    again.ready().await.unwrap();
    assert_eq!((kids(&visitor.http).await, visitor.greet(&before).await.status), (both.clone(), 200));
    age(&again.data_dir().join("auth/server.former.key"));
    assert_eq!(kids(&visitor.http).await, both[..1]);
    assert_eq!((visitor.greet(&before).await.status, visitor.greet(&after).await.status), (401, 200));
    assert!(!again.data_dir().join("auth/server.former.key").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_is_removed_takes_all_tokens_along() {
    let gateway = gateway("").await;
    let visitor = Visitor::new(&gateway).await;
    let (access, refresh) = visitor.tokens().await;
    assert_eq!(visitor.greet(&access).await.status, 200);
    let listed = signalbox(&gateway.data_dir(), &["users", "list"]).await.unwrap();
    assert!(listed.contains("user:ada") && !listed.contains("argon2"), "{listed}");
    signalbox(&gateway.data_dir(), &["users", "remove", "ada"]).await.unwrap();
    assert_eq!(visitor.refresh(&refresh).await.status, 400);
    assert_eq!(visitor.greet(&access).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_removed_user_had_ends_at_once_and_does_not_come_back() {
    let gateway = gateway("").await;
    let data_dir = gateway.data_dir();
    let visitor = Visitor::new(&gateway).await;
    let (access, refresh) = visitor.tokens().await;
    let (unused, _) = visitor.tokens().await;
    let key = signalbox(&data_dir, &["keys", "new", "laptop", "--subject", "user:ada"]).await.unwrap();
    let other = signalbox(&data_dir, &["keys", "new", "other", "--subject", "user:adam"]).await.unwrap();
    let (key, other) = (key.trim().to_owned(), other.trim().to_owned());
    let bearer = |token: &str| visitor.http.clone().with("authorization", &format!("Bearer {token}"));
    let session = bearer(&access).initialize("2025-06-18", json!({})).await.unwrap();
    let stream = session.clone().with("accept", "text/event-stream");
    let stream = stream.open(Method::GET, "/mcp", Bytes::new()).await.unwrap();
    assert_eq!(stream.status(), 200);
    assert_eq!((visitor.greet(&key).await.status, visitor.greet(&other).await.status), (200, 200));

    let mut command = Command::new(built("signalbox").unwrap());
    command.args(["users", "remove", "ada", "--data-dir"]).arg(&data_dir).current_dir(&data_dir);
    let said = command.kill_on_drop(true).output().await.unwrap();
    let text = String::from_utf8_lossy(&said.stderr).into_owned();
    let id = key.split('_').nth(1).unwrap();
    assert!(said.status.success() && text.contains(id), "the revoked key is named: {text}");
    let refused = async |visitor: &Visitor, when: &str| {
        for (token, what) in [(&access, "used"), (&unused, "unused"), (&key, "key")] {
            assert_eq!(visitor.greet(token).await.status, 401, "{what} {when}");
        }
        assert_eq!(visitor.refresh(&refresh).await.status, 400, "{when}");
    };
    refused(&visitor, "right after the removal").await;
    tokio::time::timeout(PATIENCE, stream.into_body().collect()).await.expect("the stream ends").unwrap();
    assert_eq!(visitor.greet(&other).await.status, 200, "the key of another user");

    let address = gateway.address();
    let again = GatewayProcess::serve_at(address, gateway.stop().await.unwrap(), &config("")).await.unwrap();
    again.ready().await.unwrap();
    refused(&visitor, "after a restart").await;
    add_user(&again.data_dir(), "ada").await;
    refused(&visitor, "with another account of that name").await;
    let (access, _) = visitor.tokens().await;
    let old = bearer(&access).with("mcp-session-id", session.session_id().unwrap());
    let used = old.post(r#"{"jsonrpc":"2.0","id":5,"method":"tools/list"}"#).await.unwrap();
    assert_eq!(used.status, 404, "the session of before: {used:?}");
}

/// The file is changed while nothing is told of it: by hand, and while the gateway is down.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_gateway_honours_no_unused_token_of_a_user_who_is_gone() {
    let gateway = gateway("").await;
    let visitor = Visitor::new(&gateway).await;
    let (unused, _) = visitor.tokens().await;
    let file = gateway.data_dir().join("auth/users.json");
    let before = std::fs::read(&file).unwrap();
    let replace = |text: &[u8]| {
        let new = file.with_extension("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(&new, &file).unwrap();
    };
    replace(b"{\"users\":{}}");
    assert_eq!(visitor.greet(&unused).await.status, 401);
    replace(&before);
    assert_eq!(visitor.greet(&unused).await.status, 401, "what has ended does not begin again");
    let (access, refresh) = visitor.tokens().await;
    let bearer = |token: &str| visitor.http.clone().with("authorization", &format!("Bearer {token}"));
    let session = bearer(&access).initialize("2025-06-18", json!({})).await.unwrap();
    let address = gateway.address();
    let folder = gateway.stop().await.unwrap();
    replace(b"{\"users\":{}}");
    add_user(&folder.path().join("data"), "ada").await;
    let again = GatewayProcess::serve_at(address, folder, &config("")).await.unwrap();
    again.ready().await.unwrap();
    assert_eq!((visitor.greet(&access).await.status, visitor.refresh(&refresh).await.status), (401, 400));
    let (access, _) = visitor.tokens().await;
    let old = bearer(&access).with("mcp-session-id", session.session_id().unwrap());
    let used = old.post(r#"{"jsonrpc":"2.0","id":5,"method":"tools/list"}"#).await.unwrap();
    assert_eq!(used.status, 404, "the session of before: {used:?}");
}

/// A user who is added again under a name inherits no task.
#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_a_removed_user_are_not_for_the_next_one_of_that_name() {
    let program = json!(built("revision-server").unwrap().to_str().unwrap());
    let args = json!(["--stdio", "--revision", "2025-11-25"]);
    let gateway = gateway(&format!("[backends.two]\ncommand = {program}\nargs = {args}")).await;
    let data_dir = gateway.data_dir();
    let visitor = Visitor::new(&gateway).await;
    let session = async || {
        let (access, _) = visitor.tokens().await;
        let http = visitor.http.clone().with("authorization", &format!("Bearer {access}"));
        http.initialize("2025-11-25", json!({})).await.unwrap()
    };
    let first = session().await;
    let wish = json!({"name": "task", "arguments": {"ms": 10}, "task": {"ttl": 60_000}});
    let made = async || {
        let made = first.request(2, "tools/call", wish.clone()).await.ok()?;
        made["result"]["task"]["taskId"].as_str().map(str::to_owned)
    };
    let task = eventually("the task is made", made).await.unwrap();
    let result = json!({"taskId": task});
    assert!(first.request(3, "tasks/result", result.clone()).await.unwrap()["result"].is_object());
    assert!(first.request(4, "tasks/list", json!({})).await.unwrap().to_string().contains(&task));
    let own = session().await;
    assert!(
        own.request(3, "tasks/result", result.clone()).await.unwrap()["result"].is_object(),
        "another session of hers"
    );

    signalbox(&data_dir, &["users", "remove", "ada"]).await.unwrap();
    add_user(&data_dir, "ada").await;
    let next = session().await;
    let list = next.request(5, "tasks/list", json!({})).await.unwrap();
    assert!(!list.to_string().contains(&task), "{list}");
    let stolen = next.request(6, "tasks/result", result).await.unwrap();
    assert!(stolen["error"].is_object(), "{stolen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_password_ends_the_tokens_that_were_got_with_the_one_before() {
    let gateway = gateway("").await;
    let visitor = Visitor::new(&gateway).await;
    let (access, refresh) = visitor.tokens().await;
    assert_eq!(visitor.greet(&access).await.status, 200);
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(["users", "add", "ada", "--replace", "--data-dir"]).arg(gateway.data_dir());
    let mut child = command.current_dir(gateway.data_dir()).stdin(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{PASSWORD}\n").as_bytes()).await.unwrap();
    assert!(child.wait().await.unwrap().success());
    assert_eq!((visitor.greet(&access).await.status, visitor.refresh(&refresh).await.status), (401, 400));
    let (access, _) = visitor.tokens().await;
    assert_eq!(visitor.greet(&access).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process_runs_the_authorization_server_of_a_data_folder() {
    let gateway = gateway("").await;
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(["serve", "--listen", &free_address().unwrap().to_string(), "-c"]).arg(gateway.config_file());
    command.arg("--data-dir").arg(gateway.data_dir());
    let output = command.kill_on_drop(true).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("another gateway runs the authorization server"), "{said}");
    let key = gateway.data_dir().join("auth/server.key");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(key).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_server_nothing_of_it_is_served() {
    let config = config("").replace("enabled = true", "enabled = false");
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let http = HttpClient::new(gateway.address());
    for path in ["/.well-known/oauth-authorization-server", "/auth/authorize", "/auth/jwks"] {
        assert_eq!(http.get(path).await.unwrap().status, 401, "{path}");
    }
    assert!(!gateway.data_dir().join("auth/server.key").exists());
}
