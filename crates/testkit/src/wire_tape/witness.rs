//! What both witnesses saw of a meeting, by the point of the gateway that each message passed.

use std::collections::HashMap;

use serde_json::Value;

use super::Point;
use crate::wire_log::{Logged, MessageDirection};

/// A message that a witness saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WitnessedMessage {
    /// Where the gateway had it.
    pub point: Point,
    /// The connection it went over.
    pub connection: u64,
    /// When, in nanoseconds since 1970.
    pub at: u64,
    /// Its bytes.
    pub text: String,
    /// What it is, in a few words.
    pub label: String,
}

/// Everything seen, each witness's in the order it saw it.
pub fn seen(client: &[Logged], server: &[Logged]) -> Vec<WitnessedMessage> {
    let mut all = told(client, Point::ClientIn, Point::ClientOut);
    all.extend(told(server, Point::BackendIn, Point::BackendOut));
    all
}

fn told(log: &[Logged], sent: Point, received: Point) -> Vec<WitnessedMessage> {
    let mut labels = Labels::default();
    let seen = |logged: &Logged| WitnessedMessage {
        point: if logged.way == MessageDirection::Sent { sent } else { received },
        connection: logged.connection,
        at: logged.at,
        text: logged.text.clone(),
        label: labels.label(logged),
    };
    log.iter().map(seen).collect()
}

/// The methods of requests by their ids, so that an answer can be named after its request.
#[derive(Debug, Default)]
struct Labels {
    on_connection: HashMap<(u64, String), String>,
    anywhere: HashMap<String, String>,
}

impl Labels {
    fn label(&mut self, logged: &Logged) -> String {
        let message: Value = serde_json::from_str(&logged.text).unwrap_or_default();
        let id = message["id"].to_string();
        // Requests of both sides have ids of their own.
        let (asked, answered) = match logged.way {
            MessageDirection::Sent => (format!("> {id}"), format!("< {id}")),
            MessageDirection::Received => (format!("< {id}"), format!("> {id}")),
        };
        if message.get("id").is_some() && message["method"].is_string() {
            let label = about(&message);
            self.on_connection.insert((logged.connection, asked.clone()), label.clone());
            self.anywhere.insert(asked, label);
        }
        let known = self.on_connection.get(&(logged.connection, answered.clone()));
        let request = known.or_else(|| self.anywhere.get(&answered));
        outline(&message, request.map(String::as_str))
    }
}

/// A method and what it is about.
fn about(message: &Value) -> String {
    let method = message["method"].as_str().unwrap_or_default();
    let params = &message["params"];
    match (method, params["name"].as_str()) {
        ("tools/call", Some(tool)) => {
            let answers = if params.get("requestState").is_some() { " again" } else { "" };
            format!("{method} {tool}{answers}")
        }
        _ => method.to_owned(),
    }
}

/// A message in a few words.
pub fn outline(message: &Value, request: Option<&str>) -> String {
    let request = request.unwrap_or("nothing known");
    match (message["method"].is_string(), message.get("id"), message.get("error")) {
        (true, Some(_), _) => format!("request {}", about(message)),
        (true, None, _) => format!("notification {}", about(message)),
        (false, _, Some(error)) => format!("error {} to {request}", error["code"]),
        (false, _, None) if message.get("result").is_some() => format!("result of {request}"),
        _ => "no message".to_owned(),
    }
}
