//! Body of the fuzz target: takes arbitrary bytes and asserts what must hold for all of them.
//!
//! It is part of the crate so that the ordinary tests run it too, over mutated seeds.

use crate::Scanner;

/// Checks that findings lie within the text, in order and without overlaps, and that [`Scanner::may_hold`] never misses
/// one.
pub fn credentials(data: &[u8]) {
    let scanner = Scanner::built_in();
    let findings = scanner.find(data);
    let mut end = 0;
    for found in &findings.found {
        assert!(found.start >= end && found.start < found.end && found.end <= data.len(), "{found:?}");
        end = found.end;
    }
    assert!(findings.found.is_empty() || scanner.may_hold(data), "the quick look missed {:?}", findings.found);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{self, Random};

    #[test]
    fn the_target_holds_on_seeds_and_mutations() {
        let asked = std::env::var("MCP_TEST_FUZZ_RUNS").ok().and_then(|text| text.parse().ok());
        let runs: usize = asked.unwrap_or(2_000);
        let rules = Scanner::built_in().rules();
        let seeds: Vec<Vec<u8>> = rules
            .iter()
            .flat_map(|rule| rule.examples.iter().map(|text| made_up::example(text, &rule.id).text.into_bytes()))
            .collect();
        let mut random = Random::new("mutations");
        for round in 0..runs {
            let mut input = seeds[round % seeds.len()].clone();
            for _ in 0..=random.below(4) {
                let at = random.below(input.len() + 1);
                match random.below(4) {
                    0 => input.truncate(at),
                    1 if at < input.len() => input[at] = random.below(256) as u8,
                    2 => {
                        let other = &seeds[random.below(seeds.len())];
                        input.splice(at..at, other.iter().copied());
                    }
                    _ => {
                        let piece =
                            [&b"%41"[..], b"\\n", b"\"", b"==", b"\xff", b"%", b"password=", b"eyJ"][random.below(8)];
                        input.splice(at..at, piece.iter().copied());
                    }
                }
            }
            credentials(&input);
        }
    }
}
