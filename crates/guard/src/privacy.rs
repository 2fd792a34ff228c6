//! Finds private data in one text: credentials, e-mail addresses, telephone numbers, account numbers and card numbers.
//!
//! Each class has its own search, which accepts only complete notations: a known country or issuer, the right length,
//! a valid checksum, and no letter or digit that belongs to something longer. The functions are pure and take linear
//! time. They log nothing, and no finding holds a copy of the private data.
//!
//! [`redact`] replaces findings by typed placeholders such as `[email removed]`. Placeholders divide a text into
//! segments that are searched on their own. [`find`] searches the segments that its own findings leave, too, until
//! nothing is found any more, so that a redacted text has no findings.

mod announcement;
mod card;
mod card_issuer;
mod context_word;
mod country_code;
mod credential;
mod digit_scan;
mod email;
mod email_domain;
mod iban;
mod iban_country;
mod phone;
mod phone_number;
mod placeholder;
mod privacy_class;
mod privacy_classes;
mod privacy_findings;
mod private_span;
mod search;
mod segment;
#[cfg(test)]
mod tests;

pub use privacy_class::PrivacyClass;
pub use privacy_classes::PrivacyClasses;
pub use privacy_findings::PrivacyFindings;
pub use private_span::PrivateSpan;

use search::Search;

/// Maximum length of a text that is searched, in bytes.
pub const MAX_TEXT: usize = signalbox_secret_scan::MAX_TEXT;
/// Maximum number of spans that are reported per text.
pub const MAX_SPANS: usize = 16_384;

/// Returns the private data of the given classes, in order and without overlaps.
///
/// The findings are incomplete if the text is longer than [`MAX_TEXT`], holds more than [`MAX_SPANS`] findings, or
/// needs more work than a text of its length may cost.
#[must_use]
pub fn find(text: &str, classes: PrivacyClasses) -> PrivacyFindings {
    if classes.is_empty() {
        return PrivacyFindings::default();
    }
    if text.len() > MAX_TEXT {
        return PrivacyFindings { spans: Vec::new(), is_incomplete: true };
    }
    Search::new(text, classes).run()
}

/// Returns the text with each span replaced by its placeholder.
///
/// A space follows a placeholder where its bracket would otherwise open a Markdown link with the text behind it.
/// Spans that do not fit the text are left out.
#[must_use]
pub fn redact(text: &str, findings: &PrivacyFindings) -> String {
    let mut redacted = String::with_capacity(text.len());
    let mut at = 0;
    for span in &findings.spans {
        let Some(before) = text.get(at..span.range.start) else { continue };
        let Some(rest) = text.get(span.range.end..) else { continue };
        redacted.push_str(before);
        redacted.push_str(&span.placeholder);
        if rest.starts_with(placeholder::OPENS_LINK) {
            redacted.push(' ');
        }
        at = span.range.end;
    }
    redacted.push_str(text.get(at..).unwrap_or_default());
    redacted
}
