//! Templates for texts and JSON values. `{{/params/arguments/city}}` inserts a value of the message, `${tool}` one of
//! its properties.

use crate::error::{RuleError, RuleProblem};
use crate::facts::{MessageView, Root};
use crate::limits;
use crate::node::RuleNode;
use crate::pointer::Pointer;
use serde_json::Value as Json;
use signalbox_wire::closest::closest;
use signalbox_wire::json;
use std::borrow::Cow;

/// Replacement of a value that is withheld.
const WITHHELD: &str = "[redacted]";

/// Placeholder in a template.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Hole {
    Value(Root, Pointer),
    Name(Name),
}

/// Named property of a message.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Name {
    Session,
    Tool,
    Principal,
    Method,
    Backend,
    Revision,
    Phase,
    Rule,
    UnixMs,
}

const NAMES: [(&str, Name); 11] = [
    ("session", Name::Session),
    ("session_id", Name::Session),
    ("tool", Name::Tool),
    ("subject", Name::Tool),
    ("principal", Name::Principal),
    ("method", Name::Method),
    ("backend", Name::Backend),
    ("revision", Name::Revision),
    ("phase", Name::Phase),
    ("rule", Name::Rule),
    ("unix_ms", Name::UnixMs),
];

#[derive(Clone, PartialEq, Debug)]
enum Piece {
    Literal(Box<str>),
    Hole(Hole),
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Template {
    pieces: Box<[Piece]>,
}

/// JSON value with placeholders. A text that consists of one placeholder becomes the value itself, of any type.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct JsonTemplate {
    parts: Box<[Part]>,
}

#[derive(Clone, PartialEq, Debug)]
enum Part {
    Literal(Box<[u8]>),
    /// Placeholder for a whole value.
    Value(Hole),
    /// Placeholder within a text.
    Text(Hole),
}

/// Values for the placeholders.
pub(crate) struct Filling<'a, 'v> {
    pub view: &'a MessageView<'v>,
    /// True if values of the message are withheld.
    pub withheld: bool,
    pub rule: &'a str,
    pub unix_ms: &'a dyn Fn() -> u64,
}

impl Template {
    pub fn parse(node: &RuleNode<'_>, text: &str) -> Result<Self, RuleError> {
        Ok(Self { pieces: pieces(node, text)?.into() })
    }

    pub fn render(&self, filling: &Filling<'_, '_>, longest: usize) -> String {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => out.push_str(text),
                Piece::Hole(hole) => out.push_str(&filling.text(hole)),
            }
            if out.len() > longest {
                let end = (0..=longest).rev().find(|at| out.is_char_boundary(*at)).unwrap_or(0);
                out.truncate(end);
                break;
            }
        }
        out
    }

    /// Renders the text as a key. Delimits inserted values, so that different values never yield the same key, and uses
    /// the canonical name of the subject, regardless of the name that the client used.
    pub fn render_key(&self, filling: &Filling<'_, '_>, longest: usize) -> String {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => out.push_str(text),
                Piece::Hole(hole) => {
                    let token = filling.key(hole);
                    out.push_str(&format!("<{}:{token}>", token.len()));
                }
            }
            if out.len() > longest {
                break;
            }
        }
        out
    }

    pub fn holes(&self) -> impl Iterator<Item = &Hole> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Hole(hole) => Some(hole),
            Piece::Literal(_) => None,
        })
    }
}

impl JsonTemplate {
    pub fn of(node: &RuleNode<'_>) -> Result<Self, RuleError> {
        Self::compile(node, &node.json()?)
    }

    pub fn compile(node: &RuleNode<'_>, value: &Json) -> Result<Self, RuleError> {
        let mut writer = Writer { node, parts: vec![], literal: vec![] };
        writer.value(value)?;
        writer.flush();
        Ok(Self { parts: writer.parts.into() })
    }

    /// Renders the value. Returns `None` if it would become too large.
    pub fn render(&self, filling: &Filling<'_, '_>) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        for part in &self.parts {
            match part {
                Part::Literal(bytes) => out.extend_from_slice(bytes),
                Part::Value(hole) => filling.value(hole, &mut out),
                Part::Text(hole) => {
                    let quoted = json::quote(&filling.text(hole));
                    out.extend_from_slice(&quoted.as_bytes()[1..quoted.len() - 1]);
                }
            }
            if out.len() > limits::RENDERED {
                return None;
            }
        }
        Some(out)
    }

    pub fn holes(&self) -> impl Iterator<Item = &Hole> {
        self.parts.iter().filter_map(|part| match part {
            Part::Literal(_) => None,
            Part::Value(hole) | Part::Text(hole) => Some(hole),
        })
    }
}

impl Filling<'_, '_> {
    fn text(&self, hole: &Hole) -> Cow<'_, str> {
        match hole {
            Hole::Name(name) => self.name(*name),
            Hole::Value(..) if self.withheld => Cow::Borrowed(WITHHELD),
            Hole::Value(root, pointer) => match self.view.seek(*root, pointer) {
                None => Cow::Borrowed(""),
                Some(token) => json::string(token).unwrap_or_else(|| String::from_utf8_lossy(token)),
            },
        }
    }

    /// Returns the value of a placeholder in a key. Texts keep their quotes, so that they differ from numbers.
    fn key(&self, hole: &Hole) -> Cow<'_, str> {
        match hole {
            Hole::Name(Name::Tool) => self.view.names().map_or(Cow::Borrowed(""), |names| names.canonical().into()),
            Hole::Name(name) => self.name(*name),
            Hole::Value(root, pointer) => {
                self.view.seek(*root, pointer).map_or(Cow::Borrowed(""), String::from_utf8_lossy)
            }
        }
    }

    fn value(&self, hole: &Hole, out: &mut Vec<u8>) {
        match hole {
            Hole::Name(Name::UnixMs) => out.extend_from_slice((self.unix_ms)().to_string().as_bytes()),
            Hole::Name(name) => json::write_quoted(out, &self.name(*name)),
            Hole::Value(..) if self.withheld => json::write_quoted(out, WITHHELD),
            Hole::Value(root, pointer) => out.extend_from_slice(self.view.seek(*root, pointer).unwrap_or(b"null")),
        }
    }

    fn name(&self, name: Name) -> Cow<'_, str> {
        let facts = self.view.facts;
        let known = match name {
            Name::Session => facts.session,
            Name::Tool => self.view.subject(),
            Name::Principal => Some(facts.principal),
            Name::Method => self.view.method(),
            Name::Backend => facts.backend,
            Name::Revision => facts.revision,
            Name::Phase => Some(facts.phase.word()),
            Name::Rule => Some(self.rule),
            Name::UnixMs => return Cow::Owned((self.unix_ms)().to_string()),
        };
        Cow::Borrowed(known.unwrap_or(""))
    }
}

struct Writer<'a> {
    node: &'a RuleNode<'a>,
    parts: Vec<Part>,
    literal: Vec<u8>,
}

impl Writer<'_> {
    fn value(&mut self, value: &Json) -> Result<(), RuleError> {
        match value {
            Json::String(text) => self.text(text)?,
            Json::Array(items) => {
                self.literal.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.literal.push(b',');
                    }
                    self.value(item)?;
                }
                self.literal.push(b']');
            }
            Json::Object(members) => {
                self.literal.push(b'{');
                for (index, (key, value)) in members.iter().enumerate() {
                    if index > 0 {
                        self.literal.push(b',');
                    }
                    json::write_quoted(&mut self.literal, key);
                    self.literal.push(b':');
                    self.value(value)?;
                }
                self.literal.push(b'}');
            }
            plain => self.literal.extend_from_slice(plain.to_string().as_bytes()),
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), RuleError> {
        let mut pieces = pieces(self.node, text)?;
        if let [Piece::Hole(_)] = pieces.as_slice() {
            self.flush();
            if let Some(Piece::Hole(hole)) = pieces.pop() {
                self.parts.push(Part::Value(hole));
            }
            return Ok(());
        }
        self.literal.push(b'"');
        for piece in pieces {
            match piece {
                Piece::Literal(text) => {
                    let quoted = json::quote(&text);
                    self.literal.extend_from_slice(&quoted.as_bytes()[1..quoted.len() - 1]);
                }
                Piece::Hole(hole) => {
                    self.flush();
                    self.parts.push(Part::Text(hole));
                }
            }
        }
        self.literal.push(b'"');
        Ok(())
    }

    fn flush(&mut self) {
        if !self.literal.is_empty() {
            self.parts.push(Part::Literal(std::mem::take(&mut self.literal).into()));
        }
    }
}

fn pieces(node: &RuleNode<'_>, text: &str) -> Result<Vec<Piece>, RuleError> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '$']) {
        literal.push_str(&rest[..at]);
        rest = &rest[at..];
        let (hole, used) = if let Some(after) = rest.strip_prefix("$${") {
            literal.push_str("${");
            rest = after;
            continue;
        } else if let Some(inner) = rest.strip_prefix("${").and_then(|after| after.split('}').next()) {
            (name(node, inner)?, inner.len() + 3)
        } else if let Some(inner) = rest.strip_prefix("{{/").and_then(|after| Some(after.split_once("}}")?.0)) {
            (value(node, inner)?, inner.len() + 5)
        } else {
            literal.push_str(&rest[..1]);
            rest = &rest[1..];
            continue;
        };
        if !literal.is_empty() {
            pieces.push(Piece::Literal(std::mem::take(&mut literal).into()));
        }
        pieces.push(Piece::Hole(hole));
        rest = rest.get(used..).unwrap_or("");
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal.into()));
    }
    Ok(pieces)
}

fn name(node: &RuleNode<'_>, name: &str) -> Result<Hole, RuleError> {
    if let Some((_, known)) = NAMES.iter().find(|(known, _)| *known == name) {
        return Ok(Hole::Name(*known));
    }
    let known: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
    let suggestion = closest(name, &known);
    let name = name.chars().take(40).collect();
    Err(node.fail(RuleProblem::UnknownName { name, suggestion, known }))
}

/// Parses a pointer placeholder. `inner` lacks the first slash.
fn value(node: &RuleNode<'_>, inner: &str) -> Result<Hole, RuleError> {
    rooted(&format!("/{inner}"))
        .map(|(root, pointer)| Hole::Value(root, pointer))
        .ok_or_else(|| node.expected("`{{/params/…}}`, `{{/result/…}}` or `{{/error/…}}` in the text"))
}

/// Parses a pointer that starts with the name of a message part.
pub(crate) fn rooted(text: &str) -> Option<(Root, Pointer)> {
    [Root::Params, Root::Result, Root::Error].into_iter().find_map(|root| {
        let rest = text.strip_prefix('/')?.strip_prefix(root.word())?;
        Some((root, Pointer::parse(rest)?))
    })
}
