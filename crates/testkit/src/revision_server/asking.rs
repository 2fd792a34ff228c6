//! Tools that ask the client something before they answer: by requests of our own in the old era, in rounds in the new
//! one.

use std::collections::BTreeMap;

use anyhow::Context as _;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::call::ServedCall;
use super::fault::RpcFault;
use super::methods::complete;
use super::question::ServerQuestion;
use super::shared::Issued;
use super::tools::{failed, text};

/// The rounds of questions of a tool; empty if it is none that asks.
pub fn rounds(tool: &str) -> &'static [&'static [ServerQuestion]] {
    match tool {
        "ask_elicitation" => &[&[ServerQuestion::Elicit]],
        "ask_sampling" => &[&[ServerQuestion::Sample]],
        "ask_roots" => &[&[ServerQuestion::Roots]],
        "ask_twice" => &[&[ServerQuestion::Elicit], &[ServerQuestion::Sample]],
        "ask_both" => &[&[ServerQuestion::Elicit, ServerQuestion::Sample]],
        _ => &[],
    }
}

/// What was answered so far: by capability, the text.
type Answers = BTreeMap<String, String>;

/// Runs a tool that asks.
///
/// # Errors
/// When the client sent what it must not.
pub async fn run(call: &ServedCall, tool: &str) -> Result<Value, RpcFault> {
    let rounds = rounds(tool);
    if call.revision().modern() {
        return in_rounds(call, tool, rounds);
    }
    let declared = call.capabilities();
    let missing = rounds.iter().copied().flatten().find(|question| !declared[question.capability()].is_object());
    if let Some(question) = missing {
        return Ok(failed(&format!("the client did not declare {}", question.capability())));
    }
    let mut answers = Answers::new();
    for round in rounds {
        match ask_together(call, round).await {
            Ok(more) => answers.extend(more),
            Err(error) => return Ok(failed(&format!("{error:#}"))),
        }
    }
    Ok(text(&told(rounds, &answers)))
}

/// Asks all questions of a round at the same time.
async fn ask_together(call: &ServedCall, round: &[ServerQuestion]) -> anyhow::Result<Answers> {
    let revision = call.revision();
    let one = async |question: ServerQuestion| -> anyhow::Result<(String, String)> {
        let answer = call.ask(question, question.params(revision)).await?;
        Ok((question.capability().to_owned(), question.read(&answer, revision)?))
    };
    match round {
        [first, second] => {
            let (first, second) = tokio::join!(one(*first), one(*second));
            Ok(Answers::from([first?, second?]))
        }
        _ => {
            let mut answers = Answers::new();
            for question in round {
                answers.extend([one(*question).await?]);
            }
            Ok(answers)
        }
    }
}

fn told(rounds: &[&[ServerQuestion]], answers: &Answers) -> String {
    let order = rounds.iter().copied().flatten();
    let said: Vec<&str> = order.filter_map(|one| answers.get(one.capability())).map(String::as_str).collect();
    said.join(", ")
}

/// What the new era gives to the client, to be given back with the answers.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    tool: String,
    round: usize,
    answers: Answers,
    serial: u64,
}

impl State {
    fn read(state: &str) -> anyhow::Result<Self> {
        Ok(serde_json::from_slice(&BASE64_STANDARD.decode(state)?)?)
    }

    fn write(&self) -> anyhow::Result<String> {
        Ok(BASE64_STANDARD.encode(serde_json::to_vec(self)?))
    }
}

fn in_rounds(call: &ServedCall, tool: &str, rounds: &[&[ServerQuestion]]) -> Result<Value, RpcFault> {
    let (mut round, mut answers) = match taken(call, tool, rounds) {
        Ok(taken) => taken,
        Err(error) => {
            let what = format!("{error:#}");
            call.talk.shared.violation(&format!("{tool}: {what}"));
            return Err(RpcFault::params(what));
        }
    };
    while let Some(questions) = rounds.get(round) {
        let open = questions.iter().filter(|question| !answers.contains_key(question.capability()));
        let open: Vec<ServerQuestion> = open.copied().collect();
        if !open.is_empty() {
            return ask(
                call,
                State { tool: tool.to_owned(), round, answers: std::mem::take(&mut answers), serial: 0 },
                &open,
            );
        }
        round += 1;
    }
    Ok(complete(text(&told(rounds, &answers)), call.revision()))
}

/// What came back with the request: the round it belongs to, and all answers so far.
fn taken(call: &ServedCall, tool: &str, rounds: &[&[ServerQuestion]]) -> anyhow::Result<(usize, Answers)> {
    let (state, responses) = (call.params.get("requestState"), call.params.get("inputResponses"));
    let Some(state) = state else {
        anyhow::ensure!(responses.is_none(), "inputResponses without the requestState they belong to");
        return Ok((0, Answers::new()));
    };
    let state = state.as_str().context("requestState is no string")?;
    let mut state = State::read(state).context("requestState is not as it was given out")?;
    let issued = call.talk.shared.redeem(state.serial).context("requestState was never given out")?;
    anyhow::ensure!(!issued.used, "requestState came back twice");
    anyhow::ensure!(state.tool == tool, "requestState belongs to {}", state.tool);
    anyhow::ensure!(issued.id != call.id, "the retry has the id of the first request");
    anyhow::ensure!(issued.arguments == call.params["arguments"], "the retry has other arguments");
    let none = Map::new();
    let responses = responses.map_or(Some(&none), Value::as_object).context("inputResponses is no object")?;
    for (key, answer) in responses {
        anyhow::ensure!(issued.keys.contains(key), "an answer to {key}, which was not asked");
        let round = rounds.get(state.round).context("no such round")?;
        let question = round.iter().find(|question| question.capability() == key).context("no such question")?;
        state.answers.insert(key.clone(), question.read(answer, call.revision())?);
    }
    Ok((state.round, state.answers))
}

fn ask(call: &ServedCall, mut state: State, open: &[ServerQuestion]) -> Result<Value, RpcFault> {
    let declared = call.capabilities();
    if let Some(question) = open.iter().find(|question| !declared[question.capability()].is_object()) {
        let mut required = Map::new();
        required.insert(question.capability().to_owned(), json!({}));
        let what = format!("the client did not declare {}", question.capability());
        return Err(RpcFault::new(-32021, what).with(json!({"requiredCapabilities": required})));
    }
    let keys = open.iter().map(|question| question.capability().to_owned()).collect();
    let arguments = call.params["arguments"].clone();
    state.serial = call.talk.shared.issue(Issued { id: call.id.clone(), arguments, keys, used: false });
    let mut requests = Map::new();
    for question in open {
        let request = json!({"method": question.method(), "params": question.params(call.revision())});
        requests.insert(question.capability().to_owned(), request);
    }
    let state = state.write().map_err(|error| RpcFault::new(-32603, error.to_string()))?;
    Ok(json!({"resultType": "input_required", "inputRequests": requests, "requestState": state}))
}
