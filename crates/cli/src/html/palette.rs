//! The colors of charts, and the styles that replace them in dark mode.
//!
//! plotters writes fixed colors as attributes, and a style sheet overrides attributes. Each color is
//! therefore written with its light value, and a rule for this value sets the variable of the color.

use std::fmt::Write as _;

use plotters::style::RGBColor;

/// A color of charts and legends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Color {
    /// Text.
    Ink,
    /// Labels of axes.
    Muted,
    /// Lines of the grid.
    Grid,
    /// The main series.
    Main,
    /// The main series in pale, for areas and totals.
    Pale,
    /// The second series.
    Second,
    /// Limits and marks.
    Limit,
}

impl Color {
    const ALL: [Self; 7] =
        [Self::Ink, Self::Muted, Self::Grid, Self::Main, Self::Pale, Self::Second, Self::Limit];

    /// Returns the light color, the dark color and the name of the variable. The colors of series
    /// differ in all kinds of color vision.
    fn values(self) -> (u32, u32, &'static str) {
        match self {
            Self::Ink => (0x1b1f24, 0xe6e8eb, "ink"),
            Self::Muted => (0x57606a, 0xa0a9b4, "muted"),
            Self::Grid => (0xe2e5e9, 0x30363d, "grid"),
            Self::Main => (0x0068a8, 0x58b2ea, "main"),
            Self::Pale => (0xb7d4ea, 0x24485f, "pale"),
            Self::Second => (0x00815f, 0x44c79b, "second"),
            Self::Limit => (0xb84a00, 0xf5955a, "limit"),
        }
    }

    /// Returns the color of plotters: the light one.
    pub(super) fn rgb(self) -> RGBColor {
        let (light, ..) = self.values();
        RGBColor((light >> 16) as u8, (light >> 8) as u8, light as u8)
    }

    /// Returns the name of the style's variable.
    pub(super) fn variable(self) -> &'static str {
        self.values().2
    }
}

/// Returns the styles of all colors: the variables, and the rules that use them in charts.
pub(super) fn styles() -> String {
    let (mut light, mut dark, mut rules) = (String::new(), String::new(), String::new());
    for color in Color::ALL {
        let (day, night, name) = color.values();
        // Writing into a string does not fail.
        let _ = write!(light, "--{name}:#{day:06x};");
        let _ = write!(dark, "--{name}:#{night:06x};");
        for attribute in ["fill", "stroke"] {
            let value = format!("[{attribute}=\"#{day:06X}\"]");
            let _ = writeln!(rules, "svg {value}{{{attribute}:var(--{name})}}");
        }
    }
    format!(
        ":root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n{rules}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_color_has_its_own_rule() {
        let styles = styles();
        for color in Color::ALL {
            let RGBColor(r, g, b) = color.rgb();
            // As plotters writes it.
            let rule = format!("svg [fill=\"#{r:02X}{g:02X}{b:02X}\"]{{fill:var(--");
            assert_eq!(styles.matches(&rule).count(), 1, "{color:?}: {styles}");
        }
    }
}
