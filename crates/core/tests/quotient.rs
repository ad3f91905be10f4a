//! The quotient filter: against its model, its rates, hostile bytes, large sizes, its file.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod models {
    pub(crate) mod quotient;
}
mod naive;

use petal_testkit::rng::Rng;

use models::quotient::drive;

// ---- Model --------------------------------------------------------------------------------------

#[test]
fn any_series_of_operations_equals_the_model() {
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let length = rng.below(3000);
        drive(&rng.bytes(length));
    }
}
