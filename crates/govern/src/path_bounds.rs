//! Path containment by text alone: no file is accessed, so symbolic links are not resolved.
//!
//! A server may interpret a path in more than one way, and every interpretation must lie within the folders: as
//! written, with `\` for `/`, with percent escapes decoded, as a `file:` URI, without what follows a `;`, and with
//! look-alikes of `..` for it. A path that a server might expand, or
//! that cannot be a path at all, lies within no folder.

use signalbox_wire::disguised_dots::{is_overlong, unmask};
use signalbox_wire::endpoint::without_dots;
use signalbox_wire::percent::decode_once;

/// Maximum length of a path.
const MAX_PATH: usize = 32 * 1024;
/// Maximum depth of nested percent escapes.
const MAX_DECODED: usize = 8;

/// Reason why a path cannot be judged.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PathFault {
    /// The path leaves the folder that it starts in.
    #[error("it leads above where it begins")]
    Above,
    /// The path starts with `~`, contains a control character, is too long, is escaped too many times, or has an
    /// overlong form of an ASCII character.
    #[error("it is no path that could be judged")]
    Unfit,
    /// The address of something other than a file on the server's machine.
    #[error("it is the address of something else than a file")]
    Elsewhere,
}

/// Folders in normalized form.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Folders(Vec<Vec<String>>);

impl Folders {
    /// Normalizes folders. An absolute folder contains absolute paths, a relative one relative paths.
    ///
    /// # Errors
    /// If one of them is not a path.
    pub fn new(folders: &[String]) -> Result<Self, PathFault> {
        folders.iter().map(|folder| parts(folder)).collect::<Result<_, _>>().map(Self)
    }

    /// Returns true if a path lies within one of the folders under every interpretation.
    ///
    /// # Errors
    /// If the path cannot be judged.
    pub fn hold(&self, path: &str) -> Result<bool, PathFault> {
        if path.len() > MAX_PATH {
            return Err(PathFault::Unfit);
        }
        let written = local(path)?;
        let holds = |path: &str| parts(path).map(|parts| self.0.iter().any(|folder| parts.starts_with(folder)));
        // A file system resolves `a//../b` to `b`, a URL parser to `a/b`.
        let within = |path: &str| match path.contains("//") || path.contains("\\") {
            true => Ok(holds(path)? && holds(&without_dots_as_url(path))?),
            false => holds(path),
        };
        if !within(written)? {
            return Ok(false);
        }
        // A `%` that starts no escape is an ordinary character of a path.
        let decoded = decoded(written)?;
        if let Some(decoded) = &decoded
            && !within(decoded)?
        {
            return Ok(false);
        }
        for read in [Some(written), decoded.as_deref()].into_iter().flatten() {
            let bare = read.contains(';').then(|| without_params(read));
            for other in [unmask(read), bare.as_deref().and_then(unmask), bare].into_iter().flatten() {
                if !within(&other)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// Returns the path of a `file:` URI of this machine, or the text itself if it is not a URI.
fn local(text: &str) -> Result<&str, PathFault> {
    let Some((scheme, rest)) = text.split_once(':') else { return Ok(text) };
    let is_scheme =
        scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if !is_scheme {
        return Ok(text);
    }
    if !scheme.eq_ignore_ascii_case("file") {
        return Err(PathFault::Elsewhere);
    }
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(after) => {
            let start = after.find('/').ok_or(PathFault::Elsewhere)?;
            let (host, path) = after.split_at(start);
            if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                return Err(PathFault::Elsewhere);
            }
            path
        }
    };
    // Servers disagree on whether a query or a fragment is part of the path.
    if path.contains(['?', '#']) { Err(PathFault::Unfit) } else { Ok(path) }
}

/// Splits a path into segments. An absolute path starts with an empty one.
fn parts(path: &str) -> Result<Vec<String>, PathFault> {
    // Some servers drop tabs and line breaks, so that `.` and `.` around one become `..`.
    if path.starts_with('~') || path.contains(char::is_control) {
        return Err(PathFault::Unfit);
    }
    let path = path.replace('\\', "/");
    let mut parts: Vec<String> = if path.starts_with('/') { vec![String::new()] } else { Vec::new() };
    let least = parts.len();
    for segment in path.split('/').filter(|segment| !matches!(*segment, "" | ".")) {
        if segment != ".." {
            parts.push(segment.to_owned());
        } else if parts.len() > least {
            parts.pop();
        } else {
            return Err(PathFault::Above);
        }
    }
    Ok(parts)
}

/// Resolves dots as RFC 3986 does, where `..` removes an empty segment too.
fn without_dots_as_url(path: &str) -> String {
    let path = path.replace('\\', "/");
    let resolved = without_dots(&path);
    if path.starts_with('/') { resolved } else { resolved.trim_start_matches('/').to_owned() }
}

/// Drops what follows a `;` in each segment, as servers of Java do.
fn without_params(path: &str) -> String {
    let bare = |segment: &str| segment.split(';').next().unwrap_or_default().to_owned();
    path.replace('\\', "/").split('/').map(bare).collect::<Vec<_>>().join("/")
}

/// Decodes percent escapes until none are left; `None` if there are none. Bytes that are not UTF-8 keep their segments.
fn decoded(text: &str) -> Result<Option<String>, PathFault> {
    let mut bytes = text.as_bytes().to_vec();
    for round in 0..MAX_DECODED {
        match decode_once(&bytes) {
            Some(next) if is_overlong(&next) => return Err(PathFault::Unfit),
            Some(next) => bytes = next,
            None => return Ok((round > 0).then(|| String::from_utf8_lossy(&bytes).into_owned())),
        }
    }
    Err(PathFault::Unfit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn folders(texts: &[&str]) -> Folders {
        Folders::new(&texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn paths_are_judged_in_every_way_in_which_a_server_may_read_them() {
        let work = folders(&["/srv/docs/", "data"]);
        for inside in [
            "/srv/docs",
            "/srv/docs/a/b.txt",
            "/srv/./docs//a/../b",
            "/srv/x/../docs/a",
            "file:///srv/docs/a",
            "FILE://localhost/srv/docs/a%20b",
            "file:/srv/docs/a",
            "data/x",
            "./data/x",
            "/srv/docs/100%",
            "/srv/docs/a:b",
            "/srv/docs/a;b/c ",
            "/srv/docs/to do….txt",
        ] {
            assert_eq!(work.hold(inside), Ok(true), "{inside}");
        }
        for outside in [
            "",
            "/",
            "/srv",
            "/srv/docs_of_others/a",
            "/srv/docs/../etc/passwd",
            "/srv/docs/..\\..\\etc",
            "/x//../srv/docs/a",
            "x//../data/a",
            "/srv/docs/%2e%2e/%2e%2e/etc",
            "/srv/docs/%252e%252e/x",
            "/srv/docs/%ff/%2e%2e/%2e%2e/etc",
            "srv/docs/a",
            "/data/x",
            "/srv/docs/.. /.. /etc",
            "/srv/docs/%2e%2e%20/%2e%2e%20/etc",
            "/srv/docs/..;/..;x=y/etc",
            "/srv/docs/..%3b/..%3b/etc",
            "/srv/docs/.. ;/.. ;/etc",
            "/srv/docs/．．/．．/etc",
            "/srv/docs/%EF%BC%8E%EF%BC%8E/etc",
            "/srv/docs/..／..／etc",
            "/srv/docs/.../.../etc",
            "file:///etc/passwd",
            "C:\\srv\\docs\\a",
            "//host/share",
        ] {
            assert_eq!(work.hold(outside), Ok(false), "{outside}");
        }
        for (unfit, why) in [
            ("../data/x", PathFault::Above),
            ("data/../../x", PathFault::Above),
            ("/../srv/docs/a", PathFault::Above),
            ("~/data", PathFault::Unfit),
            ("~root", PathFault::Unfit),
            (&format!("/srv/docs/%{}41", "25".repeat(10)), PathFault::Unfit),
            (&format!("/srv/docs/{}", "a/".repeat(MAX_PATH)), PathFault::Unfit),
            ("/srv/docs/a\0b", PathFault::Unfit),
            ("/srv/docs/.\t./.\n./etc", PathFault::Unfit),
            ("/srv/docs/%2e%09./x", PathFault::Unfit),
            ("/srv/docs/a%00b", PathFault::Unfit),
            ("/srv/docs/%c0%ae%c0%ae/etc", PathFault::Unfit),
            ("/srv/docs/%25c0%25ae./x", PathFault::Unfit),
            ("data/．．/．．/x", PathFault::Above),
            ("file:///srv/docs/a?x", PathFault::Unfit),
            ("file://other/srv/docs/a", PathFault::Elsewhere),
            ("file://srv", PathFault::Elsewhere),
            ("https://example/srv/docs/a", PathFault::Elsewhere),
        ] {
            assert_eq!(work.hold(unfit), Err(why), "{unfit}");
        }
    }

    proptest! {
        /// What is held begins with a folder once `.`, `..` and empty segments are gone, and nothing panics.
        #[test]
        fn nothing_outside_is_held(path in "[/.a%2eE5cC~:\\\\]{0,24}") {
            if folders(&["/a"]).hold(&path) == Ok(true) {
                let read = decoded(local(&path).unwrap()).unwrap().unwrap_or_else(|| local(&path).unwrap().to_owned());
                let mut depth = Vec::new();
                for segment in read.split(['/', '\\']).filter(|one| !one.is_empty() && *one != ".") {
                    if segment == ".." { prop_assert!(depth.pop().is_some()) } else { depth.push(segment) }
                }
                prop_assert_eq!(depth.first(), Some(&"a"));
            }
        }
    }
}
