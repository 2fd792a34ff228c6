//! Set of all rules, in evaluation order.

use crate::action::Action;
use crate::candidate::RuleCandidate;
use crate::condition::Leaf;
use crate::error::{RuleError, RuleProblem, RuleWarning};
use crate::index::Index;
use crate::limits;
use crate::names::KnownNames;
use crate::node::{RuleNode, Source};
use crate::outcomes::Outcomes;
use crate::outside::{Files, NoFiles};
use crate::phases::Phases;
use crate::reach::Methods;
use crate::rule::Rule;
use signalbox_engine::chain::Phase;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;
use toml::de::DeTable;

/// Validated set of rules in evaluation order: by priority, highest first, then by id.
#[derive(Clone, Debug)]
pub struct RuleSet {
    rules: Vec<Rule>,
    index: Index,
    version: Arc<str>,
    /// Number of distinct pointers that the conditions follow.
    slots: usize,
    /// Methods whose requests must be stored until their answer.
    remembers: Methods,
    /// Phases that a rule evaluates or waits for.
    phases: Phases,
}

/// Description of a rule for listings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleRow {
    pub id: String,
    pub name: String,
    pub enabled: bool,
    pub priority: i32,
    /// Messages that it evaluates: `requests`, `answers`, …
    pub phases: String,
    /// Methods that it can match. Empty for any.
    pub methods: Vec<String>,
    pub when: String,
    pub then: Vec<String>,
    pub file: String,
    pub line: usize,
}

/// Evaluation of one rule, reconstructed from recorded outcomes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleTrace {
    pub rule: Arc<str>,
    /// Set if the conditions matched.
    pub matched: bool,
    /// Evaluated conditions as text, each with its outcome.
    pub conditions: Vec<(Arc<str>, bool)>,
}

impl Default for RuleSet {
    fn default() -> Self {
        Self::of(vec![])
    }
}

impl RuleSet {
    /// Parses a file of rules. `file` is the name for error messages.
    ///
    /// # Errors
    /// The first problem in each rule, with its position.
    pub fn parse(file: &str, text: &str) -> Result<Self, RuleError> {
        Self::read(Source { file, text, files: &NoFiles }, true)
    }

    /// Parses a file of rules and the files that it refers to.
    ///
    /// # Errors
    /// The first problem in each rule, with its position.
    pub fn parse_beside(file: &str, text: &str, files: &dyn Files) -> Result<Self, RuleError> {
        Self::read(Source { file, text, files }, true)
    }

    /// Parses only the `rules` of a file with other contents, and the files that they refer to.
    ///
    /// # Errors
    /// The first problem in each rule, with its position.
    pub fn parse_within(file: &str, text: &str, files: &dyn Files) -> Result<Self, RuleError> {
        Self::read(Source { file, text, files }, false)
    }

    fn read(source: Source<'_>, alone: bool) -> Result<Self, RuleError> {
        let text = source.text;
        let fail = |at, problem| RuleError::new(source.place(at, ""), problem);
        if text.len() > limits::FILE {
            return Err(fail(0, RuleProblem::FileTooLarge { limit: limits::FILE }));
        }
        let table = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            fail(at, RuleProblem::Toml(error.message().lines().next().unwrap_or_default().to_owned()))
        })?;
        let root = toml::Spanned::new(table.span(), toml::de::DeValue::Table(table.into_inner()));
        let root = RuleNode::new(source, String::new(), &root);
        let rules = match alone {
            true => root.table("a table", &["rules"])?.get("rules"),
            false => root.member("rules"),
        };
        let Some(rules) = rules else { return Ok(Self::default()) };
        let items = rules.long_list("a list of rules, each under `[[rules]]`")?;
        if items.len() > limits::RULES {
            return Err(rules.fail(too_many()));
        }
        let mut set = Vec::new();
        let mut faults = Vec::new();
        for item in &items {
            match Rule::read(item) {
                Ok(rule) => set.push(rule),
                Err(fault) if faults.len() < limits::FAULTS => faults.push(fault),
                Err(_) => break,
            }
            check_patterns(&set)?;
            check_files(&set)?;
        }
        if let Some(faults) = RuleError::of(faults) {
            return Err(faults);
        }
        check_ids(&set)?;
        Ok(Self::of(set))
    }

    /// Merges several sets, such as those of the configuration and of separate files.
    ///
    /// # Errors
    /// If two rules share an id, or there are too many.
    pub fn merge(sets: Vec<Self>) -> Result<Self, RuleError> {
        let rules: Vec<Rule> = sets.into_iter().flat_map(|set| set.rules).collect();
        check_ids(&rules)?;
        check_patterns(&rules)?;
        check_files(&rules)?;
        match rules.get(limits::RULES) {
            Some(rule) => Err(RuleError::new(rule.place.clone(), too_many())),
            None => Ok(Self::of(rules)),
        }
    }

    fn of(mut rules: Vec<Rule>) -> Self {
        rules.sort_by(|a, b| b.priority.cmp(&a.priority).then_with(|| a.id.cmp(&b.id)));
        let mut slots = HashMap::new();
        for rule in &mut rules {
            rule.when.each_leaf(&mut |leaf| {
                if let Leaf::Value { root, pointer, slot, .. } = leaf {
                    let next = slots.len();
                    *slot = *slots.entry((*root, pointer.clone())).or_insert(next);
                }
            });
        }
        let reading = rules.iter().filter(|rule| rule.enabled && rule.reads_request);
        let remembers = reading.fold(Methods::Only(BTreeSet::new()), |all, rule| all.or(rule.methods.clone()));
        let version = version(&rules).into();
        let live = rules.iter().filter(|rule| rule.enabled);
        let phases = live.fold(Phases::NONE, |all, rule| all.or(rule.phases).or(awaits(rule)));
        Self { index: Index::new(&rules), version, slots: slots.len(), remembers, phases, rules }
    }

    /// Returns the number of rules, including disabled ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Returns `true` if there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns a short hash of the rules, independent of the order of files and of the machine.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns all rules as a JSON list in evaluation order, which [`Self::version`] hashes.
    #[must_use]
    pub fn text(&self) -> String {
        let rules: Vec<&str> = self.rules.iter().map(|rule| &*rule.canonical).collect();
        format!("[{}]", rules.join(","))
    }

    /// Describes each rule, in evaluation order.
    #[must_use]
    pub fn describe(&self) -> Vec<RuleRow> {
        self.rules.iter().map(row).collect()
    }

    /// Returns a warning for each enabled rule that names an unknown backend or tool.
    #[must_use]
    pub fn unknown_names(&self, known: &KnownNames) -> Vec<RuleWarning> {
        crate::names::unknown(&self.rules, known)
    }

    /// Returns a warning for each rule that can never match or is never reached.
    #[must_use]
    pub fn warnings(&self) -> Vec<RuleWarning> {
        crate::warnings::warnings(&self.rules)
    }

    /// Reconstructs which rules were evaluated and how each condition turned out, from the recorded outcomes of a
    /// message. `after` is the rule that held the message before. Returns `None` if the text does not belong to this
    /// version of the rules, this phase and this method.
    #[must_use]
    pub fn retrace(
        &self,
        phase: Phase,
        method: Option<&str>,
        after: Option<&str>,
        outcomes: &str,
    ) -> Option<Vec<RuleTrace>> {
        let noted = Outcomes::parse(outcomes, limits::RULES * limits::CONDITIONS)?;
        let mut bits = noted.from(0).peekable();
        let mut out = Vec::new();
        let rules = self.candidates(phase, method).iter().filter_map(|one| self.rule(one.rule));
        let passed = after.map_or(Some(0), |id| self.rules.iter().position(|rule| *rule.id == *id).map(|at| at + 1))?;
        let first = self.candidates(phase, method).partition_point(|one| usize::from(one.rule) < passed);
        for rule in rules.skip(first) {
            // A rule without conditions has no recorded outcome.
            if bits.peek().is_none() && !rule.when.is_empty() {
                break;
            }
            let mut conditions = Vec::new();
            let matched = rule.when.retrace(&mut bits, &mut conditions)?;
            out.push(RuleTrace { rule: Arc::clone(&rule.id), matched, conditions });
        }
        bits.next().is_none().then_some(out)
    }

    /// Returns `true` if a rule may match messages of this phase and method.
    #[must_use]
    pub fn judges(&self, phase: Phase, method: Option<&str>) -> bool {
        !self.candidates(phase, method).is_empty()
    }

    /// Returns `true` if a rule has to see messages of this phase.
    pub(crate) fn looks_at(&self, phase: Phase) -> bool {
        self.phases.has(phase)
    }

    pub(crate) fn candidates(&self, phase: Phase, method: Option<&str>) -> &[RuleCandidate] {
        self.index.list(phase, method)
    }

    pub(crate) fn rule(&self, at: u16) -> Option<&Rule> {
        self.rules.get(usize::from(at))
    }

    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    pub(crate) fn remembers(&self, method: &str) -> bool {
        self.remembers.has(method)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &Arc<str>> {
        self.rules.iter().map(|rule| &rule.id)
    }
}

/// Returns further phases that a rule has to see. Caches are filled from answers, and a rule that compares an answer
/// with its request stores the request when it passes.
fn awaits(rule: &Rule) -> Phases {
    let caches = rule.then.iter().any(|action| matches!(action, Action::Cache(_)));
    let answers = if caches { Phases::RESPONSE } else { Phases::NONE };
    if rule.reads_request { answers.or(Phases::REQUEST) } else { answers }
}

fn too_many() -> RuleProblem {
    RuleProblem::TooMany { what: "rules", limit: limits::RULES, remedy: "one rule may name several tools or methods" }
}

/// Regular expressions take more memory than anything else in a rule.
fn check_patterns(rules: &[Rule]) -> Result<(), RuleError> {
    let many = rules.iter().map(|rule| rule.patterns).sum::<usize>() > limits::PATTERNS;
    match rules.last() {
        Some(rule) if many => {
            let (what, limit) = ("regular expressions", limits::PATTERNS);
            let remedy = "use `in`, `starts_with` or `contains`, or join some with `|`";
            Err(RuleError::new(rule.place.clone(), RuleProblem::TooMany { what, limit, remedy }))
        }
        _ => Ok(()),
    }
}

fn check_files(rules: &[Rule]) -> Result<(), RuleError> {
    let bytes = rules.iter().map(|rule| rule.read_bytes).sum::<usize>();
    match rules.last() {
        Some(rule) if bytes > limits::MOCK_FILES => {
            let (what, limit) = ("bytes in mock files", limits::MOCK_FILES);
            let remedy = "shorten them, or use fewer";
            Err(RuleError::new(rule.place.clone(), RuleProblem::TooMany { what, limit, remedy }))
        }
        _ => Ok(()),
    }
}

fn check_ids(rules: &[Rule]) -> Result<(), RuleError> {
    let mut seen: HashMap<&str, &Rule> = HashMap::new();
    for rule in rules {
        if let Some(first) = seen.insert(&rule.id, rule) {
            let line = first.place.position.map_or(0, |(line, _)| line);
            let first = format!("{}, line {line}", first.place.file);
            let problem = RuleProblem::DuplicateId { id: rule.id.to_string(), first };
            return Err(RuleError::new(rule.place.clone(), problem));
        }
    }
    Ok(())
}

/// Computes an FNV-1a hash. It distinguishes versions, but does not resist forgery.
fn version(rules: &[Rule]) -> String {
    let mut hash = FNV_START;
    for rule in rules {
        hash = fnv(hash, rule.canonical.as_bytes());
        hash = fnv(hash, &[0]);
    }
    let mut text = String::with_capacity(16);
    let _ = write!(text, "{hash:016x}");
    text
}

pub(crate) const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

pub(crate) fn fnv(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

fn row(rule: &Rule) -> RuleRow {
    RuleRow {
        id: rule.id.to_string(),
        name: rule.name.to_string(),
        enabled: rule.enabled,
        priority: rule.priority,
        phases: rule.phases.words(),
        methods: match &rule.methods {
            Methods::Any => vec![],
            Methods::Only(some) => some.iter().map(ToString::to_string).collect(),
        },
        when: rule.when.to_string(),
        then: rule.then.iter().map(ToString::to_string).collect(),
        file: rule.place.file.clone(),
        line: rule.place.position.map_or(0, |(line, _)| line),
    }
}
