//! What tools are told and say, checked at a real gateway: by every way in, and in the form of each revision.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use super::approvals::serving;
use serde_json::{Value, json};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::pipe_client::PipeClient;
use signalbox_testkit::scene::{call, eventually, remote, signalbox, text};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

/// A server of 2025-06-18 with scripted tools, which keeps the arguments that it was called with.
pub(super) struct ScriptedServer {
    pub(super) address: SocketAddr,
    calls: Arc<Mutex<Vec<Value>>>,
}

impl ScriptedServer {
    /// Starts a server with these tools, whose results `answer` makes of name and arguments.
    pub(super) async fn start(tools: Value, answer: impl Fn(&str, &Value) -> Value + Send + Sync + 'static) -> Self {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&calls);
        let address = serving(move |message| {
            let params = &message["params"];
            let result = match message["method"].as_str().unwrap_or_default() {
                "initialize" => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "scripted", "version": "1"}}),
                "tools/list" => json!({"tools": tools}),
                "tools/call" => {
                    seen.lock().unwrap().push(params["arguments"].clone());
                    answer(params["name"].as_str().unwrap(), &params["arguments"])
                }
                _ => json!({}),
            };
            vec![json!({"jsonrpc": "2.0", "id": message["id"], "result": result})]
        })
        .await;
        Self { address, calls }
    }

    /// Takes the arguments of all calls since the last time.
    pub(super) fn calls(&self) -> Vec<Value> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    /// The configuration of a gateway in front of the server.
    pub(super) fn config(&self, settings: &str) -> String {
        format!("{settings}\n{}", remote("one", &self.address.to_string(), "era = 'old'"))
    }

    /// A gateway in front of the server.
    pub(super) async fn behind(&self, settings: &str) -> GatewayProcess {
        let gateway = GatewayProcess::serve(&self.config(settings)).await.unwrap();
        gateway.ready().await.unwrap();
        gateway
    }
}

/// A client of this revision, once the tools are known.
pub(super) async fn session(gateway: &GatewayProcess, version: &str) -> HttpClient {
    let client = HttpClient::new(gateway.address()).initialize(version, json!({})).await.unwrap();
    let listed = async || {
        let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
        let answer = client.post(&ask).await.ok()?.message().ok()?;
        answer["result"]["tools"].as_array().is_some_and(|tools| !tools.is_empty()).then_some(())
    };
    eventually("the tools are known", listed).await.unwrap();
    client
}

/// A call of 2026-07-28.
pub(super) async fn modern(gateway: &GatewayProcess, tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}}});
    let client = HttpClient::new(gateway.address()).with("mcp-protocol-version", "2026-07-28");
    let client = client.with("mcp-method", "tools/call").with("mcp-name", tool);
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    client.post(&message.to_string()).await.unwrap().message().unwrap()
}

fn search_tool() -> Value {
    json!([{"name": "search", "inputSchema": {"type": "object", "properties": {
        "query": {"type": "string"}, "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        "order": {"enum": ["newest", "oldest"]}}, "required": ["query"]},
        "outputSchema": {"type": "object", "properties": {"found": {"type": "integer"}}, "required": ["found"]}}])
}

async fn search_server() -> ScriptedServer {
    ScriptedServer::start(search_tool(), |_, arguments| {
        let found = if arguments["query"] == "lie" { json!("many") } else { json!(3) };
        json!({"content": [{"type": "text", "text": found.to_string()}], "structuredContent": {"found": found}})
    })
    .await
}

/// Arguments that do not fit, and a part of what is said of them.
fn misfits() -> [(Value, &'static str); 4] {
    [
        (json!({}), "query"),
        (json!({"query": 7}), "query"),
        (json!({"query": "x", "limit": 1000}), "limit"),
        (json!({"query": "x", "order": "newst"}), "newest"),
    ]
}

/// Proves G-15 and NO-12.
#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_do_not_fit_reach_no_server_by_any_way() {
    let server = search_server().await;
    let gateway = server.behind("").await;
    for (arguments, place) in misfits() {
        for version in ["2024-11-05", "2025-03-26", "2025-06-18"] {
            let client = session(&gateway, version).await;
            let answer = client.post(&call(5, "search", &arguments).to_string()).await.unwrap().message().unwrap();
            let error = &answer["error"];
            assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32602), &json!("invalid_arguments")));
            assert!(error["message"].as_str().unwrap().contains(place), "{version}: {answer}");
        }
        // Later revisions let the model read what is wrong.
        let client = session(&gateway, "2025-11-25").await;
        let answer = client.post(&call(5, "search", &arguments).to_string()).await.unwrap().message().unwrap();
        let newest = modern(&gateway, "search", &arguments).await;
        assert_eq!(newest["result"]["resultType"], "complete", "{newest}");
        for answer in [answer, newest] {
            assert_eq!(answer["result"]["isError"], true, "{answer}");
            assert!(text(&answer).unwrap().contains(place), "{answer}");
        }
        let mut dialect = PipeClient::websocket(gateway.address(), &[("sec-websocket-protocol", "signalbox.governed")])
            .await
            .unwrap();
        let invoke = json!({"jsonrpc": "2.0", "id": "2", "method": "tools/invoke",
            "params": {"tool_id": "search", "parameters": arguments}});
        dialect.say(&invoke.to_string()).await.unwrap();
        let told = dialect.next().await.unwrap();
        let data = &told["error"]["data"];
        assert_eq!(
            (&data["error_type"], &data["error_code"]),
            (&json!("validation_error"), &json!("invalid_parameters")),
            "{told}"
        );
    }
    let batch = json!([call(1, "search", &json!({"query": 1})), call(2, "search", &json!({"query": "fits"}))]);
    let client = session(&gateway, "2025-03-26").await;
    let answers = client.post(&batch.to_string()).await.unwrap();
    assert!(String::from_utf8_lossy(&answers.body).contains("invalid_arguments"), "{answers:?}");
    assert_eq!(server.calls(), [json!({"query": "fits"})], "only what fits arrives");
}

/// Proves NO-14.
#[tokio::test(flavor = "multi_thread")]
async fn the_checks_of_a_call_come_in_the_specified_order() {
    let server = search_server().await;
    let kill = "[kill_switch]\ntools = ['one/search']\n";
    let limit = "[limits.'one/search']\ncalls_per_minute = 1\n";
    let role = |rights: &str| format!("[permissions]\ndefault_role = 'any'\nreveal = true\n[roles.any]\n{rights}\n");
    let denied = role("allow = ['one/*']\ndeny = ['one/search']");
    let backend = remote("one", &server.address.to_string(), "era = 'old'\nbreaker = { failures = 1 }");
    let gateway = server.behind("").await;
    let client = session(&gateway, "2025-06-18").await;
    let reload = async |config: &str| {
        std::fs::write(gateway.config_file(), format!("{config}\n{backend}")).unwrap();
        signalbox(&gateway.data_dir(), &["reload"]).await.unwrap();
    };
    let reason = async |arguments: Value| {
        let answer = client.post(&call(5, "search", &arguments).to_string()).await.unwrap().message().unwrap();
        answer["error"]["data"]["reason"].as_str().unwrap_or("none").to_owned()
    };
    let wrong = || json!({"query": 7});
    reload(&format!("{kill}{limit}{denied}")).await;
    assert_eq!(reason(wrong()).await, "killed");
    reload(&format!("{limit}{denied}")).await;
    assert_eq!(reason(wrong()).await, "denied");
    assert_eq!(reason(wrong()).await, "rate_limited");
    reload(&denied).await;
    assert_eq!(reason(wrong()).await, "denied");
    reload(&role("")).await;
    assert_eq!(reason(wrong()).await, "invalid_arguments");
    assert_eq!(reason(json!({"query": "x"})).await, "none");
    assert_eq!(server.calls().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn lossless_spellings_are_forwarded_as_sent_and_recorded() {
    let server = search_server().await;
    let gateway = server.behind("").await;
    let client = session(&gateway, "2025-06-18").await;
    for spelled in [json!({"query": "x", "limit": "5"}), json!({"query": "x", "limit": null})] {
        let answer = client.post(&call(5, "search", &spelled).to_string()).await.unwrap().message().unwrap();
        assert_eq!(text(&answer).as_deref(), Some("3"), "{answer}");
        assert_eq!(server.calls(), [spelled]);
    }
    let noted = async || {
        let shown =
            signalbox(&gateway.data_dir(), &["tape", "export", "last", "-o", "-", "--format", "jsonl"]).await.ok()?;
        (shown.contains("guard.arguments") && shown.contains("forwarded as sent")).then_some(())
    };
    eventually("the tape has the decision", noted).await.unwrap();
}

/// Each mode for all tools, and for some; a level; shadow; and another configuration while the gateway runs.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_about_misfits_is_as_configured() {
    let server = search_server().await;
    let gateway = server.behind("").await;
    let client = session(&gateway, "2025-06-18").await;
    let wrong = call(5, "search", &json!({"query": 7})).to_string();
    for (config, is_refused) in [
        ("[guard]\nlevel = 'off'\n", false),
        ("[guard]\nlevel = 'observe'\n", false),
        ("[guard]\nlevel = 'strict'\n", true),
        ("[guard]\narguments = 'report'\n", false),
        ("[guard]\nlevel = 'off'\narguments = 'enforce'\n", true),
        ("[guard]\nmode = 'shadow'\n", false),
        ("[guard.tools.'one/search']\narguments = 'report'\n", false),
        ("[guard.tools.'one/other']\narguments = 'report'\n", true),
        ("[guard]\narguments = 'off'\n[guard.tools.'one/s*']\narguments = 'enforce'\n", true),
    ] {
        let config = format!("{config}\n{}", remote("one", &server.address.to_string(), "era = 'old'"));
        std::fs::write(gateway.config_file(), config.as_str()).unwrap();
        signalbox(&gateway.data_dir(), &["reload"]).await.unwrap();
        let answer = client.post(&wrong).await.unwrap().message().unwrap();
        assert_eq!(answer["error"]["data"]["reason"] == "invalid_arguments", is_refused, "{config}: {answer}");
        assert_eq!(server.calls().is_empty(), is_refused, "{config}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn results_that_do_not_fit_their_schema_are_recorded_or_replaced() {
    let server = search_server().await;
    let ask = call(5, "search", &json!({"query": "lie"})).to_string();
    for (config, is_replaced) in [("", false), ("[guard]\nlevel = 'strict'\n", true)] {
        let gateway = server.behind(config).await;
        let client = session(&gateway, "2025-06-18").await;
        let answer = client.post(&ask).await.unwrap().message().unwrap();
        assert_eq!(answer["result"]["isError"] == true, is_replaced, "{answer}");
        assert_eq!(answer["result"]["structuredContent"]["found"] == "many", !is_replaced, "{answer}");
        let noted = async || {
            let shown = signalbox(&gateway.data_dir(), &["tape", "export", "last", "-o", "-", "--format", "jsonl"])
                .await
                .ok()?;
            shown.contains("guard.results").then_some(())
        };
        eventually("the tape has the decision", noted).await.unwrap();
    }
}

/// A tool is not held responsible for a schema that nobody can use, and callers are not either.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_with_a_schema_that_cannot_be_used_works_and_is_reported_once() {
    let tools = json!([{"name": "odd", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}}},
        {"name": "plain", "inputSchema": {"type": "object"}}]);
    let server = ScriptedServer::start(tools, |_, _| json!({"content": [{"type": "text", "text": "ran"}]})).await;
    let gateway = server.behind("").await;
    let client = session(&gateway, "2025-06-18").await;
    for id in 0..3 {
        for tool in ["odd", "plain"] {
            let answer = client.post(&call(id, tool, &json!({"a": 1})).to_string()).await.unwrap().message().unwrap();
            assert_eq!(text(&answer).as_deref(), Some("ran"), "{answer}");
        }
    }
    let noted = async || {
        let shown =
            signalbox(&gateway.data_dir(), &["tape", "export", "last", "-o", "-", "--format", "jsonl"]).await.ok()?;
        (shown.matches("input schema cannot be used").count() == 1).then_some(())
    };
    eventually("the tape has one decision", noted).await.unwrap();
}

/// Proves G-15.
#[tokio::test(flavor = "multi_thread")]
async fn filters_refuse_report_or_change_by_the_meaning_of_an_argument() {
    let tools = json!([{"name": "fetch", "inputSchema": {"type": "object", "properties": {
        "url": {"type": "string"}, "path": {"type": "string", "description": "file to read"},
        "body": {"type": "string", "description": "text of the mail"}}}}]);
    let server = ScriptedServer::start(tools, |_, _| json!({"content": [{"type": "text", "text": "ran"}]})).await;
    let gateway = server.behind("").await;
    let metadata = ["http://169.254.169.254/latest", "http://2852039166/", "http://[::ffff:a9fe:a9fe]/"];
    let calls: Vec<Value> = metadata
        .iter()
        .map(|url| json!({"url": url}))
        .chain([
            json!({"url": "http://127.0.0.1:8080/"}),
            json!({"path": "../../../../etc/shadow"}),
            json!({"body": "see http://169.254.169.254/ and ../../../../etc/shadow; rm -rf /"}),
        ])
        .collect();
    for (config, refused) in [
        ("", [true, true, true, false, false, false]),
        ("[guard]\nlevel = 'off'\n", [false; 6]),
        ("[guard]\nlevel = 'observe'\n", [false; 6]),
        ("[guard]\nlevel = 'strict'\n", [true, true, true, true, true, false]),
        (
            "[guard.filters]\ntraversal = 'block'\nmetadata_address = 'report'\n",
            [false, false, false, false, true, false],
        ),
        ("[guard.tools.'one/fetch']\nfilters = 'block'\n", [true, true, true, true, true, false]),
    ] {
        let config = format!("{config}\n{}", remote("one", &server.address.to_string(), "era = 'old'"));
        std::fs::write(gateway.config_file(), &config).unwrap();
        signalbox(&gateway.data_dir(), &["reload"]).await.unwrap();
        let client = session(&gateway, "2025-06-18").await;
        for (arguments, is_refused) in calls.iter().zip(refused) {
            for version in ["old", "new"] {
                let answer = match version {
                    "old" => client.post(&call(5, "fetch", arguments).to_string()).await.unwrap().message().unwrap(),
                    _ => modern(&gateway, "fetch", arguments).await,
                };
                let is_denied = answer["error"]["data"]["reason"] == "denied";
                assert_eq!(is_denied, is_refused, "{config}: {arguments}: {answer}");
                assert_eq!(server.calls().is_empty(), is_refused, "{config}: {arguments}");
            }
        }
    }
    let noted = async || {
        let shown =
            signalbox(&gateway.data_dir(), &["tape", "export", "last", "-o", "-", "--format", "jsonl"]).await.ok()?;
        shown.contains("guard.filters.private_address").then_some(())
    };
    eventually("the tape has the decision", noted).await.unwrap();
}
