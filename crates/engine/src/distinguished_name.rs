//! Subject of a certificate, name by name. Plain text would be ambiguous: a value may contain commas and equals signs.

use std::fmt;

/// Attribute of a subject.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NameAttribute {
    /// Type of the attribute: a short name such as `CN`, or an OID in dotted form.
    pub kind: Box<str>,
    /// Value of the attribute; `None` if it is not text.
    pub value: Option<Box<str>>,
}

/// Subject of a certificate: relative names in the order of the certificate, most of one attribute each.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DistinguishedName(pub Vec<Vec<NameAttribute>>);

impl fmt::Display for DistinguishedName {
    /// Formats the names with the escapes of RFC 4514, in the order of the certificate.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.0.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { ", " })?;
            for (at, attribute) in name.iter().enumerate() {
                f.write_str(if at == 0 { "" } else { " + " })?;
                write!(f, "{}=", attribute.kind)?;
                match &attribute.value {
                    Some(value) => write_escaped(value, f)?,
                    None => f.write_str("#")?,
                }
            }
        }
        Ok(())
    }
}

fn write_escaped(value: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let last = value.chars().count().saturating_sub(1);
    for (at, c) in value.chars().enumerate() {
        let is_edge = (at == 0 && matches!(c, ' ' | '#')) || (at == last && c == ' ');
        match c {
            '"' | '+' | ',' | ';' | '<' | '=' | '>' | '\\' => write!(f, "\\{c}")?,
            _ if is_edge => write!(f, "\\{c}")?,
            _ if c.is_control() => {
                let mut bytes = [0; 4];
                c.encode_utf8(&mut bytes).bytes().try_for_each(|byte| write!(f, "\\{byte:02X}"))?;
            }
            _ => write!(f, "{c}")?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(kind: &str, value: &str) -> Vec<NameAttribute> {
        vec![NameAttribute { kind: kind.into(), value: Some(value.into()) }]
    }

    #[test]
    fn different_subjects_are_written_differently() {
        let text = |names: Vec<Vec<NameAttribute>>| DistinguishedName(names).to_string();
        assert_eq!(text(vec![one("CN", "ada"), one("O", "Example")]), "CN=ada, O=Example");
        assert_eq!(text(vec![one("CN", "ada, O=Example")]), r"CN=ada\, O\=Example");
        assert_eq!(text(vec![one("CN", r"a\, b")]), r"CN=a\\\, b");
        assert_eq!(text(vec![one("CN", " #a\n ")]), r"CN=\ #a\0A\ ");
        assert_eq!(text(vec![one("CN", "#a")]), r"CN=\#a");
        assert_eq!(text(vec![vec![NameAttribute { kind: "CN".into(), value: None }]]), "CN=#");
        let several = [one("CN", "a"), one("O", "b")].concat();
        assert_eq!((text(vec![several]), text(Vec::new())), ("CN=a + O=b".to_owned(), String::new()));
    }
}
