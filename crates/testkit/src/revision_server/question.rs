//! What a server may ask a client, in the words of each revision, and how the answer must look.

use anyhow::{Context as _, anyhow, ensure};
use serde_json::{Value, json};

use crate::revision::Revision;

/// Something to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerQuestion {
    /// The user's name, by a form.
    Elicit,
    /// A word of the model.
    Sample,
    /// The folders that the client works in.
    Roots,
    /// Whether the client is there.
    Ping,
}

impl ServerQuestion {
    /// The method it is asked with.
    pub fn method(self) -> &'static str {
        match self {
            Self::Elicit => "elicitation/create",
            Self::Sample => "sampling/createMessage",
            Self::Roots => "roots/list",
            Self::Ping => "ping",
        }
    }

    /// The capability that a client must have declared; also the key of the answer in the new era.
    pub fn capability(self) -> &'static str {
        match self {
            Self::Elicit => "elicitation",
            Self::Sample => "sampling",
            Self::Roots => "roots",
            Self::Ping => "ping",
        }
    }

    /// The parameters it is asked with.
    pub fn params(self, revision: Revision) -> Value {
        match self {
            Self::Elicit => {
                let schema =
                    json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
                let mut params = json!({"message": "What is your name?", "requestedSchema": schema});
                if revision >= Revision::R4 {
                    params["mode"] = json!("form");
                }
                params
            }
            Self::Sample => {
                let message = json!({"role": "user", "content": {"type": "text", "text": "Say a word."}});
                json!({"messages": [message], "maxTokens": 10})
            }
            Self::Roots | Self::Ping => json!({}),
        }
    }

    /// Judges a whole answer of the old era. The inner result is what the client said: a result or its error.
    ///
    /// # Errors
    /// What is wrong with its shape.
    pub fn judge(self, message: &Value, revision: Revision) -> anyhow::Result<anyhow::Result<Value>> {
        ensure!(message["jsonrpc"] == "2.0", "jsonrpc is not \"2.0\"");
        match (message.get("result"), message.get("error")) {
            (Some(result), None) => {
                ensure!(result.get("resultType").is_none(), "`resultType` is of 2026-07-28");
                self.read(result, revision)?;
                Ok(Ok(result.clone()))
            }
            (None, Some(error)) => {
                ensure!(error["code"].is_i64() && error["message"].is_string(), "a misshapen error: {error}");
                Ok(Err(anyhow!("the client answers {}: {}", error["code"], error["message"])))
            }
            _ => Err(anyhow!("neither a result nor an error: {message}")),
        }
    }

    /// What an answer says.
    ///
    /// # Errors
    /// What is wrong with its shape.
    pub fn read(self, answer: &Value, revision: Revision) -> anyhow::Result<String> {
        ensure!(answer.is_object(), "{answer} is no object");
        match self {
            Self::Elicit => read_form(answer),
            Self::Sample => read_sample(answer, revision),
            Self::Ping => Ok("pong".to_owned()),
            Self::Roots => {
                let roots = answer["roots"].as_array().context("no roots")?;
                let uris: Option<Vec<&str>> = roots.iter().map(|root| root["uri"].as_str()).collect();
                let uris = uris.context("a root without a uri")?;
                ensure!(uris.iter().all(|uri| uri.starts_with("file://")), "a root that is no file:// {uris:?}");
                Ok(uris.first().copied().unwrap_or("no root").to_owned())
            }
        }
    }
}

fn read_form(answer: &Value) -> anyhow::Result<String> {
    match answer["action"].as_str() {
        Some("accept") => {
            let name = answer["content"]["name"].as_str();
            Ok(format!("hello {}", name.with_context(|| format!("accepted without a name: {answer}"))?))
        }
        Some("decline" | "cancel") => Ok("declined".to_owned()),
        _ => Err(anyhow!("an action that is none: {answer}")),
    }
}

fn read_sample(answer: &Value, revision: Revision) -> anyhow::Result<String> {
    ensure!(answer["model"].is_string(), "no model: {answer}");
    ensure!(matches!(answer["role"].as_str(), Some("assistant" | "user")), "no role: {answer}");
    let content = match &answer["content"] {
        Value::Array(blocks) if revision >= Revision::R4 => blocks.first().unwrap_or(&Value::Null),
        content => content,
    };
    ensure!(content["type"] == "text", "no text: {answer}");
    Ok(content["text"].as_str().context("no text")?.to_owned())
}
