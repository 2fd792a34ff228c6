use crate::action::{Action, MockFile};
use crate::condition::Condition;
use crate::error::{RuleError, RulePlace, RuleProblem};
use crate::limits;
use crate::node::RuleNode;
use crate::phases::Phases;
use crate::reach::{Methods, reach, reads_request, unseen_question};
use crate::read_action::action;
use crate::read_condition::condition;
use signalbox_engine::chain::Ruling;
use std::sync::{Arc, OnceLock};

const KEYS: [&str; 6] = ["id", "name", "enabled", "priority", "when", "then"];

/// Validated rule with precomputed properties.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub id: Arc<str>,
    pub name: Arc<str>,
    pub enabled: bool,
    pub priority: i32,
    pub when: Condition,
    /// All conditions as text, each as met: the record for most messages that match.
    pub all_held: Arc<[(Arc<str>, bool)]>,
    /// Cached ruling for a match that depends on nothing but the conditions.
    pub usual: OnceLock<Arc<Ruling>>,
    pub then: Vec<Action>,
    pub phases: Phases,
    pub methods: Methods,
    /// Set if the rule evaluates answers and needs their requests.
    pub reads_request: bool,
    /// Number of regular expressions.
    pub patterns: usize,
    /// Size of the files it includes, in bytes.
    pub read_bytes: usize,
    pub place: RulePlace,
    /// Rule as JSON, the input of the set's version.
    pub canonical: String,
}

impl Rule {
    pub fn read(node: &RuleNode<'_>) -> Result<Self, RuleError> {
        let table = node.table("a rule", &KEYS)?;
        let id = id(&table.need("id")?)?;
        let name = match table.get("name") {
            Some(name) => name.text("a name", limits::NAME)?,
            None => id,
        };
        let enabled = table.get("enabled").map(|flag| flag.flag()).transpose()?.unwrap_or(true);
        let range = i64::from(i32::MIN)..=i64::from(i32::MAX);
        let priority = table.get("priority").map(|number| number.integer("a whole number of 32 bits", range));
        let when = match table.get("when") {
            Some(when) => condition(&when, 1)?,
            None => Condition::And(vec![]),
        };
        let patterns = count_patterns(node, &when)?;
        let then = actions(&table.need("then")?)?;
        let (phases, methods) = reach(&when, &then);
        if let Some(method) = unseen_question(&when, phases) {
            let place = table.get("when").unwrap_or_else(|| table.node().clone());
            return Err(place.fail(RuleProblem::UnseenQuestion { method }));
        }
        check_placement(&table.need("then")?, &then, phases)?;
        let canonical = canonical(node, &then)?;
        Ok(Self {
            id: id.into(),
            name: name.into(),
            enabled,
            priority: priority.transpose()?.and_then(|number| i32::try_from(number).ok()).unwrap_or(0),
            reads_request: phases.meets(Phases::RESPONSE) && reads_request(&when, &then),
            all_held: when.words().into_iter().map(|words| (words, true)).collect(),
            usual: OnceLock::new(),
            read_bytes: files(&then).map(|file| file.bytes).sum(),
            when,
            then,
            phases,
            methods,
            patterns,
            place: table.node().place(),
            canonical,
        })
    }
}

impl Rule {
    /// Returns `true` if a match lets the message skip the rules after it.
    pub fn permits(&self) -> bool {
        self.then.iter().any(|action| matches!(action, Action::Allow))
    }

    /// Returns `true` if a match does more than report the message.
    pub fn acts(&self) -> bool {
        let tells = |action: &Action| match action {
            Action::Log { .. } | Action::Count { .. } => true,
            Action::Webhook(hook) => !hook.wait,
            _ => false,
        };
        !self.then.iter().all(tells)
    }
}

fn files(then: &[Action]) -> impl Iterator<Item = &MockFile> {
    then.iter().filter_map(|action| match action {
        Action::Mock(_, file) => file.as_ref(),
        _ => None,
    })
}

/// Returns the rule as JSON, followed by digests of the files it includes.
fn canonical(node: &RuleNode<'_>, then: &[Action]) -> Result<String, RuleError> {
    let mut text = node.json_unbounded()?.to_string();
    for file in files(then) {
        text.push_str(&format!("\n{:016x}", file.digest));
    }
    Ok(text)
}

fn id<'a>(node: &RuleNode<'a>) -> Result<&'a str, RuleError> {
    let expected = "a short id of letters, digits, `_`, `.`, `:`, `/` and `-`";
    let id = node.text(expected, limits::NAME)?;
    let plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:/-".contains(&byte));
    if plain { Ok(id) } else { Err(node.expected(expected)) }
}

/// Returns the number of regular expressions. Fails if there are too many conditions.
fn count_patterns(node: &RuleNode<'_>, when: &Condition) -> Result<usize, RuleError> {
    let mut leaves = Vec::new();
    when.leaves(&mut leaves);
    if leaves.len() > limits::CONDITIONS {
        let remedy = "split it into several rules";
        return Err(node.fail(RuleProblem::TooMany { what: "conditions", limit: limits::CONDITIONS, remedy }));
    }
    Ok(leaves.iter().filter(|leaf| leaf.is_pattern()).count())
}

fn actions(node: &RuleNode<'_>) -> Result<Vec<Action>, RuleError> {
    // A single action needs no list.
    if !node.is_list() {
        return Ok(vec![action(node)?]);
    }
    let items = node.list("a list of actions")?;
    if items.is_empty() {
        return Err(node.expected("a list of at least one action; the list is empty"));
    }
    if items.len() > limits::ACTIONS {
        let remedy = "split it into several rules";
        return Err(node.fail(RuleProblem::TooMany { what: "actions", limit: limits::ACTIONS, remedy }));
    }
    items.iter().map(action).collect()
}

/// Rejects an action that could never run.
fn check_placement(node: &RuleNode<'_>, then: &[Action], phases: Phases) -> Result<(), RuleError> {
    let Some(action) = then.iter().find(|action| phases != Phases::NONE && !action.fits().meets(phases)) else {
        return Ok(());
    };
    let (action, fits, looks) = (action.word(), action.fits().words(), phases.words());
    let remedy = "set `phase` in `when`, or use a separate rule";
    Err(node.fail(RuleProblem::Misplaced { action, fits, looks, remedy }))
}
