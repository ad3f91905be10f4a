//! Filters for JavaScript, and the calculator and the strip of bits of the book, as WebAssembly.
//!
//! All numbers come from the library: sizes from its builders, rates from `petal::math`, bits from its filters. A page
//! calls [`call`] with a request in JSON and gets an answer in JSON; `exports` passes both through the memory of the
//! module. `cargo x js` builds the module; `js/petal.js` is the interface of `filters`.

mod curves;
mod exports;
mod filters;
mod lines;
mod plan;
mod strip;

use serde_json::{Value, json};

/// The result of a request; the error is a sentence.
type Result<T> = std::result::Result<T, String>;

/// Answers a request: an object whose `op` is `plan`, `curves` or `strip`. The answer has the field `error` if the
/// request is invalid or has no solution.
#[must_use]
pub fn call(request: &str) -> String {
    answer(request).unwrap_or_else(|error| json!({ "error": error })).to_string()
}

fn answer(request: &str) -> Result<Value> {
    let request: Value = serde_json::from_str(request).map_err(|error| error.to_string())?;
    match request["op"].as_str() {
        Some("plan") => plan::plan(&request).map(|plan| {
            let mut answer = plan::to_json(&plan);
            answer["lines"] = lines::lines(&plan);
            answer
        }),
        Some("curves") => Ok(curves::curves(&plan::plan(&request)?)),
        Some("strip") => strip::strip(&request),
        _ => Err("op: expected plan, curves or strip".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(request: Value) -> Value {
        serde_json::from_str(&call(&request.to_string())).unwrap()
    }

    #[test]
    fn plans_of_all_types_keep_rate_and_memory() {
        for filter_type in [
            "bloom",
            "classic",
            "counting",
            "counting-classic",
            "quotient",
            "vector-quotient",
            "scalable",
            "windowed",
            "static",
            "static-fuse",
        ] {
            let with = |capacity: Value, fpr: Value, memory: Value| {
                ask(json!({
                    "op": "plan", "type": filter_type, "capacity": capacity, "fpr": fpr, "memory": memory,
                }))
            };
            let plan = with(json!(1e6), json!(0.01), Value::Null);
            let size = plan["size_bytes"].as_u64().unwrap();
            assert!(plan["fpr"].as_f64().unwrap() <= 0.0101, "{plan}");
            assert!((800_000..6_000_000).contains(&size), "{plan}");

            let keys = with(Value::Null, json!(0.01), json!(size))["capacity"].as_f64().unwrap();
            assert!((0.98e6..=1.03e6).contains(&keys), "{filter_type}: {keys}");

            let fitted = with(json!(1e6), Value::Null, json!(size));
            let fpr = fitted["fpr"].as_f64().unwrap();
            assert!(fitted["size_bytes"].as_u64().unwrap() <= size, "{fitted}");
            assert!((0.002..0.0105).contains(&fpr), "{fitted}");
        }
    }

    /// The calculator and the library give the same numbers.
    #[test]
    fn plans_equal_those_of_the_library() {
        use petal::{ByteSize, FilterSpec, FilterType};

        let mut planned = 0;
        for request in petal_testkit::size_requests::size_requests(300) {
            let filter_type: FilterType = request.name.parse().unwrap();
            let question = json!({
                "op": "plan", "type": request.name, "capacity": request.capacity, "fpr": request.fpr,
                "memory": request.memory, "probes": request.probes,
            });
            // A number in JSON may differ in its last bit.
            let question: Value = serde_json::from_str(&question.to_string()).unwrap();
            let spec = FilterSpec {
                capacity: request.capacity,
                fpr: question["fpr"].as_f64(),
                memory: request.memory.map(ByteSize::bytes),
                probes: request.probes,
                lowest_fpr: plan::has_probes(filter_type).then_some(FilterSpec::USEFUL_FPR),
                ..FilterSpec::new(filter_type)
            };
            let answer = ask(question);
            match spec.plan() {
                Ok(plan) => {
                    let capacity = plan.best_capacity();
                    assert_eq!(answer["capacity"], json!(capacity), "{request:?}");
                    assert_eq!(answer["size_bytes"], json!(plan.size_bytes()), "{request:?}");
                    assert_eq!(answer["bits"], json!(plan.bits()), "{request:?}");
                    let fpr = plan.expected_fpr(capacity);
                    let found = answer["fpr"].as_f64().unwrap();
                    assert!((found - fpr).abs() <= 1e-12 * fpr, "{request:?}");
                    assert_eq!(answer["probes"], json!(plan.probes()), "{request:?}");
                    planned += 1;
                }
                Err(error) => assert!(answer["error"].is_string(), "{request:?}: {error}"),
            }
        }
        assert!(planned > 200, "{planned}");
    }

    #[test]
    fn probes_determine_the_size() {
        let plan = |fields: Value| {
            let mut request = json!({ "op": "plan", "type": "classic" });
            request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            ask(request)
        };
        let best = plan(json!({ "capacity": 1000, "probes": 10 }));
        assert!((best["fpr"].as_f64().unwrap() * 1024.0 - 1.0).abs() < 0.03, "{best}");
        let full = plan(json!({ "memory": 1 << 20, "probes": 10 }));
        assert_eq!(full["bits"], json!(8 << 20));
        assert_eq!(full["capacity"], json!(581_453));
        let four = plan(json!({ "memory": 1 << 20, "probes": 4, "fpr": 0.01 }));
        assert!(four["fpr"].as_f64().unwrap() <= 0.01 && four["probes"] == 4);
        let given = plan(json!({ "capacity": 5e9, "memory": 4_000_000_000u64, "probes": 4 }));
        assert!((given["fpr"].as_f64().unwrap() / 0.0466 - 1.0).abs() < 2e-3, "{given}");
    }

    #[test]
    fn invalid_requests_are_errors() {
        for request in [
            json!({ "op": "plan", "type": "none", "capacity": 1, "fpr": 0.1 }),
            json!({ "op": "plan", "capacity": 10 }),
            json!({ "op": "plan", "capacity": 0.5, "fpr": 0.1 }),
            json!({ "op": "plan", "capacity": 10, "fpr": 1.5 }),
            json!({ "op": "plan", "capacity": 10, "fpr": 1e-30 }),
            json!({ "op": "plan", "type": "classic", "capacity": 10, "memory": 1 }),
            json!({ "op": "plan", "capacity": 1e9, "fpr": 0.01, "memory": 1000 }),
            json!({ "op": "plan", "type": "cascade", "capacity": 10, "fpr": 0.1 }),
            json!({ "op": "plan", "type": "quotient", "capacity": 10, "fpr": 0.1, "probes": 3 }),
            json!({ "op": "plan", "type": "vector-quotient", "capacity": 10, "fpr": 1e-7 }),
            json!({ "op": "strip", "bits": 1000, "probes": 3 }),
            json!({}),
        ] {
            let answer = ask(request.clone());
            assert!(
                answer["error"].as_str().is_some_and(|text| text.len() > 5),
                "{request}: {answer}"
            );
        }
        assert!(call("{").contains("error"));
    }

    #[test]
    fn fixed_probes_are_shown_without_a_curve() {
        let mut request =
            json!({ "op": "plan", "type": "windowed", "capacity": 2720, "fpr": 4e-7 });
        assert_eq!(ask(request.clone())["probes"], 16);
        request["op"] = json!("curves");
        assert_eq!(ask(request)["probes"], Value::Null);
    }

    #[test]
    fn curves_pass_through_the_plan() {
        let request = json!({ "op": "curves", "type": "classic", "capacity": 1000, "fpr": 0.01 });
        let (curves, mut plan) = (ask(request.clone()), request);
        plan["op"] = json!("plan");
        let plan = ask(plan);
        let probes = plan["probes"].as_u64().unwrap() as usize;
        assert_eq!(curves["probes"]["fpr"][probes - 1], plan["fpr"]);
        let (keys, fpr) = (&curves["keys"]["keys"], &curves["keys"]["fpr"]);
        let at = keys.as_array().unwrap().iter().position(|keys| keys == 1000).unwrap();
        assert_eq!(fpr[at], plan["fpr"]);
        assert!(
            curves["rates"]["limit"][3].as_f64().unwrap()
                < curves["rates"]["static"][3].as_f64().unwrap()
        );
    }

    #[test]
    fn cleared_bits_break_another_key_and_counters_do_not() {
        // The first key that shares a bit with `a`.
        let positions = |key: &str| {
            ask(json!({ "op": "strip", "bits": 64, "probes": 3, "query": key }))["positions"]
                .clone()
        };
        let shares = |key: &String| {
            let (a, b) = (positions("a"), positions(key));
            a.as_array().unwrap().iter().any(|at| b.as_array().unwrap().contains(at)) && a != b
        };
        let other = (0..100).map(|number| number.to_string()).find(shares).unwrap();
        let query = |counters: bool, operations: Value, key: &str| {
            ask(json!({
                "op": "strip", "bits": 64, "probes": 3, "counters": counters, "operations": operations,
                "query": key,
            }))
        };
        let operations = json!([["add", "a"], ["add", other], ["remove", "a"]]);
        for counters in [false, true] {
            let before = query(counters, json!([["add", "a"], ["add", other]]), &other);
            assert_eq!(before["contained"], true);
            let after = query(counters, operations.clone(), &other);
            assert_eq!(after["contained"], counters, "{after}");
        }
        let twice = query(true, json!([["add", "a"], ["add", "a"]]), "a");
        let at = positions("a")[0].as_u64().unwrap() as usize;
        assert_eq!(twice["cells"][at], 2);
    }
}
