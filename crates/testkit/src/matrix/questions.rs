//! How it is tried whether a tool can ask the client something.

use anyhow::ensure;
use serde_json::json;

use super::cell::{Cell, Seen};
use crate::revision_client::Reply;

/// A tool asks the user: alone, before another question, and beside one.
///
/// # Errors
/// When something else comes of it than working or being refused.
pub async fn elicitation(cell: &Cell<'_>) -> anyhow::Result<Seen> {
    let hello = format!("hello {}", cell.name);
    let both = format!("{hello}, word for {}", cell.name);
    let (user, model) = ("elicitation/create", "sampling/createMessage");
    let tools =
        [("ask_elicitation", &hello, &[user][..]), ("ask_twice", &both, &[user, model]), ("ask_both", &both, &[])];
    for (tool, wanted, order) in tools {
        let before = cell.client.asked().len();
        match ask(cell, tool, wanted).await? {
            Seen::Works => {}
            other => return Ok(other),
        }
        let asked = cell.client.asked().split_off(before);
        ensure!(order.is_empty() || asked == *order, "{tool} asked {asked:?}");
        ensure!(!order.is_empty() || asked.len() == 2, "{tool} asked {asked:?}");
    }
    Ok(Seen::Works)
}

/// A tool asks the model.
///
/// # Errors
/// When something else comes of it than working or being refused.
pub async fn sampling(cell: &Cell<'_>) -> anyhow::Result<Seen> {
    ask(cell, "ask_sampling", &format!("word for {}", cell.name)).await
}

/// A tool asks for the roots.
///
/// # Errors
/// When something else comes of it than working or being refused.
pub async fn roots(cell: &Cell<'_>) -> anyhow::Result<Seen> {
    ask(cell, "ask_roots", &format!("file:///{}", cell.name)).await
}

async fn ask(cell: &Cell<'_>, tool: &str, wanted: &str) -> anyhow::Result<Seen> {
    let result = match cell.call(tool, json!({})).await? {
        Reply::Error(error) => return Ok(Seen::Refused(error.to_string())),
        Reply::Result(result) if result["isError"] == true => return Ok(Seen::Refused(result.to_string())),
        Reply::Result(result) => result,
    };
    ensure!(result["content"][0]["text"] == wanted, "{tool} answers {result} instead of {wanted}");
    Ok(Seen::Works)
}
