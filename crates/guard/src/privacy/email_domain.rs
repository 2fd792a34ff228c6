//! Domains of e-mail addresses.

/// Maximum length of a domain and of one of its labels, in bytes (RFC 1035, section 2.3.4).
const MAX_DOMAIN: usize = 253;
const MAX_LABEL: usize = 63;

/// Last labels that no address on the internet has: reserved names, names of local networks, and ends of file names
/// that are not top-level domains too.
const NOT_TOP_LEVEL: &[&str] = &[
    "alpha",
    "alt",
    "arpa",
    "avif",
    "beta",
    "bin",
    "bmp",
    "bundle",
    "cfg",
    "class",
    "cluster",
    "conf",
    "config",
    "corp",
    "cpp",
    "crt",
    "css",
    "csv",
    "dat",
    "deb",
    "device",
    "diff",
    "dll",
    "dmg",
    "doc",
    "docx",
    "domain",
    "env",
    "example",
    "exe",
    "gif",
    "home",
    "host",
    "htm",
    "html",
    "hpp",
    "ico",
    "internal",
    "intranet",
    "invalid",
    "ipynb",
    "jar",
    "java",
    "jpeg",
    "jpg",
    "json",
    "jsonl",
    "jsx",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "lock",
    "log",
    "map",
    "mjs",
    "mount",
    "onion",
    "patch",
    "pdf",
    "pem",
    "php",
    "png",
    "ppt",
    "private",
    "proto",
    "rpm",
    "scope",
    "scss",
    "service",
    "slice",
    "socket",
    "sql",
    "svc",
    "svg",
    "swift",
    "tar",
    "target",
    "test",
    "tgz",
    "tiff",
    "timer",
    "toml",
    "tsx",
    "ttf",
    "txt",
    "vue",
    "wasm",
    "wav",
    "webp",
    "whl",
    "woff",
    "xls",
    "xlsx",
    "xml",
    "yaml",
    "yml",
];
/// Top-level domains of two letters: countries, by the root zone of IANA.
const COUNTRIES: &str = "ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bv \
    bw by bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es \
    et eu fi fj fk fm fo fr ga gb gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu \
    id ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt \
    lu lv ly ma mc md me mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no \
    np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se sg sh si \
    sj sk sl sm sn so sr ss st su sv sx sy sz tc td tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug uk \
    us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw";
/// Domains that are reserved for examples (RFC 2606, section 3).
const EXAMPLES: [&str; 3] = ["example.com", "example.net", "example.org"];
/// Domains that the names of algorithms of SSH end in (RFC 4251, section 6).
const ALGORITHMS: [&str; 2] = ["openssh.com", "libssh.org"];

/// Returns the length of the domain that the text starts with.
pub(super) fn length(text: &str) -> Option<usize> {
    let is_name = |character: &char| character.is_alphanumeric() || ['.', '-'].contains(character);
    let run: usize = text.chars().take(MAX_DOMAIN + 2).take_while(is_name).map(char::len_utf8).sum();
    // A sentence ends in a full stop, which belongs to no address.
    let name = text.get(..run)?.trim_end_matches(['.', '-']);
    let top = name.rfind('.')? + 1;
    let length = top + top_level_length(name.get(top..)?)?;
    (length <= MAX_DOMAIN && is_domain(name.get(..length)?)).then_some(length)
}

/// Returns true for domains of examples.
pub(super) fn is_reserved(domain: &str) -> bool {
    EXAMPLES.iter().any(|example| is_within(domain, example))
}

/// Returns true for domains of names such as `aes256-gcm@openssh.com`.
pub(super) fn is_algorithm_suffix(domain: &str) -> bool {
    ALGORITHMS.iter().any(|suffix| domain.eq_ignore_ascii_case(suffix))
}

/// Returns the length of the top-level domain that the text starts with. Where a script without spaces follows ASCII
/// letters, the letters are the domain.
fn top_level_length(text: &str) -> Option<usize> {
    let ascii = text.find(|character: char| !character.is_ascii()).unwrap_or(text.len());
    let name = text.get(..if ascii > 0 { ascii } else { text.len() })?;
    let is_encoded = name.get(..4).is_some_and(|prefix| prefix.eq_ignore_ascii_case("xn--"));
    let is_name = is_encoded || name.chars().all(char::is_alphabetic) && name.chars().nth(1).is_some();
    let is_known = match name.len() {
        2 => COUNTRIES.split(' ').any(|country| name.eq_ignore_ascii_case(country)),
        _ => !NOT_TOP_LEVEL.iter().any(|other| name.eq_ignore_ascii_case(other)),
    };
    (is_name && is_known && name.len() <= MAX_LABEL).then_some(name.len())
}

/// Returns true if a name has at least two labels, each well formed, and is no version.
fn is_domain(name: &str) -> bool {
    let is_label =
        |label: &str| !label.is_empty() && label.len() <= MAX_LABEL && !label.starts_with('-') && !label.ends_with('-');
    name.contains('.') && name.split('.').all(is_label) && !is_version(name)
}

/// Returns true for names such as `1.0.0-beta.rc` and `v2.1.next`. Some providers have a number for a name: `163.com`.
fn is_version(name: &str) -> bool {
    let starts_with_digit =
        |label: Option<&str>| label.is_some_and(|label| label.starts_with(|c: char| c.is_ascii_digit()));
    let mut labels = name.split('.');
    let first = labels.next().map(|label| label.trim_start_matches(['v', 'V']));
    starts_with_digit(first) && starts_with_digit(labels.next())
}

fn is_within(domain: &str, parent: &str) -> bool {
    let Some(at) = domain.len().checked_sub(parent.len()) else { return false };
    let is_end = domain.get(at..).is_some_and(|end| end.eq_ignore_ascii_case(parent));
    is_end && (at == 0 || domain.get(..at).is_some_and(|before| before.ends_with('.')))
}
