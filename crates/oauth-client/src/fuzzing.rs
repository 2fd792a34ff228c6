//! Bodies of the fuzz targets in /fuzz.

use crate::web_address::{WebAddress, canonical};
use crate::{challenge, form};

/// Parses any text as a challenge, a query or form, and an address. Nothing panics, and a canonical address is stable.
pub fn oauth_texts(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for challenge in challenge::read(text) {
        let _ = (challenge.param("resource_metadata"), challenge.scopes());
    }
    let _ = form::read(text);
    let _ = WebAddress::read(text);
    if let Some(address) = canonical(text) {
        assert_eq!(canonical(&address).as_deref(), Some(address.as_str()), "a canonical address is its own");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_wire::fuzzing::run_mutated;

    #[test]
    fn the_target_holds_on_seeds_and_mutations() {
        let seeds = [
            &br#"Bearer realm="a, b", scope="x y", resource_metadata="https://a.example/.well-known/x", Basic abc=="#[..],
            b"code=a%20b&state=%C3%A9&iss=https%3A%2F%2Fas.example&code=",
            b"https://User@As.Example:443/a/../b?c#d",
            b"http://[::1]:8080/mcp",
        ];
        let pieces: &[&[u8]] =
            &[b"%", b"%2", b"%ff", b"\"", b"\\", b",", b"=", b"&", b"://", b":", b"@", b"#", b"[", b"\xc3\xa9"];
        let seeds: Vec<Vec<u8>> = seeds.iter().map(|seed| seed.to_vec()).collect();
        run_mutated(&[("oauth_texts", oauth_texts)], &seeds, pieces, 20_000);
    }
}
