//! Inputs with which the ordinary tests run the targets. They are the same in every run.

/// Returns how often a test runs its target: `default`, unless `MCP_TEST_FUZZ_RUNS` says otherwise.
pub(super) fn runs(default: usize) -> usize {
    let asked = std::env::var("MCP_TEST_FUZZ_RUNS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(default)
}

/// Generator of inputs. The crate has no source of randomness, so it brings its own.
pub(super) struct RandomInputs(u64);

impl RandomInputs {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }

    pub fn byte(&mut self) -> u8 {
        self.below(256) as u8
    }

    /// Appends one to `most` of the pieces to `input`, then changes up to three of its bytes or cuts it off.
    pub fn joined(&mut self, mut input: Vec<u8>, pieces: &[&str], most: usize) -> Vec<u8> {
        for _ in 0..=self.below(most) {
            input.extend_from_slice(pieces[self.below(pieces.len())].as_bytes());
        }
        for _ in 0..self.below(4) {
            let at = self.below(input.len());
            match self.below(3) {
                0 => input[at] = self.byte(),
                1 => input.truncate(at.max(1)),
                _ => input.insert(at, self.byte()),
            }
        }
        input
    }
}
