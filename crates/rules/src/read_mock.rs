//! Parses `mock`, whose results are in the rule or in a file next to it.

use crate::action::{Action, Mock, MockFile};
use crate::error::{RuleError, RuleProblem};
use crate::limits;
use crate::node::RuleNode;
use crate::read_action::{object, seed};
use crate::rule_set::{FNV_START, fnv};
use crate::template::JsonTemplate;
use serde_json::Value as Json;
use std::path::{Component, Path};

const WAYS: [&str; 4] = ["result", "json", "list", "random"];

pub(crate) fn mock(node: &RuleNode<'_>) -> Result<Action, RuleError> {
    let expected = "a table with one of `result`, `json`, `list`, `random` or `file`";
    let table = node.table(expected, &["result", "json", "list", "random", "file", "seed"])?;
    if let Some(file) = table.get("file") {
        let [result, json, list] = ["result", "json", "list"].map(|key| table.get(key));
        if result.or(json).or(list).is_some() {
            return Err(node.fail(RuleProblem::Beside("`file` can only be combined with `random = true`")));
        }
        let random = table.get("random").map(|flag| flag.flag()).transpose()?.unwrap_or(false);
        if !random && table.get("seed").is_some() {
            return Err(node.fail(RuleProblem::Beside("`seed` has no effect without `random`")));
        }
        return from_file(&file, random, seed(&table)?);
    }
    let mut given = table.present(&WAYS);
    let (Some((key, value)), None) = (given.pop(), given.pop()) else { return Err(node.expected(expected)) };
    if key != "random" && table.get("seed").is_some() {
        return Err(node.fail(RuleProblem::Beside("`seed` has no effect without `random`")));
    }
    let results = || -> Result<Vec<JsonTemplate>, RuleError> {
        let items = value.list("a list of results")?;
        if items.is_empty() {
            return Err(value.expected("a list of at least one result; the list is empty"));
        }
        items.iter().map(object).collect()
    };
    let mock = match key {
        "result" => Mock::Always(object(&value)?),
        "json" => {
            let text = value.text("a JSON object as text", limits::VALUE)?;
            let json = serde_json::from_str(text).map_err(|error| value.fail(RuleProblem::Json(error.to_string())))?;
            match json {
                Json::Object(_) => Mock::Always(JsonTemplate::compile(&value, &json)?),
                _ => return Err(value.expected("a JSON object")),
            }
        }
        "list" => Mock::InTurn(results()?),
        _ => Mock::AtRandom(results()?, seed(&table)?),
    };
    Ok(Action::Mock(mock, None))
}

/// Reads a file with one JSON object, a JSON array of objects, or JSON lines.
fn from_file(node: &RuleNode<'_>, random: bool, seed: Option<u64>) -> Result<Action, RuleError> {
    let name = node.text("the name of a JSON file beside this one", limits::TEXT)?;
    let plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !plain || name.contains('\0') {
        return Err(node.expected("the name of a file in the folder of this one or below it"));
    }
    let fail = |problem| node.fail(RuleProblem::InFile { file: name.to_owned(), problem: Box::new(problem) });
    let text = node.source.files.read(name, limits::MOCK_FILE).map_err(|why| fail(RuleProblem::Unreadable(why)))?;
    if text.len() > limits::MOCK_FILE {
        return Err(fail(RuleProblem::FileTooLarge { limit: limits::MOCK_FILE }));
    }
    let results = results(&text).map_err(&fail)?;
    let compile = |(index, json): (usize, &Json)| {
        let found = |error: RuleError| fail(RuleProblem::OfResult { number: index + 1, problem: error.problem });
        match json {
            Json::Object(_) => JsonTemplate::compile(node, json).map_err(found),
            _ => Err(fail(RuleProblem::OfResult { number: index + 1, problem: Box::new(no_object()) })),
        }
    };
    let mut all = results.iter().enumerate().map(compile).collect::<Result<Vec<_>, _>>()?;
    let mock = match (random, all.len()) {
        (true, _) => Mock::AtRandom(all, seed),
        (false, 1) => Mock::Always(all.remove(0)),
        (false, _) => Mock::InTurn(all),
    };
    let (digest, bytes) = (fnv(FNV_START, text.as_bytes()), text.len());
    Ok(Action::Mock(mock, Some(MockFile { name: name.into(), digest, bytes })))
}

fn results(text: &str) -> Result<Vec<Json>, RuleProblem> {
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Json>() {
        values.push(value.map_err(|error| RuleProblem::Json(error.to_string()))?);
        check_count(&values)?;
    }
    if let [Json::Array(_)] = values.as_slice()
        && let Some(Json::Array(items)) = values.pop()
    {
        values = items;
        check_count(&values)?;
    }
    if values.is_empty() {
        let expected = "at least one result, as a JSON object".to_owned();
        return Err(RuleProblem::Expected { expected, found: "none".to_owned() });
    }
    Ok(values)
}

fn check_count(values: &[Json]) -> Result<(), RuleProblem> {
    let (what, limit) = ("results", limits::MOCK_RESULTS);
    if values.len() > limit {
        return Err(RuleProblem::TooMany { what, limit, remedy: "spread them over several files and rules" });
    }
    Ok(())
}

fn no_object() -> RuleProblem {
    RuleProblem::Expected { expected: "a JSON object".to_owned(), found: "something else".to_owned() }
}
