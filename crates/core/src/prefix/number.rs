//! Numbers as the canonical form writes them: whole ones as they stand, others by their shortest digits.

/// Writes a JSON number. Whole numbers keep their digits, however many; a fraction or an exponent makes it a float,
/// written with the fewest digits that give the same value back, in the manner of Python's `repr` (an exponent from
/// 1e16 on and below 1e-4).
pub(super) fn write(text: &[u8], out: &mut Vec<u8>) {
    let whole = !text.iter().any(|b| matches!(b, b'.' | b'e' | b'E'));
    if whole {
        out.extend_from_slice(if text == b"-0" { b"0" } else { text });
        return;
    }
    let parsed = std::str::from_utf8(text).ok().and_then(|t| t.parse::<f64>().ok());
    match parsed {
        Some(value) if value.is_finite() => out.extend_from_slice(float(value).as_bytes()),
        // Beyond what a float holds: the text itself is the best name for it.
        _ => out.extend_from_slice(text),
    }
}

fn float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let plain = format!("{value}");
    if plain.contains('.') { plain } else { format!("{plain}.0") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        write(text.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_written_as_python_writes_them() {
        // Right-hand sides: json.dumps(json.loads(left)) of CPython 3.11.
        for (text, want) in [
            ("1", "1"),
            ("-0", "0"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("1.0", "1.0"),
            ("1.50", "1.5"),
            ("-0.0", "-0.0"),
            ("1e5", "100000.0"),
            ("1E16", "1e+16"),
            ("123456789012345680.0", "1.2345678901234568e+17"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("0.1", "0.1"),
            ("2.5e-7", "2.5e-07"),
            ("9999999999999998.0", "9999999999999998.0"),
        ] {
            assert_eq!(written(text), want, "{text}");
        }
    }
}
