//! SHA-256 over one or several byte strings.

use aws_lc_rs::digest;

/// Returns the SHA-256 of `bytes`.
#[must_use]
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut sum = [0; 32];
    sum.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    sum
}

/// Returns the SHA-256 of the concatenation of `parts`, without copying them.
#[must_use]
pub fn sha256_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
    let mut context = digest::Context::new(&digest::SHA256);
    parts.into_iter().for_each(|part| context.update(part));
    let mut sum = [0; 32];
    sum.copy_from_slice(context.finish().as_ref());
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_wire::hex::hex;

    #[test]
    fn parts_are_hashed_as_if_they_were_one() {
        assert_eq!(sha256_of([&b"a"[..], b"", b"bc"]), sha256(b"abc"));
        assert_eq!(hex(&sha256(b"abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
