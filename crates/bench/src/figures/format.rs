//! Numbers in pages and plots.

/// Maximum number of decimals.
const MAX_DECIMALS: usize = 12;

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

/// A ratio, or bits per key, with enough decimals to differ from its bound.
pub(super) fn figure_near(value: f64, bound: f64) -> String {
    distinct(value, bound, figure_places(value))
}

fn figure_places(value: f64) -> usize {
    if value < 2.0 { 3 } else { 2 }
}

/// Adds decimals until the text differs from that of the bound.
fn distinct(value: f64, bound: f64, places: usize) -> String {
    let differ = |places: &usize| format!("{value:.places$}") != format!("{bound:.places$}");
    let places = (places..=MAX_DECIMALS).find(differ).unwrap_or(places);
    format!("{value:.places$}")
}

/// ns per key.
pub(super) fn ns(value: f64) -> String {
    if value < 9.995 { format!("{value:.2}") } else { format!("{value:.1}") }
}

/// A rate in percent, with four significant digits.
pub(super) fn percent(rate: f64) -> String {
    if rate <= 0.0 {
        return "0 %".to_owned();
    }
    format!("{:.*} %", percent_places(rate), rate * 100.0)
}

/// A rate in [`percent`] with enough decimals to differ from its bound.
pub(super) fn percent_near(rate: f64, bound: f64) -> String {
    if rate <= 0.0 {
        return percent(rate);
    }
    distinct(rate * 100.0, bound * 100.0, percent_places(rate)) + " %"
}

fn percent_places(rate: f64) -> usize {
    (3.0 - (rate * 100.0).log10().floor()).clamp(0.0, MAX_DECIMALS as f64) as usize
}

/// The usual name of a kernel's instruction set.
pub(super) fn kernel(name: &str) -> &str {
    match name {
        "avx512" => "AVX-512",
        "avx2" => "AVX2",
        "simd128" => "SSE2",
        "neon" => "NEON",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted() {
        let sizes = [100_000, 50_000_000, 400_000_000, 1_200_000, 123, 0].map(size);
        assert_eq!(sizes, ["10⁵", "5·10⁷", "4·10⁸", "12·10⁵", "123", "0"]);
        assert_eq!([0.01003, 0.000_998_7].map(percent), ["1.003 %", "0.09987 %"]);
        assert_eq!([1.234, 9.996].map(ns), ["1.23", "10.0"]);
    }

    #[test]
    fn a_figure_differs_from_its_bound() {
        let near = |value| figure_near(value, 10.1);
        assert_eq!([10.102, 10.1, 10.13, 9.5].map(near), ["10.102", "10.10", "10.13", "9.50"]);
        assert_eq!(figure_near(1.05004, 1.05), "1.05004");
        assert_eq!(percent_near(0.010_101_2, 0.010_1), "1.0101 %");
        assert_eq!(percent_near(0.0, 0.01), "0 %");
    }
}
