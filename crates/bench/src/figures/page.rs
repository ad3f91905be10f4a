//! Replaces the text between two markers of a page.

/// Returns the page with a new body between `<!-- figures: NAME -->` and the next `<!-- /figures -->`.
///
/// # Errors
/// A line, if a marker is missing.
pub fn replace(page: &str, name: &str, body: &str) -> Result<String, String> {
    let open = format!("<!-- figures: {name} -->");
    let close = "<!-- /figures -->";
    let (before, rest) =
        page.split_once(&open).ok_or_else(|| format!("the marker `{open}` is missing"))?;
    let (old, after) =
        rest.split_once(close).ok_or_else(|| format!("`{close}` is missing after `{open}`"))?;
    if old.contains("<!-- figures:") {
        return Err(format!("`{close}` is missing after `{open}`"));
    }
    // Without blank lines Markdown would take the markers as part of a table.
    let body = body.trim();
    let body = if body.is_empty() { "\n".to_owned() } else { format!("\n\n{body}\n\n") };
    Ok(format!("{before}{open}{body}{close}{after}"))
}
