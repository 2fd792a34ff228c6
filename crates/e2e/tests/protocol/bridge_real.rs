//! Real peers of different eras through the gateway: new clients from npm and PyPI with `server-everything`, which
//! knows the old era only, and a client of the oldest revision with a server of the newest.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail wherever it wants, and says what it skipped"
)]

use serde_json::{Value, json};
use signalbox_testkit::clients::{everything, run, run_script};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::{GatewayProcess, stdio_command};
use signalbox_testkit::process::Spawned;
use signalbox_testkit::scene::{child, remote, web_fixture};

/// The new clients, each pinned to 2026-07-28.
const NEW: [&[&str]; 2] = [&["ts-client2", "--era", "new"], &["py-mcp2", "--era", "new"]];

/// Runs a client; `None` where it is not installed.
async fn client(arguments: &[&str]) -> Option<Value> {
    let document = run(arguments).await.unwrap();
    if document.is_none() {
        println!("SKIP {}: run script/install-test-deps", arguments[0]);
    }
    document
}

/// `server-everything` as a child of the gateway, by Streamable HTTP, and by the event streams of 2024-11-05.
struct Everything {
    config: String,
    _servers: Vec<Spawned>,
}

/// The names of its backends.
const BACKENDS: [&str; 3] = ["pipe", "web", "events"];

impl Everything {
    async fn start() -> Option<Self> {
        let ((web, web_at), (events, events_at)) =
            (everything("streamableHttp").await.unwrap()?, everything("sse").await.unwrap()?);
        let script = json!(run_script().to_str().unwrap());
        let config = format!(
            "[backends.pipe]\ncommand = {script}\nargs = [\"everything\", \"stdio\"]\n\
             [backends.web]\nurl = \"http://{web_at}/mcp\"\n\
             [backends.events]\nurl = \"http://{events_at}/sse\"\ntransport = \"sse\"\n"
        );
        Some(Self { config, _servers: vec![web, events] })
    }
}

/// The calls that ask the client something, for each backend.
fn questions() -> Vec<String> {
    let url = json!({"url": "https://example.com/here", "message": "go there"});
    let first = json!({"url": "https://example.com/here", "message": "go there", "errorPath": true});
    let calls = |backend: &str| {
        [
            format!("{backend}__trigger-elicitation-request={{}}"),
            format!("{backend}__trigger-sampling-request={}", json!({"prompt": "hi", "maxTokens": 10})),
            format!("{backend}__get-roots-list={{}}"),
            format!("{backend}__trigger-url-elicitation={url}"),
            format!("{backend}__trigger-url-elicitation={first}"),
            format!("{backend}__trigger-long-running-operation={}", json!({"duration": 1, "steps": 4})),
        ]
    };
    BACKENDS.into_iter().flat_map(calls).collect()
}

fn texts(document: &Value) -> Vec<String> {
    let calls = document["steps"]["call"].as_array().unwrap_or_else(|| panic!("no calls: {document:#}"));
    calls.iter().map(|call| call["result"]["content"].to_string()).collect()
}

/// Asserts that the wire was 2026-07-28 alone: no `initialize`, no request of the server, and questions as results.
fn check_wire(name: &str, document: &Value) {
    assert_eq!(document["protocolVersion"], "2026-07-28", "{name}");
    let wire = document["wire"].as_array().unwrap();
    let mut asked = 0;
    for entry in wire {
        let message = &entry["message"];
        assert!(message["method"] != "initialize", "{name}: {message}");
        if entry["dir"] == "recv" {
            assert!(message.get("id").is_none() || message.get("method").is_none(), "{name}: {message}");
            asked += usize::from(message["result"]["resultType"] == "input_required");
        }
    }
    assert!(asked >= BACKENDS.len() * 4, "{name}: {asked} rounds of questions");
}

/// How often the client was asked this.
fn asked(document: &Value, method: &str) -> usize {
    document["serverRequests"].as_array().unwrap().iter().filter(|one| one["method"] == method).count()
}

fn arguments<'a>(client: &[&'a str], calls: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    let calls = calls.iter().flat_map(|call| ["--call", call.as_str()]);
    client.iter().copied().chain(calls).chain(more.iter().copied()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_server_asks_new_clients_for_input_samples_roots_and_visits() {
    let Some(servers) = Everything::start().await else { return };
    let calls = questions();
    for name in NEW {
        // Each has a gateway of its own: the server remembers roots for as long as a connection lasts.
        let gateway = GatewayProcess::serve(&servers.config).await.unwrap();
        let url = gateway.url();
        let more = ["--steps", "tools,call,elicit,progress", "--answer", "Ada", "--trace", "--url", &url];
        let Some(document) = client(&arguments(name, &calls, &more)).await else { continue };
        assert_eq!(document["ok"], true, "{name:?}: {}", document["errors"]);
        let texts = texts(&document);
        for (backend, texts) in BACKENDS.iter().zip(texts.chunks(6)) {
            for (text, part) in
                texts.iter().zip(["Name: Ada", "sampled", "file:///tmp", "completed", "completed", "4."])
            {
                assert!(text.contains(part), "{name:?} {backend}: {part:?} is not in {text}");
            }
        }
        check_wire(&format!("{name:?}"), &document);
        // A form, a visit, and a visit before the server asks for another. How often it wants the roots is its own
        // affair.
        assert_eq!(asked(&document, "elicitation/create"), BACKENDS.len() * 4, "{name:?}");
        assert_eq!(asked(&document, "sampling/createMessage"), BACKENDS.len(), "{name:?}");
        assert!(asked(&document, "roots/list") >= BACKENDS.len(), "{name:?}");
        assert_eq!(document["progress"]["received"], BACKENDS.len() * 4, "{name:?}: {}", document["progress"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_client_that_declines_is_told_so_by_the_old_server() {
    let Some(servers) = Everything::start().await else { return };
    let gateway = GatewayProcess::serve(&servers.config).await.unwrap();
    let (url, calls) = (gateway.url(), questions());
    // The server starts for clients of this kind, which on a busy machine takes longer than their calls wait for lists.
    let before = ["--steps", "tools,elicit", "--action", "decline", "--allow-errors", "--url", &url];
    if client(&arguments(NEW[0], &[], &before)).await.is_none() {
        return;
    }
    let more = ["--steps", "tools,call,elicit", "--action", "decline", "--allow-errors", "--trace", "--url", &url];
    let Some(document) = client(&arguments(NEW[0], &calls, &more)).await else { return };
    for (backend, calls) in BACKENDS.iter().zip(document["steps"]["call"].as_array().unwrap().chunks(6)) {
        for index in [0, 3] {
            let text = calls[index]["result"]["content"].to_string();
            assert!(text.contains("declined"), "{backend}: {text}");
        }
        let refused = &calls[4]["error"];
        assert_eq!(refused["code"], -32602, "{backend}: {refused}");
        assert!(refused["message"].as_str().unwrap().contains("the call was not run"), "{backend}: {refused}");
    }
    check_wire("decline", &document);
    assert_eq!(asked(&document, "elicitation/create"), BACKENDS.len() * 3);
}

/// What `server-everything` answers the same every time.
fn plain_calls(prefix: &str) -> Vec<String> {
    let calls = [
        ("echo", json!({"message": "hello"})),
        ("get-annotated-message", json!({"messageType": "error", "includeImage": true})),
        ("get-resource-links", json!({"count": 3})),
        ("get-structured-content", json!({"location": "New York"})),
        ("get-sum", json!({"a": 1, "b": 2})),
        ("get-sum", json!({"a": "no number"})),
        ("get-tiny-image", json!({})),
    ];
    calls.iter().map(|(tool, arguments)| format!("{prefix}{tool}={arguments}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_client_gets_what_an_old_one_gets_directly() {
    let Some((_server, address)) = everything("streamableHttp").await.unwrap() else { return };
    let direct_url = format!("http://{address}/mcp");
    // One call has arguments that do not fit. What the server says of them is compared here.
    let config = format!("[guard]\narguments = 'report'\n{}", remote("web", &address.to_string(), ""));
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let through_url = gateway.url();
    let prompt = r#"args-prompt={"city":"Paris"}"#;
    let complete = json!({"ref": {"type": "ref/prompt", "name": "completable-prompt"}, "argument": {"name": "department", "value": "E"}}).to_string();
    let uri = "demo://resource/static/document/features.md";
    let more = ["--get-prompt", prompt, "--read", uri, "--complete", &complete, "--url"];
    let calls = plain_calls("");
    let direct = [&more[..], &[&direct_url]].concat();
    let Some(direct) = client(&arguments(&["ts-client2", "--era", "old"], &calls, &direct)).await else { return };
    let through = [&more[..], &[&through_url]].concat();
    let Some(through) = client(&arguments(NEW[0], &calls, &through)).await else { return };
    assert_eq!((&direct["negotiatedEra"], &through["negotiatedEra"]), (&json!("old"), &json!("new")));
    assert_eq!((&direct["ok"], &through["ok"]), (&json!(true), &json!(true)), "{}", through["errors"]);
    let results = |document: &Value, step: &str| -> Vec<Value> {
        document["steps"][step].as_array().unwrap().iter().map(|one| one["result"].clone()).collect()
    };
    for step in ["call", "getPrompt", "complete"] {
        let mut bridged = results(&through, step);
        for result in &mut bridged {
            // What every result of the new era should say, and no old one does.
            let own = result.as_object_mut().and_then(|result| result.remove("_meta")).unwrap();
            assert_eq!(own["io.modelcontextprotocol/serverInfo"]["name"], "mcp-servers/everything", "{step}");
        }
        assert!(results(&direct, step) == bridged, "{step} differs");
    }
    assert_eq!(results(&direct, "read")[0]["contents"], results(&through, "read")[0]["contents"]);
    for (step, member) in [("tools", "names"), ("prompts", "names"), ("resources", "uris"), ("resources", "templates")]
    {
        assert_eq!(sorted(&direct["steps"][step][member]), sorted(&through["steps"][step][member]), "{step}");
    }
}

fn sorted(names: &Value) -> Vec<String> {
    let mut names: Vec<String> = names.as_array().unwrap().iter().map(ToString::to_string).collect();
    names.sort_unstable();
    names
}

/// What a client of 2024-11-05 does to the fixture; it declares what its revision knows.
const OLDEST: &[&str] = &[
    "--protocol-version",
    "2024-11-05",
    "--caps",
    "sampling,roots",
    "--trace",
    "--allow-errors",
    "--call",
    "test_simple_text",
    "--call",
    "test_audio_content",
    "--call",
    "test_error_handling",
    "--call",
    r#"test_sampling={"prompt":"hi"}"#,
    "--call",
    "test_input_required_result_list_roots",
    "--call",
    r#"test_elicitation={"message":"who?"}"#,
    "--call",
    "no_such_tool",
    "--get-prompt",
    r#"test_prompt_with_arguments={"arg1":"a","arg2":"b"}"#,
    "--read",
    "test://static-text",
    "--read",
    "test://nothing",
];

fn check_oldest(document: &Value) {
    assert_eq!(document["protocolVersion"], "2024-11-05");
    let steps = &document["steps"];
    assert!(steps["tools"]["names"].to_string().contains("test_simple_text"), "{}", steps["tools"]);
    assert!(steps["prompts"]["names"].to_string().contains("test_simple_prompt"), "{}", steps["prompts"]);
    assert!(steps["resources"]["uris"].to_string().contains("test://static-text"), "{}", steps["resources"]);
    let call = |index: usize| steps["call"][index]["result"].clone();
    assert_eq!(call(0)["content"][0]["text"], "This is a simple text response for testing.");
    // That revision has no audio: it travels as a resource.
    assert_eq!(call(1)["content"][0]["type"], "resource");
    assert_eq!(call(1)["content"][0]["resource"]["mimeType"], "audio/wav");
    assert_eq!(call(2)["isError"], true);
    assert_eq!(call(3)["content"][0]["text"], "LLM response: sampled");
    assert!(call(4)["content"].to_string().contains("file:///tmp"), "{}", call(4));
    let asked: Vec<&str> =
        document["serverRequests"].as_array().unwrap().iter().filter_map(|one| one["method"].as_str()).collect();
    assert_eq!(asked, ["sampling/createMessage", "roots/list"]);
    // Nor has it elicitation, so the server is told that it cannot ask, and its refusal gets a code that the revision
    // knows.
    let refused = &steps["call"][5]["error"];
    assert_eq!(refused["code"], -32600, "{refused}");
    assert_eq!(refused["data"]["requiredCapabilities"], json!({"elicitation": {}}), "{refused}");
    assert_eq!(steps["call"][6]["error"]["code"], -32602, "{}", steps["call"][6]);
    assert!(steps["getPrompt"].to_string().contains("arg1='a', arg2='b'"), "{}", steps["getPrompt"]);
    assert_eq!(steps["read"][0]["result"]["contents"][0]["uri"], "test://static-text");
    // The library tells the code of its newest revision; on the wire it is the old one.
    let wire = document["wire"].to_string();
    assert!(wire.contains(r#""code":-32002"#) && !wire.contains("resultType"), "{wire}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_2024_11_05_uses_a_server_of_2026_07_28() {
    let (_server, address) = web_fixture("127.0.0.1:0", ServedEra::New).await.unwrap();
    let config = remote("new", &address, "");
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let url = gateway.url();
    let by_http = [&["ts-client2", "--era", "old"], OLDEST, &["--url", &url]].concat();
    let Some(document) = client(&by_http).await else { return };
    check_oldest(&document);
    let folder = tempfile::tempdir().unwrap();
    let config = child("new", ServedEra::New, "").unwrap();
    let command = stdio_command(folder.path(), &config).unwrap();
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let by_pipe = [&["ts-client2", "--era", "old"], OLDEST, &["--stdio"], &command].concat();
    check_oldest(&client(&by_pipe).await.unwrap());
}
