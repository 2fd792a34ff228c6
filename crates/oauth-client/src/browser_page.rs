//! HTML pages that the gateway shows to people. They have no scripts, images or external resources.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;margin:0;background:#f4f4f2;color:#1c1c1a}\
main{max-width:26rem;margin:10vh auto;padding:2rem;background:#fff;border:1px solid #d8d8d4;border-radius:8px}\
h1{font-size:1.3rem;margin:0 0 1rem}label{display:block;margin:.75rem 0}input{display:block;width:100%;box-sizing:border-box;\
font:inherit;padding:.4rem}button{font:inherit;padding:.4rem 1.2rem;margin:1rem .5rem 0 0}dt{color:#666}dd{margin:0 0 .6rem;\
overflow-wrap:anywhere}.bad{color:#a00}";

/// Renders a whole document. `body` is HTML; untrusted text in it must be [`escaped`].
#[must_use]
pub fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{title} · Signalbox</title>\
         <style>{STYLE}</style></head><body><main>{body}</main></body></html>"
    )
}

/// Returns the style source of [`document`], for a content security policy.
#[must_use]
pub fn style_source() -> String {
    format!("'sha256-{}'", STANDARD.encode(digest(&SHA256, STYLE.as_bytes())))
}

/// Returns the headers of every response to a browser: no caching, this referrer policy, and no guessing of types. A
/// page with a form needs `same-origin`: the form must carry its origin, which `no-referrer` would remove.
#[must_use]
pub fn guards(referrer: &str) -> [(&'static str, String); 3] {
    [("cache-control", "no-store"), ("referrer-policy", referrer), ("x-content-type-options", "nosniff")]
        .map(|(name, value)| (name, value.to_owned()))
}

/// Returns the content security policy of a page: it loads nothing but this style and cannot be framed. `forms` limits
/// where its forms may lead, redirects included.
#[must_use]
pub fn content_policy(style: Option<&str>, forms: Option<&str>) -> String {
    let style = style.map(|style| format!(" style-src {style};")).unwrap_or_default();
    let forms = forms.map(|forms| format!(" form-action {forms};")).unwrap_or_default();
    format!("default-src 'none';{style}{forms} base-uri 'none'; frame-ancestors 'none'")
}

/// Escapes text for use in HTML.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Bidirectional controls could make a host look like another one.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            c => out.push(c),
        }
    }
    out
}
