//! Arrows between crates, from `cargo metadata --no-deps`.

use serde_json::Value;

use super::rules::{CRATES, DEV_ONLY};
use crate::step::Result;

/// Every dependency of a crate of ours on a crate of ours that is not drawn.
pub(super) fn check(metadata: &str) -> Result<Vec<String>> {
    let metadata: Value =
        serde_json::from_str(metadata).map_err(|e| format!("cargo metadata: {e}"))?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata: no packages")?;
    let ours: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut findings = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(rule) = CRATES.iter().find(|rule| rule.name == name) else {
            findings.push(format!("crate `{name}` is not in the table of crates"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let to = dependency["name"].as_str().unwrap_or_default();
            if !ours.contains(&to) {
                continue;
            }
            let dev = dependency["kind"].as_str() == Some("dev");
            let allowed = if dev {
                to == DEV_ONLY || rule.uses.contains(&to)
            } else {
                rule.uses.contains(&to)
            };
            if !allowed {
                let kind = if dev { "dev-depends" } else { "depends" };
                findings.push(format!("crate `{name}` {kind} on `{to}`: no such arrow"));
            }
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn arrows_between_crates() {
        let metadata = r#"{"packages": [
            {"name": "petal-filters", "dependencies": [{"name": "libc", "kind": null}, {"name": "petal-testkit", "kind": "dev"}]},
            {"name": "petal-lines", "dependencies": [{"name": "petal-filters", "kind": null}, {"name": "petal-cli", "kind": null}]},
            {"name": "petal-cli", "dependencies": [{"name": "petal-testkit", "kind": null}]},
            {"name": "petal-testkit", "dependencies": []},
            {"name": "petal-new", "dependencies": []}]}"#;
        let findings = check(metadata).unwrap();
        assert_eq!(findings.len(), 3, "{findings:?}");
        assert!(findings[0].contains("`petal-lines` depends on `petal-cli`"));
        assert!(findings[1].contains("`petal-cli` depends on `petal-testkit`"));
        assert!(findings[2].contains("`petal-new` is not in the table"));
    }
}
