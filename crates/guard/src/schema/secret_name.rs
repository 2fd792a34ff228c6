//! Recognises properties that hold secrets by their names.

/// Words of a property name that mark its value as a secret.
const WORDS: [&str; 16] = [
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "key",
    "keys",
    "passphrase",
    "passwd",
    "password",
    "pwd",
    "secret",
    "token",
    "tokens",
];
/// Words that mark a secret even where they are not separated, such as `apikey` and `mypassword`.
const PARTS: [&str; 6] = ["apikey", "password", "passwd", "secret", "authorization", "credential"];

/// Checks whether a property of this name holds a secret, so that its value must not be quoted.
pub(super) fn is_secret_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    PARTS.iter().any(|part| lower.contains(part)) || words(name).any(|word| WORDS.contains(&word.as_str()))
}

/// Splits `camelCase`, `snake_case` and `kebab-case` into lower-case words.
fn words(name: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for char in name.chars() {
        if !char.is_alphanumeric() || (char.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = char.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| char.is_alphanumeric()) {
            word.extend(char.to_lowercase());
        }
    }
    words.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets() {
        for name in [
            "password",
            "dbPassword",
            "api_key",
            "apiKey",
            "APIKEY",
            "accessToken",
            "X-Auth-Token",
            "secrets",
            "Authorization",
            "key",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["keyword", "monkey", "tokenize", "author", "path", "limit", "", "keyboard"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
