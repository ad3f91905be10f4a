//! Puts labels beside what they name, where they cover no other label, no mark and little of the lines.
//!
//! Greedy: label by label, the cheapest of some places around its point. Far costs little, covering a line more,
//! covering a mark or a label most. Source: Christensen, Marks & Shieber 1995, the simplest of their methods.

use super::svg::{Anchor, Canvas, FAINT, LETTERS, Point, width};

/// A label to place.
pub(super) struct Label {
    pub(super) at: Point,
    pub(super) words: String,
    pub(super) color: &'static str,
}

/// What labels keep away from.
pub(super) struct Crowd {
    /// Where labels may be: left, top, right, bottom.
    pub(super) area: (f64, f64, f64, f64),
    pub(super) marks: Vec<Point>,
    pub(super) lines: Vec<Vec<Point>>,
}

#[derive(Clone, Copy)]
struct Frame {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Frame {
    fn holds(&self, (x, y): Point, margin: f64) -> bool {
        (self.left - margin..=self.right + margin).contains(&x)
            && (self.top - margin..=self.bottom + margin).contains(&y)
    }

    fn meets(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

#[derive(Clone, Copy)]
struct Place {
    frame: Frame,
    anchor: Anchor,
    /// The end of the label that is nearest to its point.
    near: Point,
    distance: f64,
}

const DISTANCES: [f64; 10] = [9.0, 16.0, 24.0, 34.0, 46.0, 58.0, 72.0, 88.0, 106.0, 126.0];
/// From here on a thin line leads from the point to its label.
const LED_FROM: f64 = 20.0;
const PER_LABEL: f64 = 10_000.0;
const PER_MARK: f64 = 1_000.0;
/// A mark that a leader passes over.
const PER_HIDDEN: f64 = 60.0;
const PER_DOT: f64 = 6.0;
/// What lies outside of the area may be cut off.
const OUTSIDE: f64 = 100_000.0;

/// Places and writes the labels, in their order.
pub(super) fn write(canvas: &mut Canvas, labels: &[Label], crowd: &Crowd) {
    let dots: Vec<Point> = crowd.lines.iter().flat_map(|line| dots(line)).collect();
    let mut taken: Vec<Place> = Vec::new();
    let mut leaders: Vec<Point> = Vec::new();
    for label in labels {
        let cost = |place: &Place| {
            let (left, top, right, bottom) = crowd.area;
            let Frame { left: l, top: t, right: r, bottom: b } = place.frame;
            let outside = l < left || t < top || r > right || b > bottom;
            let leader = self::dots(&[label.at, place.near]);
            let covered = taken.iter().filter(|other| other.frame.meets(&place.frame)).count();
            let crossed = |frame: &Frame| leader.iter().any(|dot| frame.holds(*dot, 1.0));
            let led_over = taken.iter().filter(|other| crossed(&other.frame)).count();
            let near = |dot: &&Point| place.frame.holds(**dot, 1.0);
            let own = |mark: &Point| (mark.0 - label.at.0).hypot(mark.1 - label.at.1) < 1.0;
            let led_near = |mark: &Point| {
                leader.iter().any(|dot| (dot.0 - mark.0).hypot(dot.1 - mark.1) < 5.0)
            };
            let hidden = crowd.marks.iter().filter(|mark| !own(mark) && led_near(mark)).count();
            let marks = crowd.marks.iter().filter(|mark| place.frame.holds(**mark, 6.0)).count();
            let under = dots.iter().chain(&leaders).filter(near).count();
            place.distance
                + f64::from(u8::from(outside)) * OUTSIDE
                + (covered + led_over) as f64 * PER_LABEL
                + marks as f64 * PER_MARK
                + hidden as f64 * PER_HIDDEN
                + under as f64 * PER_DOT
        };
        let places = places(label);
        let best = places.iter().min_by(|a, b| cost(a).total_cmp(&cost(b)));
        let Some(best) = best.copied() else { continue };
        if best.distance >= LED_FROM {
            canvas.line(&[label.at, best.near], FAINT, 0.8, "");
            leaders.extend(self::dots(&[label.at, best.near]));
        }
        taken.push(best);
    }
    // Words above all leaders.
    for (label, place) in labels.iter().zip(&taken) {
        let x = match place.anchor {
            Anchor::Start => place.frame.left,
            Anchor::End => place.frame.right,
            Anchor::Middle => f64::midpoint(place.frame.left, place.frame.right),
        };
        let at = (x, place.frame.bottom - LETTERS * 0.3);
        canvas.words(at, &label.words, place.anchor, LETTERS, label.color);
    }
}

/// Around the point: right of it first, then in a circle.
fn places(label: &Label) -> Vec<Place> {
    const STEPS: i32 = 16;
    let (x, y) = label.at;
    let (wide, high) = (width(&label.words, LETTERS), LETTERS * 1.25);
    let around = |distance: f64| {
        (0..STEPS).map(move |step| {
            let angle = f64::from(step) / f64::from(STEPS) * std::f64::consts::TAU;
            let near = (x + distance * angle.cos(), y + distance * angle.sin());
            let (anchor, left) = match angle.cos() {
                c if c > 0.1 => (Anchor::Start, near.0),
                c if c < -0.1 => (Anchor::End, near.0 - wide),
                _ => (Anchor::Middle, near.0 - wide / 2.0),
            };
            // Straight above or below, the label's edge is at this distance, not its middle.
            let shift = angle.sin() * high / 2.0;
            let top = near.1 + shift - high / 2.0;
            let frame = Frame { left, top, right: left + wide, bottom: top + high };
            // Dearer to the left: the eye follows a line to its end, and goes on.
            let distance = distance + if angle.cos() < -0.1 { 16.0 } else { 0.0 };
            Place { frame, anchor, near, distance }
        })
    };
    DISTANCES.into_iter().flat_map(around).collect()
}

/// Points along a line, some pixels apart.
fn dots(line: &[Point]) -> Vec<Point> {
    const APART: f64 = 4.0;
    let mut dots = Vec::new();
    for pair in line.windows(2) {
        let ((x, y), (to_x, to_y)) = (pair[0], pair[1]);
        let count = ((to_x - x).hypot(to_y - y) / APART).ceil().max(1.0);
        let share = |dot: u32| f64::from(dot) / count;
        let all = (0..=count as u32).map(share);
        dots.extend(all.map(|share| (x + share * (to_x - x), y + share * (to_y - y))));
    }
    dots
}
