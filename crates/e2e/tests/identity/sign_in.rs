//! A sign-in in the middle of a call, in the order of a person: the call comes first, then the client agrees, and the
//! browser is opened some time later.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use http::Method;
use serde_json::{Value, json};
use signalbox_testkit::clients;
use signalbox_testkit::events::EventStream;
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::{HttpAnswer, HttpClient, browse, visit};
use signalbox_testkit::protected_server::{Demands, ProtectedServer};
use signalbox_testkit::scene::{child, eventually, tool_names};
use std::time::Duration;
use tokio::task::JoinHandle;

const SHARED: &str = "";
const PER_USER: &str = "per_user = true\n";

/// A gateway before a server that wants a token for calls, or for everything.
async fn scene(demands: Demands, more: &str) -> (ProtectedServer, GatewayProcess) {
    let server = ProtectedServer::start(demands, None).await.unwrap();
    let config = format!(
        "[auth.outbound]\nallow = [\"127.0.0.1\"]\n{}[backends.safe]\nurl = \"{}\"\n[backends.safe.auth]\ntype = \"oauth\"\n{more}",
        child("one", ServedEra::Both, "").unwrap(),
        server.url()
    );
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    gateway.ready().await.unwrap();
    (server, gateway)
}

/// Opens an address like a person who takes this long.
fn opened_later(url: &Value, late: Duration) -> JoinHandle<u16> {
    let url = url.as_str().unwrap().to_owned();
    tokio::spawn(async move {
        tokio::time::sleep(late).await;
        browse(&url).await.unwrap()
    })
}

fn call(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "safe__work", "arguments": {}}})
}

/// A client of 2025-11-25 agrees once, and the call goes on when the person is done.
async fn old_client_waits(demands: Demands, more: &str, late: Duration) {
    let about = format!("2025-11-25 {demands:?} {more} {late:?}");
    let (server, gateway) = scene(demands, more).await;
    let client = HttpClient::new(gateway.address());
    let client = client.initialize("2025-11-25", json!({"elicitation": {"url": {}}})).await.unwrap();
    tool_names(&client).await.unwrap();
    let mut stream = EventStream::post(&client, &call(2)).await.unwrap();
    let question = stream.next().await.unwrap().unwrap();
    assert_eq!(question["method"], "elicitation/create", "{about}: {question}");
    let person = opened_later(&question["params"]["url"], late);
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}});
    assert_eq!(client.post(&answer.to_string()).await.unwrap().status, 202);
    // A second question would have this id too.
    let result = stream.until(|message| message["id"] == 2).await.unwrap();
    assert_eq!(result["result"]["content"][0]["text"], "done", "{about}: {result}");
    assert_eq!((person.await.unwrap(), server.ran()), (200, 1), "{about}");
}

/// A client of 2026-07-28 comes back once.
async fn new_client_waits(demands: Demands, more: &str, late: Duration) {
    let about = format!("2026-07-28 {demands:?} {more} {late:?}");
    let (server, gateway) = scene(demands, more).await;
    let client = HttpClient::new(gateway.address()).with("mcp-protocol-version", "2026-07-28");
    let client = client.with("mcp-method", "tools/call").with("mcp-name", "safe__work");
    let ask = async |id: u64, more: Value| {
        let mut message = call(id);
        message["params"]["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"url": {}}},
        });
        for (name, value) in more.as_object().unwrap() {
            message["params"][name] = value.clone();
        }
        client.post(&message.to_string()).await.unwrap().message().unwrap()
    };
    let answer = ask(1, json!({})).await;
    assert_eq!(answer["result"]["resultType"], "input_required", "{about}: {answer}");
    let (key, request) = answer["result"]["inputRequests"].as_object().unwrap().iter().next().unwrap();
    let person = opened_later(&request["params"]["url"], late);
    let state = answer["result"]["requestState"].clone();
    let done = ask(2, json!({"requestState": state, "inputResponses": {key: {"action": "accept"}}})).await;
    assert_eq!(done["result"]["content"][0]["text"], "done", "{about}: {done}");
    assert_eq!((person.await.unwrap(), server.ran()), (200, 1), "{about}");
}

/// A client of 2025-06-18 gets the address in an error. Its next call comes while the person is about to open it.
async fn oldest_client_calls_again(demands: Demands, more: &str, late: Duration) {
    let about = format!("2025-06-18 {demands:?} {more} {late:?}");
    let (server, gateway) = scene(demands, more).await;
    let client = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap();
    tool_names(&client).await.unwrap();
    let refused = client.post(&call(2).to_string()).await.unwrap().message().unwrap();
    assert_eq!(refused["error"]["data"]["reason"], "sign_in_needed", "{about}: {refused}");
    let person = opened_later(&refused["error"]["data"]["url"], late);
    assert_eq!(person.await.unwrap(), 200, "{about}");
    let done = client.post(&call(3).to_string()).await.unwrap().message().unwrap();
    assert_eq!(done["result"]["content"][0]["text"], "done", "{about}: {done}");
    assert_eq!(server.ran(), 1, "{about}");
}

async fn every_client_waits(demands: Demands, late: Duration) {
    for more in [SHARED, PER_USER] {
        tokio::join!(
            old_client_waits(demands.clone(), more, late),
            new_client_waits(demands.clone(), more, late),
            oldest_client_calls_again(demands.clone(), more, late),
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_for_a_person_who_opens_the_address_after_the_client_has_agreed() {
    for late in [Duration::from_millis(100), Duration::from_secs(2)] {
        every_client_waits(Demands::TokenForCalls, late).await;
    }
}

/// The server is down for want of a token.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_for_a_sign_in_at_a_server_that_shows_nothing_before() {
    for late in [Duration::from_millis(100), Duration::from_secs(2)] {
        every_client_waits(Demands::Token, late).await;
    }
}

/// The person takes half a minute.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_for_half_a_minute() {
    let late = Duration::from_secs(30);
    tokio::join!(
        old_client_waits(Demands::TokenForCalls, PER_USER, late),
        old_client_waits(Demands::Token, SHARED, late),
        new_client_waits(Demands::Token, SHARED, late),
        new_client_waits(Demands::Token, PER_USER, late),
    );
}

/// Opens an address, says no at the authorization server, and comes back from there.
async fn refuse(url: &str) -> u16 {
    let asked = visit(url, Method::GET, "").await.unwrap();
    let cookie = asked.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let sent = visit(url, Method::POST, &cookie).await.unwrap();
    let at = sent.headers["location"].to_str().unwrap().to_owned();
    let parameter = |name: &str| {
        let (_, rest) = at.split_once(&format!("{name}=")).unwrap();
        rest.split('&').next().unwrap().replace("%3A", ":").replace("%2F", "/")
    };
    let back = format!("{}?error=access_denied&state={}", parameter("redirect_uri"), parameter("state"));
    visit(&back, Method::GET, &cookie).await.unwrap().status
}

/// The address of a sign-in that failed is used up, so that another one is given.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_asked_with_another_address_after_a_sign_in_that_failed() {
    let (server, gateway) = scene(Demands::Token, SHARED).await;
    let client = HttpClient::new(gateway.address());
    let client = client.initialize("2025-11-25", json!({"elicitation": {"url": {}}})).await.unwrap();
    tool_names(&client).await.unwrap();
    let mut stream = EventStream::post(&client, &call(9)).await.unwrap();
    let is_question = |message: &Value| message["method"] == "elicitation/create";
    let first = stream.until(is_question).await.unwrap();
    assert_eq!(refuse(first["params"]["url"].as_str().unwrap()).await, 400);
    let accept = |question: &Value| json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}});
    client.post(&accept(&first).to_string()).await.unwrap();
    let second = stream.until(is_question).await.unwrap();
    assert_ne!(second["params"]["url"], first["params"]["url"], "{second}");
    let person = opened_later(&second["params"]["url"], Duration::from_millis(100));
    client.post(&accept(&second).to_string()).await.unwrap();
    let done = stream.until(|message| message["id"] == 9).await.unwrap();
    assert_eq!(done["result"]["content"][0]["text"], "done", "{done}");
    assert_eq!((person.await.unwrap(), server.ran()), (200, 1));
}

/// The address that lists name before the sign-in.
async fn address_in_list(gateway: &GatewayProcess) -> String {
    let address = eventually("the address in a list", async || {
        let client = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap();
        let lists = client.request(2, "tools/list", json!({})).await.unwrap();
        lists["result"]["_meta"]["io.signalbox/sign_in"][0]["url"].as_str().map(str::to_owned)
    });
    address.await.unwrap()
}

/// Real clients agree by themselves, and a person opens the address some seconds later.
#[tokio::test(flavor = "multi_thread")]
async fn calls_of_real_clients_wait_for_the_person() {
    for client in ["ts-sdk1", "ts-client2", "py-mcp1", "py-mcp2"] {
        let (server, gateway) = scene(Demands::Token, SHARED).await;
        let person = opened_later(&json!(address_in_list(&gateway).await), Duration::from_secs(6));
        let url = gateway.url();
        let args = [client, "--caps", "elicitation", "--steps", "call", "--call", "safe__work={}", "--url", &url];
        let Some(said) = clients::run(&args).await.unwrap() else { continue };
        let text = &said["steps"]["call"][0]["result"]["content"][0]["text"];
        assert_eq!((&said["ok"], text), (&json!(true), &json!("done")), "{client}: {said}");
        assert_eq!((person.await.unwrap(), server.ran()), (200, 1), "{client}");
    }
}

/// Returns the data of each warning among the messages of an answer.
fn warnings(answer: &HttpAnswer) -> Vec<String> {
    let warns =
        |message: &Value| message["method"] == "notifications/message" && message["params"]["level"] == "warning";
    let messages = answer.messages().unwrap().into_iter().filter(warns);
    messages.map(|message| message["params"]["data"].as_str().unwrap().to_owned()).collect()
}

/// Lists without the server name it and the address, and so do `instructions` and a log message.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_is_shown_before_the_sign_in_names_the_backend_and_the_address() {
    let (_server, gateway) = scene(Demands::Token, SHARED).await;
    let address = address_in_list(&gateway).await;
    let modern =
        HttpClient::new(gateway.address()).modern(1, "tools/list", json!({})).await.unwrap().message().unwrap();
    let named = json!([{"backend": "safe", "url": address}]);
    assert_eq!(modern["result"]["_meta"]["io.signalbox/sign_in"], named, "{modern}");
    assert_eq!(modern["result"]["cacheScope"], "private", "{modern}");
    let discovered = HttpClient::new(gateway.address()).modern(2, "server/discover", json!({})).await.unwrap();
    let said = discovered.message().unwrap()["result"]["instructions"].as_str().unwrap_or_default().to_owned();
    assert!(said.contains("safe") && said.contains(&address), "{said}");
    let listed = json!({"_meta": {"io.modelcontextprotocol/logLevel": "warning"}});
    let modern = HttpClient::new(gateway.address()).modern(3, "tools/list", listed).await.unwrap();
    let old = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap();
    let list = r#"{"jsonrpc":"2.0","id":4,"method":"tools/list"}"#;
    for answer in [modern, old.post(list).await.unwrap()] {
        let told = warnings(&answer);
        assert!(told.len() == 1 && told[0].contains("safe") && told[0].contains(&address), "{told:?}");
    }
    let again = warnings(&old.post(list).await.unwrap());
    assert!(again.is_empty(), "one warning is enough: {again:?}");
    assert_eq!(browse(&address).await.unwrap(), 200);
    let client = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap();
    let after = eventually("a list with the server", async || {
        let lists = client.request(2, "tools/list", json!({})).await.unwrap();
        lists["result"].get("_meta").is_none().then_some(lists)
    });
    let after = after.await.unwrap().to_string();
    assert!(after.contains("\"work\""), "{after}");
}
