//! Real client libraries at the gateway's own HTTP+SSE address.

use super::{installed, sessions};
use serde_json::{Value, json};
use signalbox_testkit::clients::{run, run_script};
use signalbox_testkit::gateway::GatewayProcess;

#[tokio::test(flavor = "multi_thread")]
async fn real_clients_speak_http_sse_with_the_gateway() {
    if !installed().await {
        return;
    }
    let script = json!(run_script().to_str().unwrap());
    let config = format!("[backends.ev]\ncommand = {script}\nargs = [\"everything\", \"stdio\"]\n");
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let at = format!("http://{}/sse", gateway.address());
    for client in ["ts-sdk1", "py-mcp1"] {
        let document: Value = run(&[
            client,
            "--steps",
            "tools,call,prompts,resources,elicit,progress",
            "--answer",
            "Ada",
            "--call",
            r#"echo={"message":"hello"}"#,
            "--call",
            "trigger-elicitation-request={}",
            "--call",
            r#"trigger-sampling-request={"prompt":"hi","maxTokens":10}"#,
            "--call",
            r#"trigger-long-running-operation={"duration":1,"steps":4}"#,
            "--get-prompt",
            r#"args-prompt={"city":"Paris"}"#,
            "--read",
            "demo://resource/static/document/features.md",
            "--sse",
            &at,
        ])
        .await
        .unwrap()
        .unwrap();
        assert_eq!((&document["ok"], &document["transport"]), (&json!(true), &json!("sse")), "{client}: {document:#}");
        let names = document["steps"]["tools"]["names"].as_array().unwrap_or_else(|| panic!("{client}: {document:#}"));
        assert!(names.contains(&json!("trigger-sampling-request")), "{client}: {names:?}");
        for (index, part) in [(0, "Echo: hello"), (1, "Ada"), (2, "sampled")] {
            let call = document["steps"]["call"][index].to_string();
            assert!(call.contains(part), "{client}: {call}");
        }
        assert_eq!(document["progress"]["received"], 4, "{client}: {}", document["progress"]);
        assert!(document["steps"]["getPrompt"][0].to_string().contains("Paris"), "{client}");
        // A client that leaves is gone with everything it had.
        sessions(&gateway, 0).await;
    }
}
