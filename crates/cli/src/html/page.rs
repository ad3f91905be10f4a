//! The frame of a page: text, tables, figures.

use super::chart::Width;
use super::escape::escape;
use super::palette::{Color, styles};
use crate::error::Result;

/// A page.
pub(crate) struct Page {
    title: String,
    subtitle: String,
    body: String,
}

/// A value in a table: a text, and its exact number if it has one.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    text: String,
    exact: Option<String>,
}

impl Cell {
    /// A number as `text` shows it.
    pub(super) fn number(exact: impl ToString, text: String) -> Self {
        Self { text, exact: Some(exact.to_string()) }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), exact: None }
    }
}

/// A row of a list of facts: the name of the field in JSON, if there is one, a label and a value.
pub(super) type Fact = (&'static str, String, Cell);

/// A chart in two widths, with a heading, an explanation and a legend.
pub(super) struct Figure<'a> {
    pub(super) heading: &'a str,
    pub(super) text: &'a str,
    pub(super) legend: &'a [(Color, String)],
}

/// The widths of charts; the style sheet shows one of them.
const WIDTHS: [(&str, Width); 2] = [("wide", Width::Wide), ("narrow", Width::Narrow)];

impl Page {
    pub(super) fn new(title: impl Into<String>, subtitle: impl Into<String>) -> Self {
        Self { title: title.into(), subtitle: subtitle.into(), body: String::new() }
    }

    /// Adds a paragraph.
    pub(super) fn paragraph(&mut self, text: &str) {
        self.push(&format!("<p>{}</p>\n", escape(text)));
    }

    /// Adds a warning.
    pub(super) fn warning(&mut self, text: &str) {
        self.push(&format!("<p class=\"warning\">{}</p>\n", escape(text)));
    }

    /// Adds a list of facts.
    pub(super) fn facts(&mut self, facts: &[Fact]) {
        self.push("<table class=\"facts\"><tbody>\n");
        for (field, label, value) in facts {
            let field = match *field {
                "" => String::new(),
                field => format!(" data-field=\"{}\"", escape(field)),
            };
            let (label, value) = (escape(label), cell(value));
            self.push(&format!("<tr><th scope=\"row\">{label}</th><td{field}>{value}</td></tr>\n"));
        }
        self.push("</tbody></table>\n");
    }

    /// Adds a table with a heading; the first cell of each row is its name.
    pub(super) fn table(&mut self, heading: &str, head: &[&str], rows: &[Vec<Cell>]) {
        if !heading.is_empty() {
            self.push(&format!("<h2>{}</h2>\n", escape(heading)));
        }
        self.push("<div class=\"scroll\"><table class=\"values\"><thead><tr>");
        for name in head {
            self.push(&format!("<th scope=\"col\">{}</th>", escape(name)));
        }
        self.push("</tr></thead><tbody>\n");
        for row in rows {
            let cells = row.iter().map(|value| format!("<td>{}</td>", cell(value)));
            let cells = cells.collect::<String>();
            self.push(&format!("<tr>{cells}</tr>\n"));
        }
        self.push("</tbody></table></div>\n");
    }

    /// Adds a figure, drawn by `draw` for each width.
    pub(super) fn figure(
        &mut self,
        figure: &Figure<'_>,
        draw: impl Fn(Width) -> Result<String>,
    ) -> Result<()> {
        let Figure { heading, text, legend } = figure;
        let (heading, text) = (escape(heading), escape(text));
        self.push(&format!("<figure>\n<h2>{heading}</h2>\n<p>{text}</p>\n"));
        if !legend.is_empty() {
            self.push("<ul class=\"legend\">");
            for (color, name) in *legend {
                let (color, name) = (color.variable(), escape(name));
                self.push(&format!("<li><i class=\"{color}\"></i>{name}</li>"));
            }
            self.push("</ul>\n");
        }
        for (class, width) in WIDTHS {
            self.push(&inline(&draw(width)?, class, &heading));
        }
        self.push("</figure>\n");
        Ok(())
    }

    fn push(&mut self, html: &str) {
        self.body.push_str(html);
    }

    /// Returns the page as HTML, which is also well-formed XML.
    pub(crate) fn html(&self) -> String {
        let (title, subtitle) = (escape(&self.title), escape(&self.subtitle));
        let (styles, body, version) = (styles(), &self.body, env!("CARGO_PKG_VERSION"));
        let layout = include_str!("page.css");
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
             style-src 'unsafe-inline'; img-src data:\"/>\n\
             <meta name=\"generator\" content=\"petal {version}\"/>\n\
             <link rel=\"icon\" href=\"data:,\"/>\n\
             <title>{title}</title>\n<style>\n{styles}{layout}</style>\n</head>\n<body>\n<main>\n\
             <h1>{title}</h1>\n<p class=\"subtitle\">{subtitle}</p>\n{body}\
             <footer>petal {version}</footer>\n</main>\n</body>\n</html>\n"
        )
    }
}

/// Returns a chart as an element of the page.
fn inline(svg: &str, class: &str, label: &str) -> String {
    let start = format!("<svg class=\"{class}\" role=\"img\" aria-label=\"{label}\" ");
    svg.replacen("<svg ", &start, 1).replacen(" xmlns=\"http://www.w3.org/2000/svg\"", "", 1)
}

fn cell(cell: &Cell) -> String {
    let text = escape(&cell.text);
    match &cell.exact {
        Some(exact) => format!("<data value=\"{}\">{text}</data>", escape(exact)),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_of_a_page_is_escaped() {
        let text = "<script>&\"'";
        let mut page = Page::new(text, text);
        page.paragraph(text);
        page.warning(text);
        page.facts(&[("field", text.to_owned(), Cell::number(text, text.to_owned()))]);
        page.table(text, &[text], &[vec![text.into()]]);
        let figure = Figure { heading: text, text, legend: &[(Color::Main, text.to_owned())] };
        page.figure(&figure, |_| Ok("<svg />".to_owned())).unwrap();
        let html = page.html();
        assert!(!html.contains("<script"), "{html}");
        assert_eq!(html.matches("&lt;script&gt;&amp;&quot;&#39;").count(), 16, "{html}");
    }
}
