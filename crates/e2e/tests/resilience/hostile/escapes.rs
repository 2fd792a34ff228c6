//! Names written with escapes mean the same to the gateway as to the backend behind it.

use super::raw::Raw;
use super::{gateway, session};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_progress_token_under_an_escaped_key_is_still_replaced_and_given_back() {
    let gateway = gateway().await;
    let mut client = Raw::connect(gateway.address()).await.unwrap();
    let lines = session(&mut client).await;
    for (name, meta, token) in [
        ("name", "_meta", "progressToken"),
        (r"n\u0061me", "_meta", "progressToken"),
        ("name", r"\u005fmeta", "progressToken"),
        ("name", r"_met\u0061", r"progress\u0054oken"),
    ] {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools\/call","params":{{"{name}":"sl\u006fw","arguments":{{"ms":50}},"{meta}":{{"{token}":"mine"}}}}}}"#
        );
        let messages = client.post(&lines, call.as_bytes()).await.unwrap().messages().unwrap();
        let (answer, notes) = messages.split_last().unwrap();
        assert_eq!(answer["id"], 7, "{call}: {answer}");
        assert!(answer["result"]["content"].is_array(), "{call}: {answer}");
        assert!(!notes.is_empty(), "{call}: no progress came");
        assert!(notes.iter().all(|note| note["params"]["progressToken"] == json!("mine")), "{call}: {notes:?}");
    }
}
