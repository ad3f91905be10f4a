//! A drawing as SVG text: a white card with lines, marks and words. The fonts are the reader's own.
//!
//! Own code and not a plotting crate: what makes these plots readable is labels beside their lines, and that is the
//! part that such crates leave to the caller.

use std::fmt::Write;

use crate::contest::LIMIT;

pub(super) type Point = (f64, f64);

/// Dark enough on white for words.
pub(super) const INK: &str = "#222222";
pub(super) const FAINT: &str = "#5f5f5f";
const GRID: &str = "#e3e3e3";
const FONT: &str =
    "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif";
/// Height of letters in labels.
pub(super) const LETTERS: f64 = 12.0;

/// How a series is told from the others: by colour, by mark and by dashes, so that each alone is enough. The colours
/// are those of Okabe & Ito, chosen for all kinds of colour vision, and shades of one blue for petal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) line: &'static str,
    /// The same hue, as dark as words need it.
    pub(super) ink: &'static str,
    pub(super) dash: &'static str,
    pub(super) mark: Mark,
    pub(super) width: f64,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Mark {
    Circle,
    Square,
    Diamond,
    Triangle,
    None,
}

/// The look of a contestant.
pub(super) fn look(filter: &str, kernel: &str) -> Look {
    let of = |line, ink, dash, mark, width| Look { line, ink, dash, mark, width };
    match (filter, kernel) {
        (LIMIT, _) => of(INK, INK, "7 4", Mark::None, 2.0),
        ("sbbf-rs-safe", _) => of("#D55E00", "#B04A00", "", Mark::Square, 2.0),
        ("fastbloom foldhash", _) => of("#009E73", "#007355", "", Mark::Square, 2.0),
        ("fastbloom" | "fastbloom default", _) => {
            of("#009E73", "#007355", "5 3", Mark::Square, 2.0)
        }
        ("bloomfilter", _) => of("#CC79A7", "#9C4274", "", Mark::Diamond, 2.0),
        ("growable-bloom-filter", _) => of("#CC79A7", "#9C4274", "5 3", Mark::Diamond, 2.0),
        ("growable-bloom-filter grown", _) => of("#CC79A7", "#9C4274", "2 4", Mark::Diamond, 2.0),
        ("qfilter", _) => of("#E69F00", "#8F5F00", "", Mark::Triangle, 2.0),
        ("qfilter grown", _) => of("#E69F00", "#8F5F00", "2 4", Mark::Triangle, 2.0),
        ("xorf BinaryFuse8" | "xorf fuse", _) => {
            of("#E69F00", "#8F5F00", "5 3", Mark::Triangle, 2.0)
        }
        ("pleat", _) => of("#009E73", "#007355", "2 4", Mark::Circle, 2.0),
        ("cuckoofilter" | "cuckoofilter full", _) => {
            of("#D55E00", "#B04A00", "", Mark::Square, 2.0)
        }
        ("scalable_cuckoo_filter", _) => of("#D55E00", "#B04A00", "", Mark::Triangle, 2.0),
        ("scalable_cuckoo_filter grown", _) => of("#D55E00", "#B04A00", "2 4", Mark::Triangle, 2.0),
        (ours, "portable") if ours.starts_with("petal") => {
            of("#6AAEE0", "#2F74A8", "", Mark::Circle, 2.0)
        }
        (ours, "avx2") if ours.starts_with("petal") => {
            of("#0072B2", "#00619A", "", Mark::Circle, 2.5)
        }
        (ours, _) if ours.starts_with("petal") => of("#003B73", "#003B73", "", Mark::Circle, 3.0),
        _ => of("#777777", FAINT, "", Mark::Diamond, 2.0),
    }
}

/// Where words hang on their point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing in the making. Later strokes lie above earlier ones.
pub(super) struct Canvas {
    width: f64,
    height: f64,
    body: String,
}

impl Canvas {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    pub(super) fn line(&mut self, points: &[Point], color: &str, width: f64, dash: &str) {
        let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dash = match dash {
            "" => String::new(),
            dash => format!(" stroke-dasharray=\"{dash}\""),
        };
        self.add(&format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\" \
             stroke-linejoin=\"round\" stroke-linecap=\"round\"{dash}/>",
            path.join(" ")
        ));
    }

    pub(super) fn grid(&mut self, from: Point, to: Point) {
        self.line(&[from, to], GRID, 1.0, "");
    }

    pub(super) fn bar(&mut self, at: Point, width: f64, height: f64, color: &str) {
        let (x, y) = at;
        self.add(&format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{color}\"/>"
        ));
    }

    /// A mark of about ten pixels, with a white rim that parts it from lines below.
    pub(super) fn mark(&mut self, (x, y): Point, look: &Look) {
        let style = format!("fill=\"{}\" stroke=\"#ffffff\" stroke-width=\"1.2\"", look.line);
        let corners = |corners: &[Point]| -> String {
            let places: Vec<String> = corners
                .iter()
                .map(|(right, down)| format!("{:.1},{:.1}", x + right, y + down))
                .collect();
            format!("<polygon points=\"{}\" {style}/>", places.join(" "))
        };
        let shape = match look.mark {
            Mark::Circle => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.8\" {style}/>"),
            Mark::Square => corners(&[(-4.2, -4.2), (4.2, -4.2), (4.2, 4.2), (-4.2, 4.2)]),
            Mark::Diamond => corners(&[(0.0, -5.8), (5.8, 0.0), (0.0, 5.8), (-5.8, 0.0)]),
            Mark::Triangle => corners(&[(0.0, -5.6), (5.4, 4.2), (-5.4, 4.2)]),
            Mark::None => return,
        };
        self.add(&shape);
    }

    /// Words; `size` is the height of letters, `at` their base line. A white rim keeps them readable above lines.
    pub(super) fn words(
        &mut self,
        (x, y): Point,
        words: &str,
        anchor: Anchor,
        size: f64,
        color: &str,
    ) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.add(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\" fill=\"{color}\" \
             stroke=\"#ffffff\" stroke-width=\"3\" stroke-linejoin=\"round\" paint-order=\"stroke\">{}</text>",
            escaped(words)
        ));
    }

    /// Words along a straight line, a little above it, from its start on.
    pub(super) fn words_along(&mut self, line: (Point, Point), words: &str, color: &str) {
        let ((x, y), (to_x, to_y)) = line;
        let angle = (to_y - y).atan2(to_x - x).to_degrees();
        self.add(&format!(
            "<g transform=\"translate({x:.1} {y:.1}) rotate({angle:.1})\">\
             <text x=\"0\" y=\"-6\" font-size=\"{LETTERS}\" fill=\"{color}\">{}</text></g>",
            escaped(words)
        ));
    }

    /// Title and what is below it, at the upper left.
    pub(super) fn title(&mut self, title: &str, below: &str) {
        self.add(&format!(
            "<text x=\"20\" y=\"28\" font-size=\"16\" font-weight=\"600\" fill=\"{INK}\">{}</text>",
            escaped(title)
        ));
        self.words((20.0, 47.0), below, Anchor::Start, LETTERS, FAINT);
    }

    fn add(&mut self, element: &str) {
        self.body += element;
        self.body.push('\n');
    }

    /// The file. `told` is for those who do not see it.
    pub(super) fn finish(self, told: &str) -> String {
        let Self { width, height, body } = self;
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"{FONT}\" role=\"img\">\n\
             <title>{}</title>\n\
             <rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"#ffffff\" stroke=\"#d0d0d0\"/>\n\
             {body}</svg>\n",
            escaped(told),
            width - 1.0,
            height - 1.0
        );
        text
    }
}

/// About how wide words are, in a wide font.
pub(super) fn width(words: &str, size: f64) -> f64 {
    words.chars().count() as f64 * size * 0.6
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
