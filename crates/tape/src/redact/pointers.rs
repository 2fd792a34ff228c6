//! Recognizes secrets by their position in the message.

use super::action::Action;
use super::settings::{BadRedaction, PathRule};
use crate::glob::Glob;
use signalbox_engine::dialect::{INVOKE, VALIDATE};
use signalbox_wire::method::TOOLS_CALL;

/// Maximum number of path rules. A bit set tracks the possible ones.
const MAX_RULES: usize = 64;
/// Members that MCP and the governed dialect spell differently, below their root. A path covers both.
const SPELLINGS: [(&str, [&str; 2]); 2] =
    [("params", ["arguments", "parameters"]), ("result", ["structuredContent", "data"])];
/// Methods that call a tool or describe the call. A rule for one holds for all.
const CALLS: [&str; 3] = [TOOLS_CALL, INVOKE, VALIDATE];

#[derive(Debug)]
pub(crate) struct Pointers(Vec<Pointer>);

#[derive(Debug)]
struct Pointer {
    method: Option<Glob>,
    segments: Vec<Segment>,
    action: Action,
}

#[derive(Debug)]
enum Segment {
    Any,
    Name(String),
    /// Member with a name in MCP and another in the governed dialect.
    Spelled([&'static str; 2]),
}

/// Rules that members or elements further below may still match.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Possible(u64);

impl Possible {
    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl Pointers {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn new(rules: &[PathRule]) -> Result<Self, BadRedaction> {
        if rules.len() > MAX_RULES {
            return Err(BadRedaction::TooMany { known: rules.len(), most: MAX_RULES });
        }
        rules.iter().map(pointer).collect::<Result<_, _>>().map(Self)
    }

    /// Returns true if a rule is restricted to some methods.
    pub(crate) fn ask_for_method(&self) -> bool {
        self.0.iter().any(|pointer| pointer.method.is_some())
    }

    /// Returns the rules for messages of this method.
    pub(crate) fn start(&self, method: Option<&str>) -> Possible {
        let fits = |pointer: &Pointer| match &pointer.method {
            None => true,
            Some(glob) => method.is_some_and(|method| match CALLS.contains(&method) {
                true => CALLS.iter().any(|call| glob.matches(call)),
                false => glob.matches(method),
            }),
        };
        let bits = self.0.iter().enumerate().filter(|(_, pointer)| fits(pointer));
        Possible(bits.fold(0, |bits, (index, _)| bits | 1 << index))
    }

    /// Returns the rules still possible below the member or element `name` at this depth, and the action for that
    /// member itself.
    pub(crate) fn step(&self, possible: Possible, depth: usize, name: &str) -> (Possible, Option<&Action>) {
        let (mut left, mut hit) = (Possible::default(), None);
        for (index, pointer) in self.0.iter().enumerate() {
            let fits = match pointer.segments.get(depth) {
                Some(Segment::Any) => true,
                Some(Segment::Name(wanted)) => wanted == name,
                Some(Segment::Spelled(wanted)) => wanted.contains(&name),
                None => false,
            };
            if possible.0 & 1 << index == 0 || !fits {
                continue;
            }
            if pointer.segments.len() == depth + 1 {
                hit = hit.or(Some(&pointer.action));
            } else {
                left.0 |= 1 << index;
            }
        }
        (left, hit)
    }
}

fn pointer(rule: &PathRule) -> Result<Pointer, BadRedaction> {
    let bad = || BadRedaction::Path(rule.path.clone());
    let path = rule.path.strip_prefix('/').ok_or_else(bad)?;
    let segments = path.split('/').map(|segment| match segment {
        "*" => Segment::Any,
        name => Segment::Name(name.replace("~1", "/").replace("~0", "~")),
    });
    Ok(Pointer {
        method: rule.method.as_deref().map(Glob::new),
        segments: in_every_spelling(segments.collect()),
        action: rule.action.clone(),
    })
}

fn in_every_spelling(mut segments: Vec<Segment>) -> Vec<Segment> {
    let [root, second, ..] = segments.as_mut_slice() else { return segments };
    let Segment::Name(name) = &*second else { return segments };
    let root = &*root;
    let is_root = |wanted: &str| matches!(root, Segment::Any) || matches!(root, Segment::Name(root) if root == wanted);
    let found = SPELLINGS.iter().find(|(root, names)| is_root(root) && names.contains(&name.as_str()));
    if let Some((_, names)) = found {
        *second = Segment::Spelled(*names);
    }
    segments
}
