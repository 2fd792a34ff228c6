//! Parses the `when` of a rule.

use crate::condition::{Condition, Globs, Leaf, MethodTest, Subjects};
use crate::error::{RuleError, RuleProblem};
use crate::facts::Root;
use crate::limits;
use crate::node::RuleNode;
use crate::phases::Phases;
use crate::pointer::Pointer;
use crate::template::rooted;
use crate::value_test::ValueTest;
use regex::bytes::{Regex, RegexBuilder};

/// Keys in order of evaluation, cheapest first.
pub(crate) const KEYS: [&str; 16] = [
    "method",
    "tool",
    "phase",
    "direction",
    "backend",
    "principal",
    "session",
    "session_age",
    "revision",
    "subject",
    "params",
    "error",
    "result",
    "not",
    "or",
    "and",
];
const METHOD_TESTS: [&str; 5] = ["equals", "in", "starts_with", "ends_with", "matches"];
const VALUE_TESTS: [&str; 11] = [
    "exists",
    "is_null",
    "is_array",
    "equals",
    "in",
    "greater",
    "less",
    "starts_with",
    "ends_with",
    "contains",
    "matches",
];

/// Parses a condition tree. All keys of a table must hold.
pub(crate) fn condition(node: &RuleNode<'_>, depth: usize) -> Result<Condition, RuleError> {
    if depth > limits::DEPTH {
        let remedy = "split the tree into several rules";
        return Err(node.fail(RuleProblem::TooMany {
            what: "levels of `and`, `or` and `not`",
            limit: limits::DEPTH,
            remedy,
        }));
    }
    let table = node.table("a table of conditions", &KEYS)?;
    let mut all = Vec::new();
    for (key, node) in table.present(&KEYS) {
        match key {
            "and" => all.push(Condition::And(branches(&node, depth)?)),
            "or" => all.push(Condition::Or(branches(&node, depth)?)),
            "not" => all.push(Condition::Not(Box::new(condition(&node, depth + 1)?))),
            "method" => all.extend(method(&node)?),
            "params" => all.extend(values(&node, Root::Params)?),
            "result" => all.extend(values(&node, Root::Result)?),
            "error" => all.extend(error(&node)?),
            _ => all.push(Condition::leaf(property_test(key, &node)?)),
        }
    }
    Ok(if all.len() == 1 { all.remove(0) } else { Condition::And(all) })
}

fn branches(node: &RuleNode<'_>, depth: usize) -> Result<Vec<Condition>, RuleError> {
    let items = node.list("a list of conditions, such as [{ tool = \"a\" }, { tool = \"b\" }]")?;
    if items.is_empty() {
        return Err(node.expected("a list of at least one condition; the list is empty"));
    }
    items.iter().map(|item| condition(item, depth + 1)).collect()
}

/// Parses tests of a message's properties.
fn property_test(key: &str, node: &RuleNode<'_>) -> Result<Leaf, RuleError> {
    let names = || node.texts("a name, with `*` and `?` as wildcards, or a list of names", limits::NAME * 4);
    Ok(match key {
        "tool" => Leaf::Tool(Subjects::new(&names()?)),
        "subject" => Leaf::Subject(Subjects::new(&names()?)),
        "backend" => Leaf::Backend(Globs::new(&names()?)),
        "principal" => Leaf::Principal(Globs::new(&names()?)),
        "session" => Leaf::Session(Globs::new(&names()?)),
        "revision" => {
            let list = node.texts("a revision such as \"2025-06-18\", or a list of them", 32)?;
            Leaf::Revision(list.into_iter().map(Box::from).collect())
        }
        "session_age" => {
            let table = node.table("a table such as { greater = \"10m\" }", &["greater"])?;
            Leaf::SessionAge(table.need("greater")?.duration(limits::SPAN)?)
        }
        "direction" => Leaf::Direction(match node.text(DIRECTIONS, 32)? {
            "from_client" => Phases::REQUEST.or(Phases::FROM_CLIENT),
            "from_backend" => Phases::RESPONSE.or(Phases::FROM_BACKEND),
            _ => return Err(node.expected(DIRECTIONS)),
        }),
        _ => Leaf::Phase(phase(node)?),
    })
}

const DIRECTIONS: &str = "\"from_client\" or \"from_backend\"";
const PHASES: &str = "\"request\", \"response\", \"notification\", \"question\", \"answer\", \"gateway_request\" or \"gateway_response\", or a list of them";

fn phase(node: &RuleNode<'_>) -> Result<Phases, RuleError> {
    node.texts(PHASES, 32)?.into_iter().try_fold(Phases::NONE, |phases, word| {
        Ok(phases.or(match word {
            "request" => Phases::REQUEST,
            "response" => Phases::RESPONSE,
            "notification" => Phases::NOTIFICATIONS,
            "question" => Phases::QUESTION,
            "answer" => Phases::ANSWER,
            "gateway_request" => Phases::TO_GATEWAY,
            "gateway_response" => Phases::FROM_GATEWAY,
            _ => return Err(node.expected(PHASES)),
        }))
    })
}

fn method(node: &RuleNode<'_>) -> Result<Vec<Condition>, RuleError> {
    let expected = "a method such as \"tools/call\", or a table of tests";
    if !node.is_table() {
        let one = node.texts(expected, limits::NAME)?;
        return Ok(vec![leaf(Leaf::Method(MethodTest::In(one.into_iter().map(Box::from).collect())))]);
    }
    let table = node.table(expected, &METHOD_TESTS)?;
    let given = table.present(&METHOD_TESTS);
    if given.is_empty() {
        return Err(node.expected(expected));
    }
    let test = |(key, node): (&str, RuleNode<'_>)| -> Result<Condition, RuleError> {
        Ok(leaf(Leaf::Method(match key {
            "equals" => MethodTest::In(Box::new([node.text("a method", limits::NAME)?.into()])),
            "in" => {
                let list = node.list("a list of methods")?;
                if list.is_empty() {
                    return Err(node.expected("a list of at least one method; the list is empty"));
                }
                let methods = list.iter().map(|one| Ok(one.text("a method", limits::NAME)?.into()));
                MethodTest::In(methods.collect::<Result<_, RuleError>>()?)
            }
            "starts_with" => MethodTest::StartsWith(node.text("a text", limits::NAME)?.into()),
            "ends_with" => MethodTest::EndsWith(node.text("a text", limits::NAME)?.into()),
            _ => MethodTest::Matches(regex(&node)?),
        })))
    };
    given.into_iter().map(test).collect()
}

/// Parses tests of values by pointer: `"/params/arguments/path" = { starts_with = "/etc" }`. Also accepts pointers
/// relative to the params or the result, which cause a warning.
fn values(node: &RuleNode<'_>, root: Root) -> Result<Vec<Condition>, RuleError> {
    let expected = format!("a table such as {{ \"{}\" = {{ starts_with = \"/etc\" }} }}", example(root));
    let entries = node.open_table(&expected)?;
    if entries.is_empty() {
        return Err(node.expected(&expected));
    }
    let mut all = Vec::new();
    for (name, entry) in entries {
        let whole = rooted(name).filter(|(own, _)| *own == root).map(|(_, pointer)| pointer);
        let inside = whole.is_none();
        let pointer = whole.or_else(|| Pointer::parse(name)).ok_or_else(|| {
            let (found, example) = (crate::error::shown(name), example(root));
            let expected = format!("a JSON pointer, such as \"{example}\", of at most {} parts", limits::SEGMENTS);
            entry.fail(RuleProblem::Expected { expected, found })
        })?;
        for test in value_tests(&entry)? {
            all.push(leaf(Leaf::Value { root, pointer: pointer.clone(), inside, slot: 0, test }));
        }
    }
    Ok(all)
}

fn example(root: Root) -> &'static str {
    if root == Root::Result { "/result/content/0/text" } else { "/params/arguments/path" }
}

fn value_tests(node: &RuleNode<'_>) -> Result<Vec<ValueTest>, RuleError> {
    if !node.is_table() {
        return Ok(vec![ValueTest::Equals(node.json()?)]);
    }
    let table = node.table("a value, or a table of tests", &VALUE_TESTS)?;
    let given = table.present(&VALUE_TESTS);
    if given.is_empty() {
        return Err(node.expected("a value, or a table of tests such as { exists = true }; the table is empty"));
    }
    let test = |(key, node): (&str, RuleNode<'_>)| -> Result<ValueTest, RuleError> {
        Ok(match key {
            "exists" => ValueTest::Exists(node.flag()?),
            "is_null" => ValueTest::IsNull(node.flag()?),
            "is_array" => ValueTest::IsArray(node.flag()?),
            "equals" => ValueTest::Equals(node.json()?),
            "in" => {
                let list = node.list("a list of values")?;
                ValueTest::In(list.iter().map(RuleNode::json).collect::<Result<_, _>>()?)
            }
            "greater" => ValueTest::Greater(node.number("a number")?),
            "less" => ValueTest::Less(node.number("a number")?),
            "starts_with" => ValueTest::StartsWith(node.text("a text", limits::TEXT)?.into()),
            "ends_with" => ValueTest::EndsWith(node.text("a text", limits::TEXT)?.into()),
            "contains" => ValueTest::Contains(node.json()?),
            _ => ValueTest::Matches(regex(&node)?),
        })
    };
    given.into_iter().map(test).collect()
}

fn error(node: &RuleNode<'_>) -> Result<Vec<Condition>, RuleError> {
    let keys = ["code", "contains", "matches"];
    let expected = "a table such as { code = -32602, contains = \"timeout\" }";
    let table = node.table(expected, &keys)?;
    let given = table.present(&keys);
    if given.is_empty() {
        return Err(node.expected(expected));
    }
    let test = |(key, node): (&str, RuleNode<'_>)| -> Result<Condition, RuleError> {
        Ok(leaf(match key {
            "code" => {
                let items = if node.is_list() { node.list("a list of codes")? } else { vec![node] };
                let codes = items.iter().map(|item| item.integer("a whole number", i64::MIN..=i64::MAX));
                Leaf::ErrorCode(codes.collect::<Result<_, _>>()?)
            }
            "contains" => Leaf::ErrorContains(node.text("a text", limits::TEXT)?.into()),
            _ => Leaf::ErrorMatches(regex(&node)?),
        }))
    };
    given.into_iter().map(test).collect()
}

fn regex(node: &RuleNode<'_>) -> Result<Regex, RuleError> {
    let pattern = node.text("a regular expression", limits::PATTERN)?;
    let built = RegexBuilder::new(pattern).size_limit(limits::COMPILED).dfa_size_limit(limits::COMPILED).build();
    built.map_err(|error| {
        let words = match error {
            regex::Error::CompiledTooBig(_) => "too large; shorten it".to_owned(),
            other => other.to_string().lines().last().unwrap_or("cannot be parsed").trim().to_owned(),
        };
        node.fail(RuleProblem::Regex(words))
    })
}

fn leaf(leaf: Leaf) -> Condition {
    Condition::leaf(leaf)
}
