//! Paths that leave their folder, by the text alone, and paths of files that hold secrets.

use super::finding::{FilterKind, FindingRisk, Violation};
use super::sensitive_paths::sensitive_path;
use super::text_readings::text_readings;
use crate::invisible::is_invisible;

/// Number of leading `..` that is common in development: `../src/index.ts`, `../../shared/types.ts`. Such a path is a
/// finding of low risk.
const COMMON_CLIMB: usize = 2;

/// Checks every reading of a path. What only a decoded reading shows is a disguise, and so more severe.
pub(super) fn check_path(value: &str) -> Option<Violation> {
    let readings = text_readings(value);
    let (written, decoded) = readings.split_first()?;
    let found = check_reading(written, false);
    // What the decoded readings add matters only if it is worse.
    if found.as_ref().is_some_and(|found| found.risk == FindingRisk::High) {
        return found;
    }
    decoded.iter().find_map(|text| check_reading(text, true)).map(Violation::disguised).or(found)
}

fn check_reading(text: &str, is_decoded: bool) -> Option<Violation> {
    let local = match local_path(text) {
        Ok(local) => local,
        Err(violation) => return Some(violation),
    };
    let path = local.replace('\\', "/");
    // Filters that remove `../` once turn these into `../`.
    let stripped =
        ["..../", ".../.", "....\\"].iter().any(|nested| path.contains(nested)).then(|| path.replace("../", ""));
    let hidden = stripped.and_then(|path| judge(&path, true)).map(Violation::disguised);
    judge(&path, is_decoded).or(hidden)
}

fn traversal(risk: FindingRisk, reason: &'static str) -> Violation {
    Violation::new(FilterKind::PathTraversal, risk, reason)
}

/// Returns the path within a `file:` URL, or the text itself.
fn local_path(text: &str) -> Result<&str, Violation> {
    let text = text.trim();
    if text.starts_with(r"\\?\") || text.starts_with(r"\\.\") || text.starts_with(r"\??\") {
        return Err(traversal(FindingRisk::Medium, "path of the Windows device namespace"));
    }
    if text.strip_prefix(r"\\").is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_alphanumeric())) {
        return Err(traversal(FindingRisk::Medium, "path on another machine"));
    }
    let Some(rest) = text.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("file:")).and(text.get(5..)) else {
        return Ok(text);
    };
    let Some(after) = rest.strip_prefix("//") else { return Ok(rest) };
    let (host, path) = after.split_at(after.find(['/', '\\']).unwrap_or(after.len()));
    match host.is_empty()
        || host.eq_ignore_ascii_case("localhost")
        || host == "."
        || host == ".."
        || host.ends_with(':')
    {
        true => Ok(if path.is_empty() || host.starts_with('.') { after } else { path }),
        false => Err(traversal(FindingRisk::Medium, "path on another machine")),
    }
}

/// Path without dot segments.
struct ResolvedPath<'a> {
    segments: Vec<&'a str>,
    is_absolute: bool,
    /// Number of `..` for which there was no segment to remove.
    climbs: usize,
    /// A `..` removed the first segment, or climbed although there were segments before it.
    leaves_folder: bool,
    /// A `..` is written so that only some programs read it as one: `..;`, `.. `.
    is_odd: bool,
}

fn resolve(path: &str) -> ResolvedPath<'_> {
    let drive = path.as_bytes().get(1) == Some(&b':') && path.starts_with(|first: char| first.is_ascii_alphabetic());
    let rest = if drive { path.get(2..).unwrap_or_default() } else { path };
    let is_absolute = drive || rest.starts_with('/');
    let mut resolved =
        ResolvedPath { segments: Vec::new(), is_absolute, climbs: 0, leaves_folder: false, is_odd: false };
    let mut named_any = false;
    for segment in rest.split('/').filter(|segment| !matches!(*segment, "" | ".")) {
        if !is_parent(segment) {
            // Whitespace and control characters alone are no name that a folder has.
            if !segment.chars().all(|char| char == '.' || is_ignored(char)) {
                resolved.segments.push(segment);
                named_any = true;
            }
            continue;
        }
        resolved.is_odd |= segment != "..";
        if resolved.segments.pop().is_none() {
            resolved.climbs += 1;
            resolved.leaves_folder |= named_any || is_absolute;
        } else if resolved.segments.is_empty() && is_absolute {
            resolved.leaves_folder = true;
        }
    }
    resolved
}

/// Returns `true` for `..`, also with characters that a server drops before it uses the segment.
fn is_parent(segment: &str) -> bool {
    let name = segment.split(';').next().unwrap_or_default();
    name == ".."
        || (name.starts_with(is_ignored_or_dot) && name.chars().filter(|char| !is_ignored(*char)).eq("..".chars()))
}

fn is_ignored_or_dot(char: char) -> bool {
    char == '.' || is_ignored(char)
}

fn is_ignored(char: char) -> bool {
    char.is_whitespace() || is_invisible(char) || matches!(char, '"' | '\'' | '*' | '?' | '\u{fffd}')
}

fn judge(path: &str, is_decoded: bool) -> Option<Violation> {
    let resolved = resolve(path);
    let anchored = resolved.is_absolute || resolved.climbs > 0;
    if let Some(sensitive) = sensitive_path(&resolved.segments, anchored) {
        let risk = if resolved.climbs > 0 { FindingRisk::High } else { sensitive.risk };
        return Some(traversal(risk, sensitive.reason));
    }
    if resolved.is_odd && (resolved.climbs > 0 || resolved.leaves_folder) {
        return Some(traversal(FindingRisk::High, "path that leaves its folder in disguise"));
    }
    if resolved.leaves_folder || resolved.climbs > COMMON_CLIMB || (is_decoded && resolved.climbs > 0) {
        return Some(traversal(FindingRisk::Medium, "path that leaves the folder in which it starts"));
    }
    let names_stream = path.rsplit('/').next().is_some_and(|name| name.to_ascii_lowercase().contains("::$"));
    if names_stream {
        return Some(traversal(FindingRisk::Medium, "path of an alternate data stream"));
    }
    (resolved.climbs > 0).then(|| traversal(FindingRisk::Low, "path that climbs above its start"))
}

#[cfg(test)]
mod tests;
