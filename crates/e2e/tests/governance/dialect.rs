//! The governed dialect at a real gateway: the example messages of the dialect over WebSocket, HTTP and
//! TCP, beside plain MCP.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::pipe_client::PipeClient;
use signalbox_testkit::scene::{call, eventually, signalbox};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, UNIX_EPOCH};

const VERSION: &str = "2025-06-18";
/// 2024-01-01T12:00:00Z
const MODIFIED: Duration = Duration::from_secs(1_704_110_400);

/// The folder of the specified example.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    let file = folder.path().join("src/main.rs");
    fs::write(&file, vec![b'x'; 1024]).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(UNIX_EPOCH + MODIFIED).unwrap();
    folder
}

fn config(folder: &tempfile::TempDir, more: &str) -> String {
    format!("[gateway]\ndemo_root = {}\n{more}\n", json!(folder.path().to_str().unwrap()))
}

const REQUIRED: &str = "[mcp.protocol.security]\nrequire_authentication = true\n";

/// A client of any of the transports.
enum Client {
    Pipe(Box<PipeClient>),
    Http(HttpClient),
}

impl Client {
    async fn ask(&mut self, message: &Value) -> Value {
        match self {
            Self::Pipe(client) => {
                client.say(&message.to_string()).await.unwrap();
                client.next().await.unwrap()
            }
            Self::Http(client) => {
                let answer = client.post(&message.to_string()).await.unwrap();
                assert_eq!(answer.status, 200, "{answer:?}");
                answer.message().unwrap()
            }
        }
    }

    async fn websocket(gateway: &GatewayProcess, protocol: &str, key: Option<&str>) -> Self {
        let bearer = key.map(|key| format!("Bearer {key}"));
        let mut headers = vec![("sec-websocket-protocol", protocol)];
        headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
        Self::Pipe(Box::new(PipeClient::websocket(gateway.address(), &headers).await.unwrap()))
    }

    fn http(gateway: &GatewayProcess, key: Option<&str>) -> Self {
        let client = HttpClient::new(gateway.address());
        Self::Http(match key {
            Some(key) => client.with("authorization", &format!("Bearer {key}")),
            None => client,
        })
    }

    async fn tcp(gateway: &GatewayProcess) -> Self {
        Self::Pipe(Box::new(PipeClient::tcp(gateway.address()).await.unwrap()))
    }
}

/// The specified tool discovery.
fn discovery() -> Value {
    json!({"jsonrpc": "2.0", "id": "1", "method": "tools/list", "params": {"category": "filesystem", "trust_level": "verified"}})
}

/// The specified tool invocation, of this caller.
fn invocation(context: &Value) -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": "2",
        "method": "tools/invoke",
        "params": {
            "tool_id": "directory_list",
            "tool_version": "1.0.0",
            "parameters": {"path": "./src", "recursive": true, "max_depth": 3},
            "security_context": context,
        },
    })
}

/// The specified tool registration.
fn registration() -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": "3",
        "method": "tools/register",
        "params": {
            "tool_metadata": {
                "name": "directory_list",
                "version": "1.0.0",
                "description": "Secure directory listing tool",
                "author": "Groundhog Team",
                "categories": ["filesystem", "utility"],
            },
            "security_profile": {
                "permissions": ["read:filesystem"],
                "sandbox_level": "container",
                "resource_limits": {"max_execution_time": 30, "max_memory": 268_435_456},
            },
            "schema": {"input": {}, "output": {}},
        },
    })
}

/// The members of an object, in alphabetical order.
fn members(object: &Value) -> Vec<&str> {
    let mut members: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    members
}

/// The error of an answer, which has every member of the specified error, taken out of what cannot be known before.
fn error(answer: &Value) -> Value {
    let mut error = answer["error"].clone();
    assert_eq!(members(&error), ["code", "data", "message"], "{answer}");
    let data = &mut error["data"];
    let wanted = ["details", "error_code", "error_message", "error_type", "security_context", "timestamp"];
    assert_eq!(members(data), wanted, "{answer}");
    let time = data["timestamp"].take();
    assert!(time.as_str().unwrap().ends_with('Z') && time.as_str().unwrap().len() == 20, "{time}");
    let audit = data["security_context"]["audit_id"].take();
    assert!(audit.as_str().unwrap().starts_with("audit-"), "{answer}");
    error
}

/// What is refused, by its family and its word.
fn refused(answer: &Value) -> (String, String) {
    let error = error(answer);
    let word = |name: &str| error["data"][name].as_str().unwrap().to_owned();
    (word("error_type"), word("error_code"))
}

fn pair(one: &str, other: &str) -> (String, String) {
    (one.to_owned(), other.to_owned())
}

/// Lists as a client of the dialect does; returns the session that the answer names.
async fn discovers(client: &mut Client) -> Option<String> {
    let answer = client.ask(&discovery()).await;
    assert_eq!(answer["id"], "1");
    assert!(answer["result"]["tools"].is_array(), "{answer}");
    let tools = answer["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 1, "{answer}");
    let tool = &tools[0];
    assert_eq!((&tool["tool_id"], &tool["name"]), (&json!("directory_list"), &json!("directory_list")));
    assert_eq!((&tool["version"], &tool["trust_level"]), (&json!("1.0.0"), &json!("verified")));
    assert_eq!(tool["categories"], json!(["filesystem", "utility", "navigation"]));
    assert_eq!(tool["permissions"], json!(["read:filesystem"]));
    assert_eq!(tool["schema"]["input"]["required"], json!(["path"]));
    assert!(tool["description"].is_string() && tool["schema"]["output"]["type"] == "object", "{tool}");
    answer["result"]["session_id"].as_str().map(str::to_owned)
}

/// Invokes as a client of the dialect does, and gets the specified answer.
async fn invokes(client: &mut Client, context: &Value) {
    let answer = client.ask(&invocation(context)).await;
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!("2")));
    let result = &answer["result"];
    assert!(result.is_object(), "{answer}");
    assert_eq!(members(result), ["data", "execution_id", "security_context", "status", "tool_id"]);
    assert_eq!((&result["tool_id"], &result["status"]), (&json!("directory_list"), &json!("success")));
    assert!(result["execution_id"].as_str().unwrap().starts_with("exec-"));
    let data = &result["data"];
    assert_eq!(data["path"], "./src");
    assert_eq!(data["entries"].as_array().unwrap().len(), 1);
    let expected = json!({
        "name": "main.rs",
        "path": "./src/main.rs",
        "type": "file",
        "size": 1024,
        "permissions": "rw-r--r--",
        "modified": "2024-01-01T12:00:00Z",
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(data["entries"][0][name], *value, "{name}");
    }
    let metadata = &data["metadata"];
    assert_eq!((&metadata["total_entries"], &metadata["truncated"]), (&json!(1), &json!(false)));
    assert!(metadata["execution_time"].is_f64(), "{metadata}");
    let context = &result["security_context"];
    assert_eq!(members(context), ["access_granted", "audit_id", "permissions_used"]);
    assert_eq!((&context["access_granted"], &context["permissions_used"]), (&json!(true), &json!(["read:filesystem"])));
    assert!(context["audit_id"].as_str().unwrap().starts_with("audit-"));
}

/// Asks for what is outside, and gets the specified error.
async fn is_kept_inside(client: &mut Client) {
    let mut message = invocation(&json!({}));
    message["params"]["parameters"] = json!({"path": "/etc/passwd"});
    let answer = client.ask(&message).await;
    assert_eq!(answer["id"], "2");
    let expected = json!({
        "code": -32601,
        "message": "Tool execution failed",
        "data": {
            "error_type": "security_error",
            "error_code": "path_not_allowed",
            "error_message": "Access to the specified path is not permitted",
            "details": {
                "requested_path": "/etc/passwd",
                "reason": "Path not in allowed list",
                "suggestion": "Request access to an allowed directory",
            },
            "security_context": {"violation_type": "unauthorized_access", "audit_id": null},
            "timestamp": null,
        },
    });
    assert_eq!(error(&answer), expected);
}

/// What else is refused, each in the specified shape.
async fn is_refused_the_rest(client: &mut Client) {
    let answer = client.ask(&registration()).await;
    assert_eq!((&answer["id"], &answer["error"]["message"]), (&json!("3"), &json!("Tool registration failed")));
    assert_eq!(refused(&answer), pair("system_error", "not_served"));
    let mut unfinished = registration();
    unfinished["params"]["tool_metadata"].as_object_mut().unwrap().remove("author");
    let answer = client.ask(&unfinished).await;
    assert_eq!(refused(&answer), pair("protocol_error", "missing_fields"));
    assert_eq!(answer["error"]["data"]["details"]["fields"], json!(["tool_metadata.author"]));
    let mut other = invocation(&json!({}));
    other["params"]["tool_version"] = json!("2.0.0");
    let answer = client.ask(&other).await;
    assert_eq!(refused(&answer), pair("validation_error", "wrong_tool_version"));
    let told = answer["error"]["data"]["error_message"].as_str().unwrap();
    assert!(told.contains("`1.0.0`") && told.contains("`2.0.0`"), "{told}");
    let mut unknown = invocation(&json!({}));
    unknown["params"]["tool_id"] = json!("no_such_tool");
    assert_eq!(refused(&client.ask(&unknown).await), pair("tool_error", "tool_not_found"));
}

/// Everything that a client says of itself and that is not so.
async fn cannot_lie(client: &mut Client, user: &str) {
    for context in [
        json!({"user_id": "somebody-else"}),
        json!({"user_id": user, "session_id": "session-of-somebody-else"}),
        json!({"user_id": 7}),
        json!({"permissions": "read:filesystem"}),
        json!("system"),
    ] {
        let answer = client.ask(&invocation(&context)).await;
        assert_eq!(refused(&answer), pair("security_error", "invalid_security_context"), "{context}");
        assert_eq!(answer["error"]["data"]["security_context"]["violation_type"], "invalid_security_context");
    }
}

/// All of it, by a client that is this user.
async fn speaks(client: &mut Client, user: &str) {
    let session = discovers(client).await;
    assert_eq!(session.is_some(), matches!(client, Client::Pipe(_)));
    invokes(client, &json!({"user_id": user, "session_id": session, "permissions": ["read:filesystem"]})).await;
    is_kept_inside(client).await;
    is_refused_the_rest(client).await;
    cannot_lie(client, user).await;
}

/// With the subprotocol and without, and beside plain MCP on the same endpoint.
/// Proves G-1, G-2, G-3, G-4, G-5, G-6, G-7, G-8, G-9, G-10, G-44 and G-45.
#[tokio::test(flavor = "multi_thread")]
async fn the_specified_messages_over_websocket_and_http_get_the_specified_answers() {
    let folder = folder();
    let gateway = GatewayProcess::serve(&config(&folder, "")).await.unwrap();
    gateway.ready().await.unwrap();
    let mut governed = Client::websocket(&gateway, "signalbox.governed", None).await;
    let mut plain = Client::websocket(&gateway, "mcp", None).await;
    let mut web = Client::http(&gateway, None);
    for client in [&mut governed, &mut plain, &mut web] {
        speaks(client, "anonymous").await;
    }
    // What speaks the dialect goes on with it, and knows nothing else.
    let all = json!({"jsonrpc": "2.0", "id": "9", "method": "tools/list", "params": {}});
    for client in [&mut governed, &mut plain] {
        let answer = client.ask(&all).await;
        let ids: Vec<&str> =
            answer["result"]["tools"].as_array().unwrap().iter().filter_map(|tool| tool["tool_id"].as_str()).collect();
        assert_eq!(ids, ["countdown", "directory_list", "echo"]);
        let hello = json!({"jsonrpc": "2.0", "id": "8", "method": "initialize", "params": {}});
        assert_eq!(refused(&client.ask(&hello).await), pair("protocol_error", "invalid_method"));
    }
    // The subprotocol alone makes a list a list of the dialect.
    let mut fresh = Client::websocket(&gateway, "signalbox.governed", None).await;
    assert!(fresh.ask(&all).await["result"]["tools"][0]["tool_id"].is_string());
    beside_plain_clients(&gateway).await;
    is_recorded(&gateway).await;
}

/// Plain MCP is what it was: an initialized client asks in MCP, whatever the method is called.
async fn beside_plain_clients(gateway: &GatewayProcess) {
    let mut pipe = PipeClient::websocket(gateway.address(), &[]).await.unwrap();
    pipe.initialize(VERSION, json!({})).await.unwrap();
    let listed = pipe.request(1, "tools/list", json!({"category": "filesystem"})).await.unwrap();
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 3);
    assert!(listed["result"]["tools"][0]["inputSchema"].is_object(), "{listed}");
    let strange = pipe.request(2, "tools/invoke", json!({"tool_id": "echo"})).await.unwrap();
    assert!(strange["error"]["code"].is_i64() && strange["error"]["data"]["error_type"].is_null(), "{strange}");
    let modern = pipe.modern(3, "tools/list", json!({"category": "filesystem"})).await.unwrap();
    assert_eq!(modern["result"]["resultType"], "complete", "{modern}");
    let web = HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap();
    let answer = web.post(&call(1, "echo", &json!({"text": "hi"})).to_string()).await.unwrap().message().unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "hi", "{answer}");
    let answer = web.post(&discovery().to_string()).await.unwrap().message().unwrap();
    assert!(answer["result"]["tools"][0]["inputSchema"].is_object(), "{answer}");
}

/// The tape has what the client really sent and got, and the call under the name of its tool.
async fn is_recorded(gateway: &GatewayProcess) {
    let data_dir = gateway.data_dir();
    let written = async || {
        let lines = signalbox(&data_dir, &["tape", "export", "last", "--format", "jsonl", "-o", "-"]).await.ok()?;
        let words = ["tools/invoke", "tool_version", "execution_id", "access_granted", "path_not_allowed"];
        words.iter().all(|word| lines.contains(word)).then_some(())
    };
    eventually("the dialect's messages are on the tape", written).await.unwrap();
}

/// With authentication the caller is whom it proved to be, and has the permissions of its key.
/// Proves G-5, G-22 and G-46.
#[tokio::test(flavor = "multi_thread")]
async fn with_authentication_the_context_is_held_against_the_caller() {
    let folder = folder();
    let gateway = GatewayProcess::serve(&config(&folder, REQUIRED)).await.unwrap();
    gateway.ready().await.unwrap();
    let new = ["keys", "new", "example", "--subject", "user123", "--scope", "read:filesystem"];
    let key = signalbox(&gateway.data_dir(), &new).await.unwrap().trim().to_owned();
    let known = async || {
        let client = HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {key}"));
        client.post(&discovery().to_string()).await.ok().filter(|answer| answer.status == 200)
    };
    eventually("the key is known", known).await.unwrap();
    let mut governed = Client::websocket(&gateway, "signalbox.governed", Some(&key)).await;
    let mut web = Client::http(&gateway, Some(&key));
    for client in [&mut governed, &mut web] {
        speaks(client, "user123").await;
        let grabbing = json!({"permissions": ["read:filesystem", "admin:everything"]});
        let answer = client.ask(&invocation(&grabbing)).await;
        assert_eq!(refused(&answer), pair("security_error", "invalid_security_context"));
        assert_eq!(answer["error"]["data"]["details"]["permission"], "admin:everything");
    }
    // Whoever proves nothing is not even heard.
    let nobody = HttpClient::new(gateway.address()).post(&invocation(&json!({})).to_string()).await.unwrap();
    assert_eq!(nobody.status, 401);
    assert!(nobody.headers.contains_key("www-authenticate"));
    let mut claiming = Client::websocket(&gateway, "signalbox.governed", None).await;
    let answer = claiming.ask(&invocation(&json!({"user_id": "user123"}))).await;
    assert_eq!(answer["error"]["data"]["reason"], "unauthenticated", "{answer}");
}

/// The same over TCP, with the proof in the first message.
/// Proves G-1 and G-32.
#[tokio::test(flavor = "multi_thread")]
async fn the_specified_messages_over_tcp_get_the_specified_answers() {
    let folder = folder();
    let tcp = "[mcp.protocol.transport]\ntype = \"tcp\"\n";
    let gateway = GatewayProcess::serve_tcp(&config(&folder, tcp)).await.unwrap();
    speaks(&mut Client::tcp(&gateway).await, "anonymous").await;
    let mut plain = PipeClient::tcp(gateway.address()).await.unwrap();
    plain.initialize(VERSION, json!({})).await.unwrap();
    assert!(plain.request(1, "tools/list", json!({})).await.unwrap()["result"]["tools"][0]["inputSchema"].is_object());

    let gateway = GatewayProcess::serve_tcp(&config(&folder, &format!("{tcp}{REQUIRED}"))).await.unwrap();
    let new = ["keys", "new", "example", "--subject", "user123"];
    let key = signalbox(&gateway.data_dir(), &new).await.unwrap().trim().to_owned();
    let proof = json!({"jsonrpc": "2.0", "id": "0", "method": "signalbox/authenticate", "params": {"scheme": "bearer", "credential": key}});
    let admitted = async || {
        let mut client = Client::tcp(&gateway).await;
        client.ask(&proof).await["result"].is_object().then_some(client)
    };
    let mut client = eventually("the key is known", admitted).await.unwrap();
    speaks(&mut client, "user123").await;
}

/// What a limit refuses is an error of the dialect that says when to come back.
/// Proves G-22, G-36 and G-44.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_refuses_in_the_dialects_shape() {
    let folder = folder();
    let limits = "[mcp.protocol.rate_limits]\ntool_requests_per_minute = 1\n";
    let gateway = GatewayProcess::serve(&config(&folder, limits)).await.unwrap();
    gateway.ready().await.unwrap();
    let mut client = Client::websocket(&gateway, "signalbox.governed", None).await;
    invokes(&mut client, &json!({})).await;
    let answer = client.ask(&invocation(&json!({}))).await;
    assert_eq!(refused(&answer), pair("security_error", "rate_limit_exceeded"));
    let data = &answer["error"]["data"];
    assert_eq!(data["security_context"]["violation_type"], "rate_limit_exceeded");
    assert_eq!(data["details"]["limit"], "tool");
    assert!((1..=60).contains(&data["details"]["retryAfter"].as_u64().unwrap()), "{answer}");
    // A plain client of the same tool is refused by the same limit.
    let web = HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap();
    let plain = call(1, "directory_list", &json!({"path": "."}));
    let answer = web.post(&plain.to_string()).await.unwrap().message().unwrap();
    assert_eq!(answer["error"]["data"]["reason"], "rate_limited", "{answer}");
}

/// How much an error tells depends on how far its caller is trusted.
/// Proves G-23 and G-24.
#[tokio::test(flavor = "multi_thread")]
async fn errors_tell_as_much_as_the_caller_is_trusted() {
    let folder = folder();
    let users = format!("{REQUIRED}[auth.users.low]\ntrust = \"untrusted\"\n[auth.users.high]\ntrust = \"system\"\n");
    let gateway = GatewayProcess::serve(&config(&folder, &users)).await.unwrap();
    gateway.ready().await.unwrap();
    let mut told = Vec::new();
    for user in ["low", "high"] {
        let key = signalbox(&gateway.data_dir(), &["keys", "new", user, "--subject", user]).await.unwrap();
        let client = HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {}", key.trim()));
        let begin = async || client.clone().initialize(VERSION, json!({})).await.ok();
        let session = eventually("the key is known", begin).await.unwrap();
        let unknown = call(1, "no_such_tool", &json!({}));
        let error = session.post(&unknown.to_string()).await.unwrap().message().unwrap()["error"].take();
        assert_eq!(error["data"]["reason"], "unknown_tool", "{error}");
        told.push(error["message"].as_str().unwrap().to_owned());
        let mut unknown = invocation(&json!({}));
        unknown["params"]["tool_id"] = json!("no_such_tool");
        let answer = client.post(&unknown.to_string()).await.unwrap().message().unwrap();
        told.push(answer["error"]["data"]["error_message"].as_str().unwrap().to_owned());
    }
    let full = "Unknown tool: no_such_tool";
    assert_eq!(told, ["The tool failed", "The tool failed", full, full]);
}

const GOVERNED: &str = "[constraints.\"demo/*\"]\npath_arguments = [\"path\"]\nfolders = [\"src\"]\nredact = [\"0000-[0-9]+\"]\n\
    [tools.\"demo/echo\"]\npermissions = [\"spend:money\"]\n";

/// A call is validated without being made: `{granted, constraints, audit_context}`, or the permission that is lacking.
/// Proves G-13, G-14 and G-22.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_learns_whether_a_call_is_granted_and_under_which_constraints() {
    let folder = folder();
    let gateway = GatewayProcess::serve(&config(&folder, &format!("{REQUIRED}{GOVERNED}"))).await.unwrap();
    gateway.ready().await.unwrap();
    let new = ["keys", "new", "example", "--subject", "user123", "--scope", "read:filesystem"];
    let key = signalbox(&gateway.data_dir(), &new).await.unwrap().trim().to_owned();
    let web = HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {key}"));
    let known = async || web.post(&discovery().to_string()).await.ok().filter(|answer| answer.status == 200);
    eventually("the key is known", known).await.unwrap();
    let validation = |tool: &str, path: &str| {
        json!({"jsonrpc": "2.0", "id": "v", "method": "tools/validate", "params": {
            "tool_id": tool, "parameters": {"path": path}, "security_context": {"user_id": "user123"}}})
    };
    let mut governed = Client::websocket(&gateway, "signalbox.governed", Some(&key)).await;
    for client in [&mut governed, &mut Client::http(&gateway, Some(&key))] {
        let granted = client.ask(&validation("directory_list", "./src")).await["result"].take();
        assert_eq!(members(&granted), ["audit_context", "constraints", "granted", "tool_id"], "{granted}");
        assert_eq!(granted["granted"], true);
        let constraints = granted["constraints"].as_array().unwrap();
        let kinds: Vec<_> = constraints.iter().map(|one| (&one["type"], &one["policy"])).collect();
        let policy = json!("constraint:demo/*");
        assert_eq!(kinds, [(&json!("folders"), &policy), (&json!("redaction"), &policy)], "{granted}");
        assert!(constraints[0]["detail"].as_str().unwrap().contains("`src`"), "{granted}");
        let audit = &granted["audit_context"];
        assert_eq!((&audit["user_id"], &audit["permissions"]), (&json!("user123"), &json!(["read:filesystem"])));
        assert!(audit["audit_id"].as_str().unwrap().starts_with("audit-"), "{granted}");
        let outside = client.ask(&validation("directory_list", "/etc")).await;
        assert_eq!(refused(&outside), pair("security_error", "policy_violation"));
        let lacking = client.ask(&validation("echo", "src")).await;
        assert_eq!(refused(&lacking), pair("security_error", "permission_denied"));
        let data = &lacking["error"]["data"];
        assert_eq!(data["details"]["permission"], "spend:money", "{lacking}");
        assert_eq!(data["error_message"], "User lacks required permission", "{lacking}");
        assert_eq!(refused(&client.ask(&validation("nothing", "src")).await).1, "tool_not_found");
    }
}

/// With `tool_error_detail = "by_trust"` the errors of tools tell as much as the caller is trusted.
/// Proves G-24.
#[tokio::test(flavor = "multi_thread")]
async fn errors_of_tools_are_filtered_where_the_operator_says_so() {
    let folder = folder();
    let users = "[auth.users.low]\ntrust = \"untrusted\"\n[auth.users.high]\ntrust = \"system\"\n";
    let users = format!("{REQUIRED}tool_error_detail = \"by_trust\"\n{users}");
    let gateway = GatewayProcess::serve(&config(&folder, &users)).await.unwrap();
    gateway.ready().await.unwrap();
    let mut told = Vec::new();
    for user in ["low", "high"] {
        let key = signalbox(&gateway.data_dir(), &["keys", "new", user, "--subject", user]).await.unwrap();
        let client = HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {}", key.trim()));
        let begin = async || client.clone().initialize(VERSION, json!({})).await.ok();
        let session = eventually("the key is known", begin).await.unwrap();
        let failing = call(1, "directory_list", &json!({"path": "no/such/folder"}));
        let result = session.post(&failing.to_string()).await.unwrap().message().unwrap()["result"].take();
        assert_eq!(result["isError"], true, "{result}");
        told.push(result["content"][0]["text"].as_str().unwrap().to_owned());
    }
    assert_eq!(told[0], "The tool failed");
    assert_ne!(told[1], "The tool failed", "the system is told everything");
}

/// A caller of little trust learns of constraints, and not which folders and policies they name.
/// Proves G-24.
#[tokio::test(flavor = "multi_thread")]
async fn constraints_tell_as_much_as_the_caller_is_trusted() {
    let folder = folder();
    let users = format!("{REQUIRED}{GOVERNED}[auth.users.low]\ntrust = \"untrusted\"\n");
    let gateway = GatewayProcess::serve(&config(&folder, &users)).await.unwrap();
    gateway.ready().await.unwrap();
    let new = ["keys", "new", "low", "--subject", "low", "--scope", "read:filesystem"];
    let key = signalbox(&gateway.data_dir(), &new).await.unwrap().trim().to_owned();
    let web = HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {key}"));
    let validation = json!({"jsonrpc": "2.0", "id": "v", "method": "tools/validate", "params": {
        "tool_id": "directory_list", "parameters": {"path": "./src"}, "security_context": {"user_id": "low"}}});
    let known = async || {
        let answer = web.post(&validation.to_string()).await.ok()?.message().ok()?;
        answer["result"].is_object().then_some(answer)
    };
    let granted = eventually("the key is known", known).await.unwrap()["result"].take();
    let kinds: Vec<_> = granted["constraints"].as_array().unwrap().iter().map(|one| &one["type"]).collect();
    assert_eq!(kinds, ["folders", "redaction"], "{granted}");
    assert!(!granted["constraints"].to_string().contains("src"), "{granted}");
    assert!(granted["constraints"].as_array().unwrap().iter().all(|one| one["policy"].is_null()), "{granted}");
}
