//! Protected servers behind the gateway: what reaches them as a credential, and how callers are asked to sign in.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail wherever it wants")]

use http::Method;
use serde_json::{Value, json};
use signalbox_testkit::events::EventStream;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::{self, HttpAnswer, HttpClient};
use signalbox_testkit::ports::free_address;
use signalbox_testkit::process::{Spawned, built};
use signalbox_testkit::protected_server::{Demands, ProtectedServer};
use signalbox_testkit::scene::{files_holding, signalbox, tool_names};
use std::path::{Path, PathBuf};
use std::time::Duration;

const SECRET: &str = "made-up-shared-secret";
const OUTBOUND: &str = "[auth.outbound]\nallow = [\"127.0.0.1\"]\n";

fn oauth(server: &ProtectedServer, more: &str) -> String {
    format!("{OUTBOUND}[backends.safe]\nurl = \"{}\"\n[backends.safe.auth]\ntype = \"oauth\"\n{more}", server.url())
}

/// Opens an address as a browser does. The last status.
async fn open(url: &str) -> u16 {
    http_client::browse(url).await.unwrap()
}

/// One step of a browser.
async fn visit(url: &str, method: Method, cookie: &str) -> HttpAnswer {
    http_client::visit(url, method, cookie).await.unwrap()
}

fn call(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "work", "arguments": {}}})
}

/// Waits until the tools of the backend are known.
async fn listed(client: &HttpClient) {
    for _ in 0..200 {
        let answer = client.request(1, "tools/list", json!({})).await.unwrap();
        if answer["result"]["tools"].as_array().is_some_and(|tools| !tools.is_empty()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the backend is not listed");
}

/// Proves SO-16 and NO-16.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_caller_proves_itself_with_never_reaches_a_backend_and_the_shared_secret_does() {
    let server = ProtectedServer::start(Demands::Header("x-sentinel-auth", SECRET), None).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("secret"), format!("{SECRET}\n")).unwrap();
    let config = format!(
        "[backends.safe]\nurl = \"{}\"\n[backends.safe.auth]\nheader = \"X-Sentinel-Auth\"\nsecret_file = \"secret\"\n",
        server.url()
    );
    let gateway = GatewayProcess::serve_in(folder, &config).await.unwrap();
    gateway.ready().await.unwrap();
    let client = HttpClient::new(gateway.address()).with("authorization", "Bearer made-up-inbound");
    let client = client.initialize("2025-11-25", json!({})).await.unwrap();
    listed(&client).await;
    let answer = client.request(2, "tools/call", json!({"name": "work", "arguments": {}})).await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
    for seen in server.seen() {
        assert_eq!(seen.headers.get("x-sentinel-auth").map(String::as_str), Some(SECRET), "{seen:?}");
        assert!(!format!("{seen:?}").contains("made-up-inbound"), "{seen:?}");
    }
    let log = gateway.process.error_lines().join("\n");
    assert!(!log.contains(SECRET) && !log.contains("made-up-inbound"), "{log}");
}

/// A gateway in front of a server that wants a token for calls alone, and a client of it.
async fn scene(lifetime: Option<u64>) -> (ProtectedServer, GatewayProcess) {
    let server = ProtectedServer::start(Demands::TokenForCalls, lifetime).await.unwrap();
    let gateway = GatewayProcess::serve(&oauth(&server, "")).await.unwrap();
    gateway.ready().await.unwrap();
    (server, gateway)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_2025_06_18_gets_an_error_with_the_address_and_its_next_call_runs() {
    let (server, gateway) = scene(None).await;
    let client = HttpClient::new(gateway.address());
    let client = client.initialize("2025-06-18", json!({"elicitation": {}})).await.unwrap();
    listed(&client).await;
    let answer = client.post(&call(2).to_string()).await.unwrap().message().unwrap();
    assert_eq!(answer["error"]["code"], -32000, "{answer}");
    assert_eq!(answer["error"]["data"]["reason"], "sign_in_needed", "{answer}");
    let url = answer["error"]["data"]["url"].as_str().unwrap();
    assert!(answer["error"]["message"].as_str().unwrap().contains(url));
    assert_eq!(open(url).await, 200);
    assert_eq!(open(url).await, 404, "the address is good once");
    let answer = client.post(&call(3).to_string()).await.unwrap().message().unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
    assert_eq!(server.ran(), 1);
}

/// A client of 2025-11-25 that can be asked by URL, its call, and what it is asked.
async fn asked_by_url(gateway: &GatewayProcess) -> (HttpClient, EventStream, Value) {
    let client = HttpClient::new(gateway.address());
    let client = client.initialize("2025-11-25", json!({"elicitation": {"url": {}}})).await.unwrap();
    listed(&client).await;
    let mut stream = EventStream::post(&client, &call(2)).await.unwrap();
    let question = stream.next().await.unwrap().unwrap();
    (client, stream, question)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_2025_11_25_is_asked_in_the_middle_of_its_call_which_then_goes_on() {
    let (server, gateway) = scene(None).await;
    let (client, mut stream, question) = asked_by_url(&gateway).await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    assert_eq!(question["params"]["mode"], "url");
    assert_eq!(server.ran(), 0);
    assert_eq!(open(question["params"]["url"].as_str().unwrap()).await, 200);
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}});
    assert_eq!(client.post(&answer.to_string()).await.unwrap().status, 202);
    let result = loop {
        let message = stream.next().await.unwrap().unwrap();
        if message["id"] == 2 {
            break message;
        }
    };
    assert_eq!(result["result"]["content"][0]["text"], "done", "{result}");
    assert_eq!(server.ran(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_2025_11_25_that_declines_does_not_run_the_tool() {
    let (server, gateway) = scene(None).await;
    let (client, mut stream, question) = asked_by_url(&gateway).await;
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
    client.post(&answer.to_string()).await.unwrap();
    let message = stream.next().await.unwrap().unwrap();
    assert_eq!(message["error"]["data"]["reason"], "refused", "{message}");
    assert_eq!(server.ran(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_2025_11_25_that_takes_no_urls_gets_the_error_of_its_revision() {
    let (server, gateway) = scene(None).await;
    let client = HttpClient::new(gateway.address());
    let client = client.initialize("2025-11-25", json!({})).await.unwrap();
    listed(&client).await;
    let answer = client.post(&call(2).to_string()).await.unwrap().message().unwrap();
    assert_eq!(answer["error"]["code"], -32042, "{answer}");
    let elicitation = &answer["error"]["data"]["elicitations"][0];
    assert_eq!(elicitation["mode"], "url", "{answer}");
    assert!(elicitation["elicitationId"].is_string() && elicitation["message"].is_string(), "{answer}");
    assert_eq!(open(elicitation["url"].as_str().unwrap()).await, 200);
    client.post(&call(3).to_string()).await.unwrap();
    assert_eq!(server.ran(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_2026_07_28_comes_back_with_the_same_call() {
    let (server, gateway) = scene(None).await;
    let old = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap();
    listed(&old).await;
    let client = HttpClient::new(gateway.address());
    let ask = async |id: u64, more: Value| {
        let mut params = json!({"name": "work", "arguments": {}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"url": {}}},
        }});
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        let client = client.clone().with("mcp-protocol-version", "2026-07-28").with("mcp-method", "tools/call");
        let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        client.with("mcp-name", "work").post(&message.to_string()).await.unwrap().message().unwrap()
    };
    let answer = ask(1, json!({})).await;
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    let (key, request) = answer["result"]["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!((&request["method"], &request["params"]["mode"]), (&json!("elicitation/create"), &json!("url")));
    let state = answer["result"]["requestState"].clone();
    let declined = ask(2, json!({"requestState": state, "inputResponses": {key: {"action": "decline"}}})).await;
    assert_eq!(declined["error"]["data"]["reason"], "refused", "{declined}");
    assert_eq!(open(request["params"]["url"].as_str().unwrap()).await, 200);
    let done = ask(3, json!({"requestState": state, "inputResponses": {key: {"action": "accept"}}})).await;
    assert_eq!(done["result"]["content"][0]["text"], "done", "{done}");
    assert_eq!(server.ran(), 1);
    assert!(
        !server.seen().iter().any(|seen| seen.what.contains("signalbox")),
        "the backend sees nothing of the question"
    );
}

/// The gateway's own listener has the pages of all sign-ins if browsers are said to reach it. Otherwise it has none of
/// a caller that proves nothing: behind a proxy every browser would seem to be on this machine.
#[tokio::test(flavor = "multi_thread")]
async fn sign_ins_go_through_the_listener_where_a_public_address_is_configured() {
    let server = ProtectedServer::start(Demands::TokenForCalls, None).await.unwrap();
    let address = free_address().unwrap();
    let public = format!("{OUTBOUND}public_url = \"http://{address}\"\n");
    let config = oauth(&server, "").replace(OUTBOUND, &public);
    let gateway = GatewayProcess::serve_at(address, tempfile::tempdir().unwrap(), &config).await.unwrap();
    gateway.ready().await.unwrap();
    let client = HttpClient::new(address).initialize("2025-06-18", json!({})).await.unwrap();
    listed(&client).await;
    let answer = client.post(&call(2).to_string()).await.unwrap().message().unwrap();
    let url = answer["error"]["data"]["url"].as_str().unwrap();
    assert!(url.starts_with(&format!("http://{address}/auth/connect/")), "{url}");
    assert_eq!(open(url).await, 200);
    client.post(&call(3).to_string()).await.unwrap();
    assert_eq!(server.ran(), 1);
    let forged = client.get("/auth/callback?code=x&state=y").await.unwrap();
    assert_eq!(forged.status, 400, "an answer that belongs to no sign-in");
    let (_server, unnamed) = scene(None).await;
    let client = HttpClient::new(unnamed.address()).initialize("2025-06-18", json!({})).await.unwrap();
    listed(&client).await;
    let answer = client.post(&call(2).to_string()).await.unwrap().message().unwrap();
    let url: http::Uri = answer["error"]["data"]["url"].as_str().unwrap().parse().unwrap();
    assert_ne!(url.authority().unwrap().as_str(), unnamed.address().to_string());
    assert_eq!(client.get(url.path()).await.unwrap().status, 404);
}

/// Tokens that live two seconds, and calls over six.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_refreshed_ahead_of_its_end_and_a_revoked_one_is_replaced() {
    let (server, gateway) = scene(Some(2)).await;
    let client = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap();
    listed(&client).await;
    let answer = client.post(&call(2).to_string()).await.unwrap().message().unwrap();
    assert_eq!(open(answer["error"]["data"]["url"].as_str().unwrap()).await, 200);
    for id in 0..12 {
        let answer = client.post(&call(100 + id).to_string()).await.unwrap().message().unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    assert!((2..=5).contains(&server.refreshes()), "{} refreshes", server.refreshes());
    server.revoke_all();
    let answer = client.post(&call(200).to_string()).await.unwrap().message().unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
    assert_eq!(server.ran(), 13);
    no_secrets(&server, &gateway);
}

/// Nothing that the gateway leaves behind holds a token.
fn no_secrets(server: &ProtectedServer, gateway: &GatewayProcess) {
    let log = gateway.process.error_lines().join("\n");
    assert_eq!(
        files_holding(&gateway.data_dir(), "").unwrap().iter().filter(|file| file.ends_with("tokens.sealed")).count(),
        1
    );
    for secret in server.tokens().iter().map(String::as_str).chain(["made-up-refresh", "made-up-code"]) {
        assert!(!log.contains(secret), "the log holds `{secret}`");
        assert_eq!(files_holding(&gateway.data_dir(), secret).unwrap(), Vec::<PathBuf>::new(), "hold `{secret}`");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn login_signs_in_on_a_terminal_and_logout_forgets() {
    let server = ProtectedServer::start(Demands::Token, None).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (file, data) = (folder.path().join("signalbox.toml"), folder.path().join("data"));
    std::fs::write(&file, oauth(&server, "")).unwrap();
    let run = |words: &[&str]| {
        let mut command = tokio::process::Command::new(built("signalbox").unwrap());
        command.args(words).arg("-c").arg(&file).arg("--data-dir").arg(&data);
        command
    };
    let mut login = Spawned::start(run(&["login", "safe"])).unwrap();
    let line = login.wait_line("  http://127.0.0.1:", Duration::from_secs(20)).await.unwrap();
    assert_eq!(open(&format!("http://127.0.0.1:{}", line.trim_start_matches("  http://127.0.0.1:"))).await, 200);
    assert!(login.wait(Duration::from_secs(20)).await.unwrap().success());
    let listed = run(&["tools", "list"]).output().await.unwrap();
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(text.contains("work"), "{text}{}", String::from_utf8_lossy(&listed.stderr));
    assert!(run(&["logout", "safe"]).output().await.unwrap().status.success());
    let again = run(&["logout", "safe"]).output().await.unwrap();
    assert!(String::from_utf8_lossy(&again.stderr).contains("there is no token"), "{again:?}");
    let unknown = run(&["login", "other"]).output().await.unwrap();
    assert!(!unknown.status.success() && String::from_utf8_lossy(&unknown.stderr).contains("no backend `other`"));
}

/// What is not public is not asked unless it is allowed by name.
#[tokio::test(flavor = "multi_thread")]
async fn metadata_at_loopback_are_not_asked_for_unless_that_is_allowed() {
    let server = ProtectedServer::start(Demands::Token, None).await.unwrap();
    let config = oauth(&server, "").replace("allow = [\"127.0.0.1\"]", "allow = []");
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    for _ in 0..100 {
        if gateway.process.error_lines().iter().any(|line| line.contains("only https is used")) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let log = gateway.process.error_lines().join("\n");
    assert!(log.contains("`127.0.0.1` would be spoken to without TLS; only https is used"), "{log}");
    assert!(server.seen().iter().all(|seen| !seen.what.contains("well-known")), "{:?}", server.seen());
}

/// Keys of `user:ada` and `user:eve`.
async fn two_keys(folder: &Path) -> [String; 2] {
    std::fs::create_dir(folder.join("data")).unwrap();
    let new = async |user: &str| {
        let args = ["keys", "new", user, "--subject", &format!("user:{user}")];
        signalbox(&folder.join("data"), &args).await.unwrap().trim().to_owned()
    };
    [new("ada").await, new("eve").await]
}

/// A gateway whose callers are those two, and a client of each.
async fn two_users(folder: tempfile::TempDir, keys: &[String; 2], backends: &str) -> (GatewayProcess, [HttpClient; 2]) {
    let config = format!("[mcp.protocol.security]\nrequire_authentication = true\n{backends}");
    let gateway = GatewayProcess::serve_in(folder, &config).await.unwrap();
    let client = |key: &String| HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {key}"));
    let clients = [client(&keys[0]), client(&keys[1])];
    (gateway, clients)
}

/// The tools that a client of 2026-07-28 is shown.
async fn modern_tools(client: &HttpClient) -> Vec<String> {
    let answer = client.modern(1, "tools/list", json!({})).await.unwrap().message().unwrap();
    assert_eq!(answer["result"]["cacheScope"], "private", "{answer}");
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// One server that lists each caller something else.
#[tokio::test(flavor = "multi_thread")]
async fn callers_with_credentials_of_their_own_see_and_call_their_own_tools_alone() {
    let server = ProtectedServer::start(Demands::AnyTokenOwnTools, None).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut backends = format!("[backends.safe]\nurl = \"{}\"\n", server.url());
    for user in ["ada", "eve"] {
        std::fs::write(folder.path().join(user), format!("made-up-{user}")).unwrap();
        backends += &format!("[backends.safe.auth.users.\"user:{user}\"]\nsecret_file = \"{user}\"\n");
    }
    let keys = two_keys(folder.path()).await;
    let (gateway, clients) = two_users(folder, &keys, &backends).await;
    gateway.ready().await.unwrap();
    for (client, own, other) in [(&clients[0], "of_ada", "of_eve"), (&clients[1], "of_eve", "of_ada")] {
        let session = client.initialize("2025-11-25", json!({})).await.unwrap();
        assert_eq!(tool_names(&session).await.unwrap(), ["common", own]);
        assert_eq!(modern_tools(client).await, ["common", own]);
        for tool in ["common", own, &format!("safe__{own}")] {
            let answer = session.request(2, "tools/call", json!({"name": tool, "arguments": {}})).await.unwrap();
            assert_eq!(answer["result"]["content"][0]["text"], "done", "{tool}: {answer}");
        }
        for tool in [other, &format!("safe__{other}"), "of_nobody"] {
            let answer = session.request(3, "tools/call", json!({"name": tool, "arguments": {}})).await.unwrap();
            assert_eq!(answer["error"]["message"], format!("Unknown tool: {tool}"), "{answer}");
            let answer = client.modern(4, "tools/call", json!({"name": tool, "arguments": {}})).await.unwrap();
            assert_eq!(answer.message().unwrap()["error"]["message"], format!("Unknown tool: {tool}"));
        }
    }
    for seen in server.seen() {
        let tool = seen.message["params"]["name"].as_str().unwrap_or_default();
        let whose = &seen.headers["authorization"];
        assert!(!tool.starts_with("of_") || whose.ends_with(&tool[3..]), "{tool} was called with {whose}");
    }
    let folder = gateway.terminate().await.unwrap();
    let saved = std::fs::read_to_string(folder.path().join("data/catalog.json")).unwrap();
    for name in ["of_ada", "of_eve", "common", "user:"] {
        assert!(!saved.contains(name), "{name} is saved: {saved}");
    }
    let (_gateway, clients) = two_users(folder, &keys, &backends).await;
    let session = clients[1].initialize("2025-06-18", json!({})).await.unwrap();
    assert_eq!(tool_names(&session).await.unwrap(), ["common", "of_eve"]);
}

/// Whoever lacks a credential is told where to get it, whatever it asks; whoever has one goes on.
#[tokio::test(flavor = "multi_thread")]
async fn lists_completion_and_subscriptions_of_who_has_to_sign_in_end_with_the_address() {
    let server = ProtectedServer::start(Demands::TokenOwnTools, None).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let keys = two_keys(folder.path()).await;
    let (_gateway, [ada, eve]) = two_users(folder, &keys, &oauth(&server, "per_user = true\n")).await;
    let session = ada.initialize("2025-06-18", json!({})).await.unwrap();
    let prompt = json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}});
    let asked = [
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("completion/complete", prompt),
        ("resources/subscribe", json!({"uri": "note://one"})),
        ("resources/read", json!({"uri": "note://one"})),
        ("prompts/get", json!({"name": "safe__p"})),
        ("tools/call", json!({"name": "of_0", "arguments": {}})),
    ];
    let mut url = String::new();
    for (id, (method, params)) in asked.into_iter().enumerate() {
        let answer = session.request(id as u64 + 1, method, params).await.unwrap();
        assert_eq!(answer["error"]["data"]["reason"], "sign_in_needed", "{method}: {answer}");
        url = answer["error"]["data"]["url"].as_str().unwrap().to_owned();
    }
    let modern = ada.modern(1, "tools/list", json!({})).await.unwrap().message().unwrap();
    assert_eq!(modern["error"]["data"]["url"], url, "{modern}");
    let newer = eve.initialize("2025-11-25", json!({"sampling": {}})).await.unwrap();
    let answer = newer.request(1, "tools/list", json!({})).await.unwrap();
    assert_eq!(answer["error"]["code"], -32042, "{answer}");
    let hers = answer["error"]["data"]["elicitations"][0]["url"].as_str().unwrap().to_owned();
    assert_ne!(hers, url, "each signs in for itself");
    assert_eq!(open(&url).await, 200);
    assert_eq!(tool_names(&session).await.unwrap(), ["common", "of_0"]);
    let answer = session.request(20, "tools/call", json!({"name": "of_0", "arguments": {}})).await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
    let answer = newer.request(2, "tools/call", json!({"name": "of_0", "arguments": {}})).await.unwrap();
    assert_eq!(answer["error"]["code"], -32042, "{answer}");
    assert_eq!(open(&hers).await, 200);
    assert_eq!(tool_names(&newer).await.unwrap(), ["common", "of_1"]);
    assert_eq!(tool_names(&session).await.unwrap(), ["common", "of_0"]);
    assert_eq!(server.ran(), 1);
}

/// Follows the address of the gateway to the authorization server and returns the address that the browser
/// is sent back to.
async fn granted(url: &str) -> String {
    visit(url, Method::GET, "").await.headers.get("location").unwrap().to_str().unwrap().to_owned()
}

fn cookie_of(answer: &HttpAnswer) -> String {
    answer.headers.get("set-cookie").unwrap().to_str().unwrap().split(';').next().unwrap().to_owned()
}

/// A caller got this address. Another browser than the one that opened it cannot complete the sign-in, and the
/// page names the caller.
async fn stays_in_its_browser(url: &str, caller: &str) {
    let asked = visit(url, Method::GET, "").await;
    let page = String::from_utf8_lossy(&asked.body).into_owned();
    assert!(asked.status == 200 && page.contains(caller) && page.contains("safe"), "{page}");
    let cookie = cookie_of(&asked);
    assert_eq!(visit(url, Method::POST, "").await.status, 404, "nobody goes on without having seen the page");
    let sent = visit(url, Method::POST, &cookie).await;
    assert_eq!(sent.status, 303, "{sent:?}");
    assert_eq!(visit(url, Method::POST, &cookie).await.status, 404, "an address is good once");
    assert_eq!(visit(url, Method::GET, "").await.status, 404);
    let back = granted(sent.headers.get("location").unwrap().to_str().unwrap()).await;
    for foreign in ["", "signalbox-connect-00000000=x"] {
        assert_eq!(visit(&back, Method::GET, foreign).await.status, 403, "{foreign}");
    }
    assert_eq!(visit(&back, Method::GET, &cookie).await.status, 200);
    assert_ne!(visit(&back, Method::GET, &cookie).await.status, 200, "a state is good once");
}

/// At the listener on loopback.
#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_on_loopback_stays_in_the_browser_in_which_it_was_begun() {
    let (_server, gateway) = scene(None).await;
    let client = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap();
    listed(&client).await;
    let answer = client.post(&call(2).to_string()).await.unwrap().message().unwrap();
    stays_in_its_browser(answer["error"]["data"]["url"].as_str().unwrap(), "every caller").await;
    let answer = client.post(&call(3).to_string()).await.unwrap().message().unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
}

/// No browser can prove to be such a caller.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_asked_before_an_account_is_lent_to_the_holder_of_an_api_key() {
    let server = ProtectedServer::start(Demands::TokenForCalls, None).await.unwrap();
    let address = free_address().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let key = signalbox(&data, &["keys", "new", "ci"]).await.unwrap().trim().to_owned();
    let config = format!(
        "[mcp.protocol.security]\nrequire_authentication = true\n[auth.outbound]\nallow = ['127.0.0.1']\n\
         public_url = 'http://{address}'\n[backends.safe]\nurl = '{}'\n[backends.safe.auth]\ntype = 'oauth'\nper_user = true\n",
        server.url()
    );
    let gateway = GatewayProcess::serve_at(address, folder, &config).await.unwrap();
    let client = HttpClient::new(gateway.address()).with("x-api-key", &key);
    let client = client.initialize("2025-06-18", json!({})).await.unwrap();
    let mut url = None;
    for id in 2..200 {
        let answer = client.request(id, "tools/call", json!({"name": "safe__work", "arguments": {}})).await.unwrap();
        url = answer["error"]["data"]["url"].as_str().map(str::to_owned);
        if url.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    stays_in_its_browser(&url.unwrap(), "key:ci").await;
    let answer = client.request(500, "tools/call", json!({"name": "safe__work", "arguments": {}})).await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
}
