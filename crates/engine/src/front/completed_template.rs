//! Completions of URI templates. Each proposed value expands to a URI that the caller may not be allowed to know.

use super::judging::Reads;
use crate::exchange::Exchange;
use signalbox_wire::{Edits, Envelope, completion_ref, json};

/// Maximum number of variables tried if the client names one that the template does not have.
const MAX_VARIABLES: usize = 32;
/// Maximum number of proposed values inspected. MCP allows a server 100.
const MAX_VALUES: usize = 1024;

/// Template that a completion is about, and the variable it completes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompletedTemplate {
    uri: Box<str>,
    variable: Box<str>,
    /// Values that the client has chosen for other variables.
    chosen: Vec<(Box<str>, Box<str>)>,
}

impl CompletedTemplate {
    /// Reads the `params` of a completion. Returns `None` if it is about a prompt.
    pub(super) fn read(params: &[u8], own_uri: &str) -> Option<Self> {
        let reference = json::member(params, "ref")?.of(params);
        if completion_ref::read(reference).ok()?.0 != completion_ref::ReferenceKind::Resource {
            return None;
        }
        let variable = json::path(params, &["argument", "name"]).and_then(|span| json::string(span.of(params)));
        let variable = variable.unwrap_or_default().into_owned().into();
        let context = json::path(params, &["context", "arguments"]).map(|span| span.of(params)).unwrap_or_default();
        let chosen = json::members(context).filter_map(|member| {
            let text = |span: signalbox_wire::Span| Some(Box::from(&*json::string(span.of(context))?));
            Some((text(member.key)?, text(member.value)?))
        });
        Some(Self { uri: own_uri.into(), variable, chosen: chosen.collect() })
    }

    /// Returns the URIs that a value may make. A server may take a variable that the template does not have for any of
    /// its variables. Returns `None` if there are too many.
    pub(super) fn expansions(&self, value: &str) -> Option<Vec<String>> {
        let expressions = self.uri.split('{').skip(1).filter_map(|tail| Some(tail.split_once('}')?.0));
        let mut variables: Vec<&str> = expressions.flat_map(|expression| names(operator(expression).1)).collect();
        match variables.iter().find(|name| **name == &*self.variable) {
            Some(variable) => variables = vec![*variable],
            None if variables.is_empty() => return Some(vec![self.expand("", value)]),
            None if variables.len() > MAX_VARIABLES => return None,
            None => {}
        }
        Some(variables.into_iter().map(|variable| self.expand(variable, value)).collect())
    }

    /// Expands the template with this value of the variable. Variables without a value are omitted, as in RFC 6570.
    fn expand(&self, variable: &str, value: &str) -> String {
        let mut uri = String::with_capacity(self.uri.len() + value.len());
        let mut rest = &*self.uri;
        while let Some((before, (expression, after))) =
            rest.split_once('{').and_then(|(before, tail)| Some((before, tail.split_once('}')?)))
        {
            uri.push_str(before);
            rest = after;
            self.expand_expression(expression, variable, value, &mut uri);
        }
        uri + rest
    }

    fn expand_expression(&self, expression: &str, variable: &str, value: &str, uri: &mut String) {
        let (operator, list) = operator(expression);
        let mut is_first = true;
        for name in names(list) {
            let chosen = || self.chosen.iter().find(|(known, _)| **known == *name).map(|(_, value)| &**value);
            let Some(text) = (name == variable).then_some(value).or_else(chosen) else { continue };
            match operator {
                "?" | "&" | ";" => {
                    uri.push_str(if operator == "?" && !is_first { "&" } else { operator });
                    uri.push_str(name);
                    uri.push('=');
                }
                "/" | "." => uri.push_str(operator),
                "#" if is_first => uri.push('#'),
                _ if !is_first => uri.push(','),
                _ => {}
            }
            uri.push_str(text);
            is_first = false;
        }
    }
}

/// Splits an expression into its operator and its list of variables.
fn operator(expression: &str) -> (&str, &str) {
    let list = expression.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']);
    (&expression[..expression.len() - list.len()], list)
}

/// Returns the names in a list of variables, without modifiers.
fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(|name| name.split([':', '*']).next().unwrap_or(name))
}

/// Removes the values of a completion that expand to URIs that the caller may not use.
pub(super) fn hide_values(exchange: &Exchange, message: &Envelope, edits: &mut Edits, reads: &Reads<'_>) {
    let Some(template) = exchange.completed_template.as_ref().filter(|_| reads.may_refuse()) else { return };
    let Some(span) = message.result_member("completion") else { return };
    let completion = span.of(message.bytes());
    let Some(values) = json::member(completion, "values").map(|span| span.of(completion)) else { return };
    let is_seen = |token: &&[u8]| {
        let uris = json::string(token).and_then(|value| template.expansions(&value));
        uris.is_some_and(|uris| uris.iter().all(|uri| reads.allow(uri)))
    };
    let all: Vec<&[u8]> = json::elements(values).map(|span| span.of(values)).take(MAX_VALUES + 1).collect();
    let seen: Vec<&[u8]> = all.iter().take(MAX_VALUES).copied().filter(is_seen).collect();
    if seen.len() == all.len() {
        return;
    }
    // `total` and `hasMore` are omitted: they would count the hidden values.
    edits.replace(span, [&br#"{"values":["#[..], &seen.join(&b','), b"]}"].concat());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A-7: a server may take a name that the template does not have for any of its variables.
    #[test]
    fn values_of_an_unknown_variable_are_judged_as_values_of_each() {
        let expansions = |uri: &str, argument: &str| {
            let params = format!(
                r#"{{"ref":{{"type":"ref/resource","uri":"ours"}},"argument":{argument},"context":{{"arguments":{{"dir":"d"}}}}}}"#
            );
            CompletedTemplate::read(params.as_bytes(), uri).unwrap().expansions("private").unwrap()
        };
        let template = "file:///{dir}/{+name*}";
        assert_eq!(expansions(template, r#"{"name":"name"}"#), ["file:///d/private"]);
        for argument in [r#"{"name":"other"}"#, r#"{"name":"+name"}"#, r#"{"name":""}"#, r#"{"name":7}"#, "{}"] {
            assert_eq!(expansions(template, argument), ["file:///private/", "file:///d/private"], "{argument}");
        }
        assert_eq!(expansions("file:///x", r#"{"name":"other"}"#), ["file:///x"]);
        let many: String = (0..=MAX_VARIABLES).map(|number| format!("{{v{number}}}")).collect();
        let params = r#"{"ref":{"type":"ref/resource","uri":"ours"},"argument":{"name":"other"}}"#;
        assert_eq!(CompletedTemplate::read(params.as_bytes(), &many).unwrap().expansions("x"), None);
    }

    fn expand(uri: &str, value: &str) -> String {
        let params = r#"{"ref":{"type":"ref/resource","uri":"ours"},"argument":{"name":"path","value":"p"},
            "context":{"arguments":{"owner":"ada","n":1}}}"#;
        CompletedTemplate::read(params.as_bytes(), uri).unwrap().expand("path", value)
    }

    #[test]
    fn a_template_is_expanded_with_the_value_and_what_was_chosen_before() {
        assert_eq!(expand("repo://{owner}/{path}", "x/y"), "repo://ada/x/y");
        assert_eq!(expand("repo://{owner}{/path}{?page}", "x"), "repo://ada/x");
        assert_eq!(expand("repo://{#path}{?owner,path}{&path}", "x"), "repo://#x?owner=ada&path=x&path=x");
        assert_eq!(expand("repo://{+path*}/{path:3}", "x"), "repo://x/x");
        assert_eq!(expand("repo://{a,path}", "x"), "repo://x");
        assert_eq!(expand("repo://{path", "x"), "repo://{path");
    }

    #[test]
    fn completions_of_prompts_have_no_template() {
        let params = br#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"path","value":"p"}}"#;
        assert_eq!(CompletedTemplate::read(params, "p"), None);
    }
}
