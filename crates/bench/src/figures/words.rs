//! Numbers as the pages and plots write them.

/// `10⁵`, `5·10⁷`; other numbers in digits.
pub(super) fn size(n: u64) -> String {
    let zeros = n.to_string().bytes().rev().take_while(|&digit| digit == b'0').count();
    let Some(first) = 10_u64.checked_pow(zeros as u32).map(|power| n / power) else {
        return n.to_string();
    };
    match (first, zeros) {
        (_, 0..=3) | (100.., _) => n.to_string(),
        (1, _) => format!("10{}", raised(zeros)),
        _ => format!("{first}·10{}", raised(zeros)),
    }
}

fn raised(number: usize) -> String {
    let digits = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    number.to_string().bytes().map(|digit| digits[usize::from(digit - b'0')]).collect()
}

/// A ratio, or bits per key: fine enough to be told from its bound.
pub(super) fn figure(value: f64) -> String {
    if value < 2.0 { format!("{value:.3}") } else { format!("{value:.2}") }
}

/// ns per key.
pub(super) fn ns(value: f64) -> String {
    if value < 9.995 { format!("{value:.2}") } else { format!("{value:.1}") }
}

/// A rate in percent: four digits that count.
pub(super) fn percent(rate: f64) -> String {
    if rate <= 0.0 {
        return "0 %".to_owned();
    }
    let places = (3.0 - (rate * 100.0).log10().floor()).clamp(0.0, 12.0) as usize;
    format!("{:.places$} %", rate * 100.0)
}

/// A kernel's name in words.
pub(super) fn kernel(name: &str) -> &str {
    match name {
        "avx512" => "AVX-512",
        "avx2" => "AVX2",
        "neon" => "NEON",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let sizes = [100_000, 50_000_000, 400_000_000, 1_200_000, 123, 0].map(size);
        assert_eq!(sizes, ["10⁵", "5·10⁷", "4·10⁸", "12·10⁵", "123", "0"]);
        assert_eq!([0.01003, 0.000_998_7].map(percent), ["1.003 %", "0.09987 %"]);
        assert_eq!([0.7501, 10.1].map(figure), ["0.750", "10.10"]);
        assert_eq!([1.234, 9.996].map(ns), ["1.23", "10.0"]);
    }
}
