//! Affine expressions in sizes and indices, as the generator handles them.

use std::collections::BTreeMap;

/// `Σ coefficient · name + constant`
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Affine {
    pub terms: BTreeMap<String, i64>,
    pub constant: i64,
}

impl Affine {
    pub fn number(constant: i64) -> Self {
        Affine { terms: BTreeMap::new(), constant }
    }

    pub fn name(name: &str) -> Self {
        Affine { terms: BTreeMap::from([(name.to_string(), 1)]), constant: 0 }
    }

    /// `self + factor * other`
    pub fn plus(&self, factor: i64, other: &Affine) -> Self {
        let mut sum = self.clone();
        for (name, coefficient) in &other.terms {
            *sum.terms.entry(name.clone()).or_default() += factor * coefficient;
        }
        sum.terms.retain(|_, coefficient| *coefficient != 0);
        sum.constant += factor * other.constant;
        sum
    }

    pub fn shift(&self, by: i64) -> Self {
        self.plus(by, &Affine::number(1))
    }

    pub fn at(&self, values: &BTreeMap<String, i64>) -> i64 {
        self.constant + self.terms.iter().map(|(name, coefficient)| coefficient * values[name]).sum::<i64>()
    }
}

impl std::fmt::Display for Affine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut first = true;
        let mut sign = |f: &mut std::fmt::Formatter<'_>, value: i64| {
            let sign = match (std::mem::take(&mut first), value < 0) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            };
            write!(f, "{sign}")
        };
        for (name, coefficient) in &self.terms {
            sign(f, *coefficient)?;
            match coefficient.abs() {
                1 => write!(f, "{name}")?,
                other => write!(f, "{other}*{name}")?,
            }
        }
        if self.constant != 0 || self.terms.is_empty() {
            sign(f, self.constant)?;
            write!(f, "{}", self.constant.abs())?;
        }
        Ok(())
    }
}
