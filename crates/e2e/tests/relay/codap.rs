//! The CODAP plugin of the relay in a real browser.

use serde_json::json;
use signalbox_testkit::clients::run;

/// Every tool produces the request that CODAP documents, in the frame of a page that speaks CODAP's protocol.
/// Proves C-21, CO-15 and CO-16.
#[tokio::test]
async fn every_tool_asks_codap_what_codap_documents() {
    let Some(said) = run(&["relay-codap"]).await.unwrap() else {
        println!("SKIP the CODAP plugin in a browser: run script/install-test-deps");
        return;
    };
    assert_eq!(said["tools"], json!(67), "{said}");
}
