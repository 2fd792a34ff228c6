//! Who may see and use what, at a real gateway.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::pipe_client::PipeClient;
use signalbox_testkit::process::built;
use signalbox_testkit::scene::{call, child, eventually, signalbox, text};
use std::sync::Arc;
use tokio::process::Command;

const VERSION: &str = "2025-06-18";

/// A gateway whose callers have to prove who they are, with these permissions.
fn config(permissions: &str) -> String {
    format!(
        "[mcp.protocol.security]\nrequire_authentication = true\n{permissions}\n{}",
        child("one", ServedEra::Old, "").unwrap()
    )
}

const ROLES: &str = "[roles.reader]\npermissions = ['tools.read']\n[roles.user]\nallow = ['one/greet', 'one/count']\n\
                     [roles.writer]\n[auth.users.'key:ada']\nroles = ['writer']\n[auth.users.'key:bob']\nroles = ['user']\n\
                     [auth.users.'key:carl']\nroles = ['reader']\n";

/// A key of somebody.
async fn key(gateway: &GatewayProcess, name: &str) -> String {
    signalbox(&gateway.data_dir(), &["keys", "new", name]).await.unwrap().trim().to_owned()
}

async fn session(gateway: &GatewayProcess, name: &str) -> HttpClient {
    let key = key(gateway, name).await;
    let client = HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {key}"));
    let begin = async || client.clone().initialize(VERSION, json!({})).await.ok();
    eventually("the key is known", begin).await.unwrap()
}

/// Has the gateway read its configuration again; false if it refuses.
async fn reload(gateway: &GatewayProcess) -> bool {
    let mut command = Command::new(built("signalbox").unwrap());
    let status = command.arg("reload").arg("--data-dir").arg(gateway.data_dir()).status().await;
    status.unwrap().success()
}

async fn ask(client: &HttpClient, method: &str, params: Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    client.post(&request).await.unwrap().message().unwrap()
}

async fn greet(client: &HttpClient) -> Value {
    client.post(&call(1, "greet", &json!({"name": "Ada"})).to_string()).await.unwrap().message().unwrap()
}

async fn tools(client: &HttpClient) -> Vec<String> {
    let listed = ask(client, "tools/list", json!({})).await;
    let names = listed["result"]["tools"].as_array().unwrap().iter();
    names.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Lists and calls agree for each role; who may not see a tool is told that there is none.
/// Proves NO-2.
#[tokio::test(flavor = "multi_thread")]
async fn each_role_sees_and_uses_its_own_tools() {
    let gateway = GatewayProcess::serve(&config(ROLES)).await.unwrap();
    gateway.ready().await.unwrap();
    let (ada, bob) = (session(&gateway, "ada").await, session(&gateway, "bob").await);
    let (carl, eve) = (session(&gateway, "carl").await, session(&gateway, "eve").await);
    let all = tools(&ada).await;
    assert!(all.len() > 2 && text(&greet(&ada).await).is_some());
    let mut few = tools(&bob).await;
    few.sort();
    assert_eq!(few, ["count", "greet"]);
    assert!(text(&greet(&bob).await).is_some());
    let other = all.iter().find(|name| !few.contains(name)).unwrap();
    let hidden = ask(&bob, "tools/call", json!({"name": other, "arguments": {}})).await;
    let nothing = ask(&bob, "tools/call", json!({"name": "nothing", "arguments": {}})).await;
    assert_eq!(hidden["error"]["code"], nothing["error"]["code"]);
    assert_eq!(hidden["error"]["data"], nothing["error"]["data"]);
    assert_eq!(hidden["error"]["message"], format!("Unknown tool: {other}"));
    assert_eq!(tools(&carl).await, all);
    let denied = greet(&carl).await;
    assert_eq!((&denied["error"]["code"], &denied["error"]["data"]["policy"]), (&json!(-32003), &json!("role:reader")));
    assert!(tools(&eve).await.is_empty() && greet(&eve).await["error"]["data"]["reason"] == "unknown_tool");
}

/// Roles of users and groups that the file withdraws are gone at once, in sessions that are open too, and what else the
/// file changes is taken over with them.
/// Proves NO-2.
#[tokio::test(flavor = "multi_thread")]
async fn roles_of_users_follow_the_file_while_the_gateway_runs() {
    let gateway = GatewayProcess::serve(&config(ROLES)).await.unwrap();
    gateway.ready().await.unwrap();
    let (ada, bob) = (session(&gateway, "ada").await, session(&gateway, "bob").await);
    assert!(text(&greet(&ada).await).is_some() && text(&greet(&bob).await).is_some());
    let data = gateway.data_dir();
    let other = signalbox(&data, &["keys", "new", "other", "--subject", "key:bob"]).await.unwrap().trim().to_owned();
    let header = format!("Bearer {other}");
    let open = async || PipeClient::websocket(gateway.address(), &[("authorization", &header)]).await.ok();
    let mut socket = eventually("the key is known", open).await.unwrap();
    socket.initialize(VERSION, json!({})).await.unwrap();
    let greeting = json!({"name": "greet", "arguments": {"name": "Ada"}});
    assert!(text(&socket.request(2, "tools/call", greeting.clone()).await.unwrap()).is_some());
    let fewer = ROLES.replace("[auth.users.'key:bob']\nroles = ['user']", "[auth.users.'key:bob']\nroles = ['reader']");
    let more = format!("{fewer}[kill_switch]\ntools = ['one/count']\n");
    std::fs::write(gateway.config_file(), config(&more)).unwrap();
    let told = signalbox(&gateway.data_dir(), &["reload"]).await.unwrap();
    assert!(told.contains("auth.users"), "{told}");
    let denied = greet(&bob).await;
    assert_eq!(denied["error"]["data"]["policy"], "role:reader", "{denied}");
    let on_socket = socket.request(3, "tools/call", greeting).await;
    assert!(
        on_socket.as_ref().map_or(true, |answer| text(answer).is_none()),
        "a connection outlived its roles: {on_socket:?}"
    );
    assert!(!tools(&ada).await.contains(&"count".to_owned()));
    assert!(text(&greet(&ada).await).is_some());
    std::fs::write(gateway.config_file(), config(ROLES)).unwrap();
    signalbox(&gateway.data_dir(), &["reload"]).await.unwrap();
    assert!(text(&greet(&bob).await).is_some());
    // What is not taken over is said by the command that explains decisions, and holds nothing else back.
    std::fs::write(gateway.config_file(), config(&format!("{more}[auth.scopes]\n'a' = ['one/greet']\n"))).unwrap();
    let file = gateway.config_file().to_str().unwrap().to_owned();
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(["policy", "explain", "one/greet", "--as", "key:bob", "-c", &file, "--data-dir"]);
    assert!(!reload(&gateway).await);
    let told = command.arg(gateway.data_dir()).output().await.unwrap();
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.contains("runs an older configuration") && told.contains("auth.scopes"), "{told}");
    assert_eq!(greet(&bob).await["error"]["data"]["policy"], "role:reader");
    assert!(!tools(&ada).await.contains(&"count".to_owned()));
}

/// An answer that a rule kept is cleaned like the one of the backend.
/// Proves G-13 and G-16.
#[tokio::test(flavor = "multi_thread")]
async fn a_cached_answer_is_cleaned_like_the_first_one() {
    let more = "[constraints.'one/greet']\nredact = ['Ada']\n[[rules]]\nid = 'keep'\nwhen = { tool = 'greet' }\n\
                then = { cache = { ttl = '1h' } }\n";
    let gateway = GatewayProcess::serve(&config(more)).await.unwrap();
    gateway.ready().await.unwrap();
    let ada = session(&gateway, "ada").await;
    for round in 0..3 {
        let answer = text(&greet(&ada).await).unwrap();
        assert!(!answer.contains("Ada"), "round {round}: {answer}");
    }
}

/// Log messages of a call are cleaned like its answer.
/// Proves G-16.
#[tokio::test(flavor = "multi_thread")]
async fn log_messages_of_a_call_are_cleaned_like_its_answer() {
    let more = "[constraints.'one/emit_log']\nredact = ['SEKRIT[A-Z]*']\n";
    let gateway = GatewayProcess::serve(&config(more)).await.unwrap();
    gateway.ready().await.unwrap();
    let ada = session(&gateway, "ada").await;
    ada.post(r#"{"jsonrpc":"2.0","id":5,"method":"logging/setLevel","params":{"level":"debug"}}"#).await.unwrap();
    let call = json!({"jsonrpc": "2.0", "id": 6, "method": "tools/call",
        "params": {"name": "emit_log", "arguments": {"level": "error", "message": "it is SEKRITWORD"}}});
    let answer = ada.post(&call.to_string()).await.unwrap();
    let told = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(told.contains("notifications/message") && told.contains("it is ["), "{told}");
    assert!(!told.contains("SEKRITWORD"), "{told}");
}

/// `signalbox tools --url` asks as the holder of the key, whatever roles the configuration beside it has.
/// Proves NO-2.
#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_asks_another_gateway_as_the_holder_of_its_key() {
    let text = config(&ROLES.replace("key:bob", "key:dora"));
    let gateway = GatewayProcess::serve(&text).await.unwrap();
    gateway.ready().await.unwrap();
    let (key, url) = (key(&gateway, "dora").await, format!("http://{}/mcp", gateway.address()));
    let file = gateway.config_file().to_str().unwrap().to_owned();
    let listed = async || {
        let list = ["tools", "list", "--json", "--url", &url, "--key", &key, "-c", &file];
        let told = signalbox(&gateway.data_dir(), &list).await.ok()?;
        told.contains("greet").then_some(told)
    };
    eventually("the tools are listed", listed).await.unwrap();
}

/// `[permissions] reveal`: what is not listed is answered with the reason instead of "unknown".
/// Proves NO-2.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_hidden_can_be_told() {
    let text = config(&format!("[permissions]\nreveal = true\n{ROLES}"));
    let gateway = GatewayProcess::serve(&text).await.unwrap();
    gateway.ready().await.unwrap();
    let eve = session(&gateway, "eve").await;
    assert!(tools(&eve).await.is_empty());
    let denied = greet(&eve).await;
    assert_eq!((&denied["error"]["code"], &denied["error"]["data"]["reason"]), (&json!(-32003), &json!("denied")));
}

/// From the command line and from the file, at once, and hidden from lists; a restart keeps it.
/// Proves NO-9 and NO-11.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_and_a_caller_are_switched_off_at_once() {
    let gateway = GatewayProcess::serve(&config("")).await.unwrap();
    gateway.ready().await.unwrap();
    let (ada, eve) = (session(&gateway, "ada").await, session(&gateway, "eve").await);
    assert!(text(&greet(&ada).await).is_some());
    let data = gateway.data_dir();
    signalbox(&data, &["switch", "kill", "one/greet", "--reason", "it is rude"]).await.unwrap();
    let killed = greet(&ada).await;
    assert_eq!((&killed["error"]["code"], &killed["error"]["data"]["reason"]), (&json!(-32005), &json!("killed")));
    assert_eq!(killed["error"]["message"], "`greet` is switched off: it is rude");
    assert!(!tools(&ada).await.contains(&"greet".to_owned()));
    signalbox(&data, &["switch", "quarantine", "--principal", "key:eve"]).await.unwrap();
    let aside = ask(&eve, "tools/list", json!({})).await;
    assert_eq!(aside["error"]["data"]["reason"], "quarantined", "{aside}");
    let listed: Value = serde_json::from_str(&signalbox(&data, &["switch", "list", "--json"]).await.unwrap()).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 2);
    signalbox(&data, &["switch", "lift", "one/greet"]).await.unwrap();
    assert!(text(&greet(&ada).await).is_some() && tools(&ada).await.contains(&"greet".to_owned()));
    std::fs::write(gateway.config_file(), config("[kill_switch]\nbackends = ['one']\n")).unwrap();
    signalbox(&data, &["reload"]).await.unwrap();
    assert_eq!(greet(&ada).await["error"]["code"], -32005);
    assert!(tools(&ada).await.is_empty());
}

/// Policies in Cedar judge the arguments, name themselves, and are taken over while the gateway runs.
/// Proves G-13.
#[tokio::test(flavor = "multi_thread")]
async fn policies_judge_arguments_and_are_reloaded_whole() {
    let gateway = GatewayProcess::serve(&config("")).await.unwrap();
    gateway.ready().await.unwrap();
    let ada = session(&gateway, "ada").await;
    let folder = gateway.config_file().parent().unwrap().join("policies");
    std::fs::create_dir(&folder).unwrap();
    let policy = "@id(\"all\") permit(principal, action, resource);\n@id(\"no eve\") @reason(\"Eve is not greeted\")\n\
                  forbid(principal, action == Action::\"call\", resource == Tool::\"one/greet\") when { context.arguments.name == \"Eve\" };";
    std::fs::write(folder.join("a.cedar"), policy).unwrap();
    std::fs::write(gateway.config_file(), config("[permissions]\npolicies = 'policies'\n")).unwrap();
    signalbox(&gateway.data_dir(), &["reload"]).await.unwrap();
    let named = async |name: Value| {
        let arguments = json!({"name": name});
        ada.post(&call(1, "greet", &arguments).to_string()).await.unwrap().message().unwrap()
    };
    assert!(text(&named(json!("Ada")).await).is_some() && tools(&ada).await.contains(&"greet".to_owned()));
    let denied = named(json!("Eve")).await;
    assert_eq!(denied["error"]["data"]["policy"], "no eve", "{denied}");
    assert_eq!(denied["error"]["message"], "Eve is not greeted");
    let erring = named(Value::Null).await;
    assert_eq!((&erring["error"]["code"], &erring["error"]["data"]["policy"]), (&json!(-32003), &json!("no eve")));
    // A folder that cannot be used changes nothing.
    std::fs::write(folder.join("b.cedar"), "permit(principal").unwrap();
    assert!(!reload(&gateway).await);
    assert_eq!(named(json!("Eve")).await["error"]["data"]["policy"], "no eve");
    std::fs::write(folder.join("b.cedar"), "forbid(principal, action, resource in Backend::\"one\");").unwrap();
    signalbox(&gateway.data_dir(), &["reload"]).await.unwrap();
    assert!(tools(&ada).await.is_empty() && named(json!("Ada")).await["error"]["data"]["reason"] == "unknown_tool");
}

/// Ask a human: by the command line, released, refused and expired; the caller itself may not decide.
#[tokio::test(flavor = "multi_thread")]
async fn somebody_is_asked_and_decides() {
    let roles = "[permissions]\nask_timeout = '2m'\n[roles.user]\nask = ['one/greet']\n[auth.users.'key:ada']\nroles = ['user', 'approver']\n\
                 [auth.users.'key:bob']\nroles = ['approver']\n";
    let gateway = GatewayProcess::serve(&config(roles)).await.unwrap();
    gateway.ready().await.unwrap();
    let data = gateway.data_dir();
    let ada = session(&gateway, "ada").await;
    let held = async || {
        let list = signalbox(&data, &["hold", "list", "--json"]).await.unwrap();
        let list: Value = serde_json::from_str(&list).unwrap();
        list["holds"].as_array().filter(|all| !all.is_empty()).map(|all| all[0]["id"].to_string())
    };
    let calling = tokio::spawn({
        let ada = ada.clone();
        async move { greet(&ada).await }
    });
    let id = eventually("the call is held", held).await.unwrap();
    signalbox(&data, &["hold", "release", &id]).await.unwrap();
    assert!(text(&calling.await.unwrap()).is_some());
    let calling = tokio::spawn({
        let ada = ada.clone();
        async move { greet(&ada).await }
    });
    let id = eventually("the call is held", held).await.unwrap();
    signalbox(&data, &["hold", "refuse", &id, "--reason", "not today"]).await.unwrap();
    let refused = calling.await.unwrap();
    assert_eq!((&refused["error"]["code"], &refused["error"]["data"]["reason"]), (&json!(-32003), &json!("denied")));
    assert_eq!(refused["error"]["message"], "consent was refused: not today");
    let calling = tokio::spawn({
        let ada = ada.clone();
        async move { greet(&ada).await }
    });
    let id = eventually("the call is held", held).await.unwrap();
    let release = async |name: &str| {
        let (another, subject) = (format!("{name} at the web"), format!("key:{name}"));
        let key = signalbox(&data, &["keys", "new", &another, "--subject", &subject]).await.unwrap().trim().to_owned();
        let client = HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {key}"));
        let path = format!("/api/v1/holds/{id}/release");
        let answered = async || {
            let answer = client.send(Method::POST, &path, Bytes::from_static(b"{}")).await.ok()?;
            // The key may not be known yet.
            (answer.status != 401).then(|| (answer.status, String::from_utf8_lossy(&answer.body).into_owned()))
        };
        eventually("the key is known", answered).await.unwrap()
    };
    let (status, told) = release("eve").await;
    assert_eq!(status, 403, "{told}");
    let (status, told) = release("ada").await;
    assert!(status == 403 && told.contains("callers cannot decide about their own calls"), "{told}");
    assert_eq!(release("bob").await.0, 200);
    assert!(text(&calling.await.unwrap()).is_some());
}

/// Shadow mode decides and records, and stops nothing.
#[tokio::test(flavor = "multi_thread")]
async fn shadow_mode_stops_nothing_and_records_what_it_would_have_stopped() {
    let text_of = config(&format!("[permissions]\nmode = 'shadow'\n{ROLES}"));
    let gateway = GatewayProcess::serve(&text_of).await.unwrap();
    gateway.ready().await.unwrap();
    let eve = session(&gateway, "eve").await;
    assert!(!tools(&eve).await.is_empty() && text(&greet(&eve).await).is_some());
    let recorded = async || {
        let shown =
            signalbox(&gateway.data_dir(), &["tape", "export", "last", "-o", "-", "--format", "jsonl"]).await.ok()?;
        shown.contains("would_deny").then_some(())
    };
    eventually("the decision is on the tape", recorded).await.unwrap();
}

/// Recorded calls get the same verdicts again, and a policy that changes in one number moves exactly the calls that
/// arithmetic says; `policy explain` names what decides. `MCP_TEST_BACKTEST_CALLS` makes it longer.
#[tokio::test(flavor = "multi_thread")]
async fn policies_are_tried_on_the_past() {
    let calls: u64 = std::env::var("MCP_TEST_BACKTEST_CALLS").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let gateway = GatewayProcess::serve(&config("")).await.unwrap();
    gateway.ready().await.unwrap();
    let folder = gateway.config_file().parent().unwrap().join("policies");
    std::fs::create_dir(&folder).unwrap();
    let write = |most: u64| {
        let policy = format!(
            "@id(\"all\") permit(principal, action, resource);\n@id(\"limit\") forbid(principal, action == Action::\"call\", resource)\n\
             when {{ context.arguments has size && context.arguments.size > {most} }};"
        );
        std::fs::write(folder.join("a.cedar"), policy).unwrap();
    };
    write(9);
    std::fs::write(gateway.config_file(), config("[permissions]\npolicies = 'policies'\n")).unwrap();
    signalbox(&gateway.data_dir(), &["reload"]).await.unwrap();
    let ada = session(&gateway, "ada").await;
    for number in 0..calls {
        let arguments = json!({"name": "Ada", "size": number % 20});
        ada.post(&call(number, "greet", &arguments).to_string()).await.unwrap();
    }
    let file = gateway.config_file().to_str().unwrap().to_owned();
    let tried = async |least: u64| {
        let look = async || {
            let told =
                signalbox(&gateway.data_dir(), &["policy", "backtest", "last", "--json", "-c", &file]).await.ok()?;
            let told: Value = serde_json::from_str(&told).ok()?;
            // The last entries may not be written yet.
            (told["calls"].as_u64()? >= least).then_some(told)
        };
        eventually("all calls are on the tape", look).await.unwrap()
    };
    let same = tried(calls).await;
    assert_eq!((&same["calls"], &same["changed"], &same["unknown"]), (&json!(calls), &json!(0), &json!(0)), "{same}");
    let of = |size: u64| (0..calls).filter(|number| number % 20 == size).count() as u64;
    write(12);
    let wider = tried(calls).await;
    assert_eq!(wider["changed"], of(10) + of(11) + of(12), "{wider}");
    write(7);
    let narrower = tried(calls).await;
    assert_eq!(narrower["changed"], of(8) + of(9), "{narrower}");
    for size in 0..20 {
        let arguments = json!({"size": size}).to_string();
        let arguments =
            ["policy", "explain", "one/greet", "--as", "key:ada", "--arguments", &arguments, "--json", "-c", &file];
        let told: Value = serde_json::from_str(&signalbox(&gateway.data_dir(), &arguments).await.unwrap()).unwrap();
        let expected = if size > 7 { ("deny", "limit") } else { ("allow", "all") };
        assert_eq!((told["verdict"].as_str().unwrap(), told["policy"].as_str().unwrap()), expected);
    }
}

/// An external decision point is asked with caller, tool and arguments; its answer counts for a while; silence denies.
#[tokio::test(flavor = "multi_thread")]
async fn an_external_decision_point_decides() {
    let asked = Arc::new(std::sync::Mutex::new(Vec::<Value>::new()));
    let heard = Arc::clone(&asked);
    let point = answering(move |body: Value| {
        let decision = body["context"]["arguments"]["name"] != "Eve";
        heard.lock().unwrap().push(body);
        json!({"decision": decision, "context": {"reason": "Eve is not greeted here"}})
    })
    .await;
    let rules =
        |url: &str| config(&format!("[permissions.decision_point]\nurl = '{url}'\ncache = '1h'\ntimeout = '5s'\n"));
    let gateway = GatewayProcess::serve(&rules(&format!("http://{point}/access/v1/evaluation"))).await.unwrap();
    gateway.ready().await.unwrap();
    let ada = session(&gateway, "ada").await;
    let named = async |name: &str| {
        ada.post(&call(1, "greet", &json!({"name": name})).to_string()).await.unwrap().message().unwrap()
    };
    assert!(text(&named("Ada").await).is_some() && text(&named("Ada").await).is_some());
    let denied = named("Eve").await;
    assert_eq!(
        (&denied["error"]["code"], &denied["error"]["message"]),
        (&json!(-32003), &json!("Eve is not greeted here"))
    );
    let bodies = asked.lock().unwrap().clone();
    assert_eq!(bodies.len(), 2, "the second call of Ada was known");
    assert_eq!((&bodies[0]["subject"]["id"], &bodies[0]["resource"]["id"]), (&json!("key:ada"), &json!("one/greet")));
    assert_eq!(bodies[0]["action"]["name"], "call");
    // Nobody is there: the discard port of this machine.
    std::fs::write(gateway.config_file(), rules("http://127.0.0.1:9/nobody")).unwrap();
    signalbox(&gateway.data_dir(), &["reload"]).await.unwrap();
    let down = named("Ada").await;
    assert_eq!(down["error"]["data"]["reason"], "denied", "{down}");
}

/// A web server that answers every POST of JSON with what `answer` makes of it.
async fn answering(answer: impl Fn(Value) -> Value + Send + Sync + 'static) -> std::net::SocketAddr {
    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = Arc::clone(&answer);
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                let (mut length, mut line) = (0, String::new());
                while stream.read_line(&mut line).await.is_ok_and(|read| read > 2) {
                    if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                stream.read_exact(&mut body).await.unwrap();
                let said = answer(serde_json::from_slice(&body).unwrap()).to_string();
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
                let reply = format!("{head}\r\ncontent-length: {}\r\n\r\n{said}", said.len());
                stream.write_all(reply.as_bytes()).await.unwrap();
            });
        }
    });
    address
}

/// A caller that is switched off, or lacks a required scope, has no power at the API either, whatever its roles are.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_may_call_nothing_may_not_administer_either() {
    let users =
        ["adm", "app", "aud", "low"].map(|name| format!("[auth.users.'key:{name}']\nroles = ['{}']\n", role_of(name)));
    let text = format!(
        "[mcp.protocol.security]\nrequire_authentication = true\n[mcp.protocol.audit]\nenabled = true\n\
         [relay]\nenabled = true\n[auth]\nrequired_scopes = ['mcp']\n{}{}",
        users.concat(),
        child("one", ServedEra::Old, "").unwrap()
    );
    let gateway = GatewayProcess::serve(&text).await.unwrap();
    gateway.ready().await.unwrap();
    let data_dir = gateway.data_dir();
    let key = async |name: &str, scope: &str| {
        let key = signalbox(&data_dir, &["keys", "new", name, "--scope", scope]).await.unwrap();
        HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {}", key.trim()))
    };
    let clients =
        [key("adm", "mcp").await, key("app", "mcp").await, key("aud", "mcp").await, key("low", "other").await];
    let routes = [
        (0, Method::GET, "/api/v1/sessions", ""),
        (0, Method::GET, "/api/v1/status", ""),
        (0, Method::GET, "/api/v1/switches", ""),
        (0, Method::POST, "/api/v1/reload", "{}"),
        (1, Method::GET, "/api/v1/holds", ""),
        (1, Method::POST, "/api/v1/holds/1/release", "{}"),
        (2, Method::GET, "/api/v1/audit?limit=1", ""),
        (2, Method::GET, "/api/v1/audit/status", ""),
        (0, Method::GET, "/api/metadata?code=AAAAAAAA", ""),
        (0, Method::GET, "/api/stream?code=AAAAAAAA&role=client", ""),
        (3, Method::GET, "/api/metadata?code=AAAAAAAA", ""),
        (3, Method::GET, "/api/stream?code=AAAAAAAA&role=client", ""),
        (3, Method::GET, "/api/v1/sessions", ""),
        (3, Method::POST, "/api/v1/reload", "{}"),
    ];
    let status = async |client: usize, method: &Method, path: &str, body: &str| {
        let client = clients[client].clone().with("content-type", "application/json");
        client.send(method.clone(), path, body.to_owned().into()).await.unwrap().status
    };
    eventually("the keys are known", async || {
        (status(0, &Method::GET, "/api/v1/sessions", "").await == 200).then_some(())
    })
    .await
    .unwrap();
    for (client, method, path, body) in &routes {
        let is_refused = status(*client, method, path, body).await == 403;
        assert_eq!(is_refused, *client == 3, "before: {client} {method} {path}");
    }
    for name in ["adm", "app", "aud"] {
        signalbox(&data_dir, &["switch", "kill", "--principal", &format!("key:{name}")]).await.unwrap();
    }
    for (client, method, path, body) in &routes {
        assert_eq!(status(*client, method, path, body).await, 403, "{client} {method} {path}");
    }
}

fn role_of(name: &str) -> &'static str {
    match name {
        "app" => "approver",
        "aud" => "auditor",
        _ => "admin",
    }
}
