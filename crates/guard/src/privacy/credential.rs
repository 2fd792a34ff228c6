//! Finds credentials by the scanner that redacts recordings.

use super::segment::Segment;
use super::{PrivacyClass, PrivateSpan, placeholder};
use signalbox_secret_scan::Scanner;

/// Adds the credentials of a segment. Returns false if there may be more.
pub(super) fn find(segment: Segment<'_>, spans: &mut Vec<PrivateSpan>) -> bool {
    let scanner = Scanner::built_in();
    if !scanner.may_hold(segment.bytes()) {
        return true;
    }
    let findings = scanner.find(segment.bytes());
    for credential in &findings.found {
        // The scanner reads bytes, so a match may end within a character.
        let (start, mut end) = (segment.boundary(credential.start), credential.end.min(segment.text().len()));
        while !segment.text().is_char_boundary(end) {
            end += 1;
        }
        let placeholder = placeholder::of_credential(credential.kind).into();
        spans.push(PrivateSpan { class: PrivacyClass::Credential, range: segment.place(start..end), placeholder });
    }
    !findings.more
}
