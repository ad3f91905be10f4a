//! The links of an HTML page.

use std::convert::Infallible;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};
use url::Url;

/// Returns the `href` of each `a` and `area` element, and the URL that they are relative to: that of the page, or of
/// its `base` element.
pub(crate) fn links(html: &[u8], page: &Url) -> (Url, Vec<String>) {
    let (mut base, mut links) = (None, Vec::new());
    let (mut tag, mut is_href) = (Vec::new(), false);
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                tag = name.to_vec();
                is_href = false;
            }
            CallbackEvent::AttributeName { name } => is_href = name == b"href",
            CallbackEvent::AttributeValue { value } if is_href => {
                let value = || String::from_utf8_lossy(value).into_owned();
                match tag.as_slice() {
                    b"a" | b"area" => links.push(value()),
                    b"base" if base.is_none() => base = page.join(&value()).ok(),
                    _ => {}
                }
            }
            // End tags can have attributes, too.
            CallbackEvent::CloseStartTag { .. } => tag.clear(),
            _ => {}
        }
        None::<Infallible>
    });
    // The text of scripts and styles has no tags.
    emitter.naively_switch_states(true);
    let Ok(()) = Tokenizer::new_with_emitter(html, emitter).finish();
    (base.unwrap_or_else(|| page.clone()), links)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(html: &str) -> (String, Vec<String>) {
        let (base, links) = links(html.as_bytes(), &Url::parse("http://a.example/x/y").unwrap());
        (base.into(), links)
    }

    #[test]
    fn links_of_all_notations_are_found() {
        let html = r#"<A HREF=/1>1</A><a class=x href='/2?a=1&amp;b=2'><area href="/3"><a href=" /4
            "><a name=x><link href=/no><img src=/no></a href=/no>"#;
        let (base, found) = of(html);
        assert_eq!(base, "http://a.example/x/y");
        assert_eq!(found, ["/1", "/2?a=1&b=2", "/3", " /4\n            "]);
    }

    #[test]
    fn comments_and_scripts_have_no_links() {
        let html = "<!-- <a href=/no> --><script>x = '<a href=/no>';</script><title><a href=/no></title><a href=/yes>";
        assert_eq!(of(html).1, ["/yes"]);
    }

    #[test]
    fn first_base_element_counts() {
        assert_eq!(of("<base href=/d/><base href=/e/>").0, "http://a.example/d/");
    }
}
