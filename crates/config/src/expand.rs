//! Replaces `${NAME}` in values.
//!
//! `${NAME}` and `${env:NAME}` are replaced from the environment, `${NAME:-text}` by `text` if NAME is not set. In our
//! own files `$$` is a literal `$`; clients' files have no such escape. A `$` before anything else stands for itself.

/// Looks up a variable of the environment.
pub type Env<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Rules for references that a file follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Rules of `signalbox.toml`, with `$$` for `$`.
    Own,
    /// Rules of a client's JSON file.
    Foreign,
}

/// Reason why a value cannot be expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ExpandFault {
    /// The variable is not set.
    Unset(String),
    /// `${` without a name or an end.
    Malformed,
    /// Reference such as `${input:token}`, which only an editor can resolve.
    ClientOnly(String),
}

/// Replaces every reference in `text`.
pub(crate) fn expand(text: &str, dialect: Dialect, env: &Env<'_>) -> Result<String, ExpandFault> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        expanded.push_str(&rest[..dollar]);
        let after = &rest[dollar + 1..];
        if dialect == Dialect::Own && after.starts_with('$') {
            expanded.push('$');
            rest = &after[1..];
        } else if let Some(reference) = after.strip_prefix('{') {
            let end = reference.find('}').ok_or(ExpandFault::Malformed)?;
            expanded.push_str(&resolve(&reference[..end], env)?);
            rest = &reference[end + 1..];
        } else {
            expanded.push('$');
            rest = after;
        }
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// Rewrites a value of a client's file so that it means the same in ours.
pub(crate) fn to_own(foreign: &str) -> String {
    let mut own = String::with_capacity(foreign.len());
    let mut rest = foreign;
    while let Some(start) = rest.find('$') {
        own.push_str(&rest[..start]);
        let run = rest[start..].len() - rest[start..].trim_start_matches('$').len();
        rest = &rest[start + run..];
        let reference = rest.starts_with('{');
        let literal = if reference { run - 1 } else { run };
        // A single `$` before anything but `{` and `$` needs no escape in either dialect.
        let escaped = if literal == 1 && !reference { 1 } else { 2 * literal };
        own.extend(std::iter::repeat_n('$', escaped + usize::from(reference)));
    }
    own.push_str(rest);
    own
}

/// Returns `true` if `name` can be the name of a variable in a reference.
pub(crate) fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn resolve(reference: &str, env: &Env<'_>) -> Result<String, ExpandFault> {
    let (name, default) = match reference.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (reference.strip_prefix("env:").unwrap_or(reference), None),
    };
    if !is_name(name) {
        return Err(match name.split_once(':') {
            Some((kind, _)) if is_name(kind) => ExpandFault::ClientOnly(format!("${{{name}}}")),
            _ => ExpandFault::Malformed,
        });
    }
    env(name).or_else(|| default.map(str::to_owned)).ok_or_else(|| ExpandFault::Unset(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &str) -> Option<String> {
        match name {
            "A" => Some("1".to_owned()),
            "B_2" => Some("${A}".to_owned()),
            _ => None,
        }
    }

    fn own(text: &str) -> Result<String, ExpandFault> {
        expand(text, Dialect::Own, &env)
    }

    #[test]
    fn references_are_replaced_once() {
        assert_eq!(own("x${A}y${B_2}"), Ok("x1y${A}".to_owned()));
        assert_eq!(own("${env:A} ${C:-é} ${A:-2} ${C:-}"), Ok("1 é 1 ".to_owned()));
        assert_eq!(own("$$ $${A} $$$${A} $x $"), Ok("$ ${A} $${A} $x $".to_owned()));
        assert_eq!(expand("$$${A}", Dialect::Foreign, &env), Ok("$$1".to_owned()));
    }

    #[test]
    fn faults() {
        assert_eq!(own("${C}"), Err(ExpandFault::Unset("C".to_owned())));
        assert_eq!(own("${A"), Err(ExpandFault::Malformed));
        assert_eq!(own("${}"), Err(ExpandFault::Malformed));
        assert_eq!(own("${A B}"), Err(ExpandFault::Malformed));
        assert_eq!(own("${input:key}"), Err(ExpandFault::ClientOnly("${input:key}".to_owned())));
    }

    #[test]
    fn a_foreign_value_means_the_same_in_our_dialect() {
        for text in ["", "a$", "$$", "$$$x", "${A}", "$${A}", "$$${A}$", "$x$$y${A}$$", "$ {A}"] {
            assert_eq!(own(&to_own(text)), expand(text, Dialect::Foreign, &env), "{text}");
        }
        assert_eq!(to_own("${A}/$x"), "${A}/$x");
    }
}
