//! One start tag of HTML: its name, its attributes and whether it hides or runs something.

use super::RemovalClass;
use super::link_target::{self, LinkUse};

/// Maximum length of a tag, in bytes. A longer one is text.
const MAX_TAG: usize = 8192;
/// Maximum number of attributes that are looked at.
const MAX_ATTRIBUTES: usize = 64;
/// Pixels beyond which a negative position is outside the window.
const OFF_SCREEN: f32 = -500.0;
/// Largest size of text, in pixels or points, that cannot be read.
const UNREADABLE: f32 = 1.0;
/// Smallest value of red, green and blue that is white to the eye.
const NEAR_WHITE: u8 = 0xf0;

/// Elements that load or run something.
const ACTIVE: &[&str] = &["script", "iframe", "frame", "object", "embed", "applet", "svg", "base"];

/// Elements that have no content.
const VOID: &[&str] =
    &["area", "base", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta", "source", "track", "wbr"];

/// Start tag of an element.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct HtmlTag<'a> {
    /// Name as it is written.
    pub(super) name: &'a str,
    pub(super) attributes: Vec<Attribute<'a>>,
    /// Number of bytes from `<` to `>`.
    pub(super) length: usize,
    /// True if the element has no content: `<br>`, `<x/>`.
    pub(super) empty: bool,
}

/// Attribute of a tag.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Attribute<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a str,
}

impl<'a> HtmlTag<'a> {
    /// Reads a start tag at the start of a text.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let bytes = text.as_bytes();
        let name_end = 1 + bytes.get(1..)?.iter().take(32).take_while(|byte| is_name(**byte)).count();
        let name = text.get(1..name_end)?;
        if bytes.first() != Some(&b'<') || !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return None;
        }
        let mut attributes = Vec::new();
        let mut at = name_end;
        let mut slash = false;
        loop {
            match bytes.get(at).filter(|_| at < MAX_TAG)? {
                b'>' => break,
                b'/' => slash = true,
                byte if byte.is_ascii_whitespace() => {}
                b'<' => return None,
                _ if attributes.len() < MAX_ATTRIBUTES => {
                    let (attribute, end) = read_attribute(text, at)?;
                    attributes.push(attribute);
                    (at, slash) = (end, false);
                    continue;
                }
                _ => return None,
            }
            at += 1;
        }
        let empty = slash || VOID.iter().any(|void| void.eq_ignore_ascii_case(name));
        Some(Self { name, attributes, length: at + 1, empty })
    }

    fn value(&self, name: &str) -> Option<&'a str> {
        let found = self.attributes.iter().find(|attribute| attribute.name.eq_ignore_ascii_case(name));
        found.map(|attribute| attribute.value)
    }

    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Returns true if the element loads or runs something.
    pub(super) fn is_active(&self) -> bool {
        // A name alone, as in `Vec<Object>` or "the <script> element", does nothing.
        let named = ACTIVE.iter().any(|name| self.is(name)) && !self.attributes.is_empty();
        let refresh =
            self.is("meta") && self.value("http-equiv").is_some_and(|value| value.eq_ignore_ascii_case("refresh"));
        named || refresh || self.attributes.iter().any(|attribute| is_handler(attribute))
    }

    /// Returns true if the element is active once it has content: `<script>…</script>`.
    pub(super) fn is_active_with_content(&self) -> bool {
        ["script", "svg", "iframe", "object"].iter().any(|name| self.is(name))
    }

    /// Returns true if a reader of the rendered page does not see the element.
    pub(super) fn is_hidden(&self) -> bool {
        if self.is("input") {
            return false;
        }
        let tiny = |name| self.value(name).is_some_and(|value| matches!(value.trim(), "0" | "1" | "0px" | "1px"));
        self.value("hidden").is_some_and(|value| !value.eq_ignore_ascii_case("until-found"))
            || self.value("style").is_some_and(hides)
            || self.is("font") && (self.value("color").is_some_and(is_white) || self.value("size") == Some("0"))
            || self.is("template")
            || self.is("noscript") && !self.empty
            || self.is("img") && tiny("width") && tiny("height")
    }

    /// Returns the class of an address in the tag that has to go.
    pub(super) fn target_class(&self) -> Option<RemovalClass> {
        let classes = self.attributes.iter().filter_map(|attribute| {
            let name = attribute.name.to_ascii_lowercase();
            let usage = match name.as_str() {
                "src" | "srcset" | "background" | "poster" => LinkUse::Image,
                "href" | "action" | "formaction" | "xlink:href" => LinkUse::Link,
                _ => return None,
            };
            link_target::class_of(attribute.value, usage)
        });
        classes.min()
    }
}

const fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b':' | b'_')
}

fn is_handler(attribute: &Attribute<'_>) -> bool {
    let name = attribute.name.as_bytes();
    let on = name.get(..2).is_some_and(|start| start.eq_ignore_ascii_case(b"on"));
    on && name.len() > 4 && name.iter().all(u8::is_ascii_alphabetic) && !attribute.value.is_empty()
}

/// Reads an attribute at `at`, and returns it with its end.
fn read_attribute(text: &str, at: usize) -> Option<(Attribute<'_>, usize)> {
    let bytes = text.as_bytes();
    let find = |from: usize, test: fn(u8) -> bool| {
        let window = bytes.get(from..(from + MAX_TAG).min(bytes.len()))?;
        window.iter().position(|byte| test(*byte)).map(|offset| from + offset)
    };
    let name_end = find(at + 1, |byte| byte.is_ascii_whitespace() || matches!(byte, b'=' | b'>' | b'/' | b'<'))?;
    let name = text.get(at..name_end)?;
    let equals = find(name_end, |byte| !byte.is_ascii_whitespace())?;
    if bytes.get(equals) != Some(&b'=') {
        return Some((Attribute { name, value: "" }, name_end));
    }
    let start = find(equals + 1, |byte| !byte.is_ascii_whitespace())?;
    match bytes.get(start)? {
        quote @ (b'"' | b'\'') => {
            let window = bytes.get(start + 1..(start + MAX_TAG).min(bytes.len()))?;
            let end = start + 1 + memchr::memchr(*quote, window)?;
            Some((Attribute { name, value: text.get(start + 1..end)? }, end + 1))
        }
        _ => {
            let end = find(start, |byte| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'<'))?;
            Some((Attribute { name, value: text.get(start..end)? }, end))
        }
    }
}

/// Returns true if a style makes its element invisible.
fn hides(style: &str) -> bool {
    let compact: String =
        style.chars().filter(|character| !character.is_whitespace()).collect::<String>().to_ascii_lowercase();
    let value = |name: &str| {
        let declarations = compact.split(';').filter_map(|declaration| declaration.split_once(':'));
        declarations
            .filter(|(found, _)| *found == name)
            .map(|(_, value)| value.trim_end_matches("!important"))
            .next_back()
    };
    let is = |name: &str, hidden: &str| value(name).is_some_and(|value| value.starts_with(hidden));
    let number = |name: &str| value(name).and_then(leading_number);
    let at_most = |name: &str, limit: f32| number(name).is_some_and(|number| number <= limit);
    let relative = value("font-size").is_some_and(|size| size.ends_with("em") || size.ends_with('%'));
    let background = value("background-color").or_else(|| value("background"));
    is("display", "none")
        || is("visibility", "hidden")
        || is("visibility", "collapse")
        || at_most("font-size", if relative { 0.05 } else { UNREADABLE })
        || at_most("opacity", 0.05)
        || at_most("left", OFF_SCREEN)
        || at_most("top", OFF_SCREEN)
        || at_most("right", OFF_SCREEN)
        || at_most("text-indent", OFF_SCREEN)
        || is("overflow", "hidden")
            && ["height", "width", "max-height", "max-width"].iter().any(|name| at_most(name, 1.0))
        || is("clip", "rect(0")
        || is("clip", "rect(1px,1px")
        || is("clip-path", "inset(100%")
        || is("clip-path", "inset(50%")
        || is("transform", "scale(0)")
        || is("color", "transparent")
        || value("color").is_some_and(is_white) && background.is_none_or(is_white)
}

/// Returns the number at the start of a value of CSS.
fn leading_number(value: &str) -> Option<f32> {
    let end = value.find(|character: char| !matches!(character, '0'..='9' | '.' | '-')).unwrap_or(value.len());
    value.get(..end)?.parse().ok()
}

fn is_white(colour: &str) -> bool {
    let colour = colour.trim().to_ascii_lowercase();
    if matches!(colour.as_str(), "white" | "snow" | "ivory" | "ghostwhite" | "floralwhite") {
        return true;
    }
    let parts: Option<Vec<u8>> = match (colour.strip_prefix('#'), colour.strip_prefix("rgb")) {
        (Some(digits), _) if digits.len() == 3 || digits.len() == 4 => digits
            .chars()
            .take(3)
            .map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit * 17).ok()))
            .collect(),
        (Some(digits), _) => crate::encoded_text::decode_hex(digits).map(|bytes| bytes.into_iter().take(3).collect()),
        (None, Some(list)) => {
            let numbers = list.trim_start_matches('a').trim_matches(['(', ')']).split(',').take(3);
            numbers.map(|number| number.trim().parse().ok()).collect()
        }
        _ => None,
    };
    parts.is_some_and(|parts| parts.len() == 3 && parts.iter().all(|part| *part >= NEAR_WHITE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_to_their_end() {
        let tag = HtmlTag::read("<a href = 'x>y' hidden data-b=c>text").unwrap();
        let pairs: Vec<(&str, &str)> =
            tag.attributes.iter().map(|attribute| (attribute.name, attribute.value)).collect();
        assert_eq!(pairs, [("href", "x>y"), ("hidden", ""), ("data-b", "c")]);
        assert_eq!((tag.name, tag.length, tag.empty), ("a", 32, false));
        assert!(HtmlTag::read("<br/>").unwrap().empty && HtmlTag::read("<img src=x>").unwrap().empty);
        for text in ["<", "< a>", "<a", "<a b='", "</a>", "<1>", "<a <b>"] {
            assert_eq!(HtmlTag::read(text), None, "{text}");
        }
    }

    #[test]
    fn styles_that_hide_are_told_from_others() {
        for style in [
            "display: none",
            "DISPLAY:NONE !important",
            "visibility:hidden",
            "font-size:0",
            "font-size:0px;color:red",
            "font-size: 1px",
            "opacity:0",
            "opacity: .01",
            "color:white",
            "color:#fff",
            "color: #FEFEFE",
            "position:absolute;left:-9999px",
            "color:rgb(255,255,255);background:#ffffff",
            "text-indent:-9999em",
            "height:0;overflow:hidden",
            "color:transparent",
            "clip:rect(0,0,0,0)",
        ] {
            assert!(hides(style), "{style}");
        }
        for style in [
            "display:block",
            "font-size:12px",
            "font-size:0.9em",
            "opacity:0.5",
            "color:white;background:#000",
            "color:#333",
            "margin-left:-10px",
            "left:-3px",
            "overflow:hidden;height:40px",
            "font-size:1em",
            "opacity:1",
        ] {
            assert!(!hides(style), "{style}");
        }
    }
}
