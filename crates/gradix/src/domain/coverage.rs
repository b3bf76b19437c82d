//! Which accesses of a program are evaluated somewhere at some sizes.

use crate::domain::bounds::at;
use crate::domain::guard::{self, Guard};
use crate::domain::system;
use crate::program::Program;
use gradix_int::Int;

/// The points at which each access is evaluated, in each of its cases; those that no sizes let be evaluated are left out.
pub struct Coverage {
    domains: Vec<Guard>,
}

impl Coverage {
    /// That of all accesses.
    pub fn of(program: &Program) -> Coverage {
        let (context, mut exprs) = (program.size_context(), program.exprs.clone());
        let mut domains = Vec::new();
        for definition in &program.definitions {
            let domain = definition.domain();
            for (_, guards) in guard::guarded_accesses(&mut exprs, definition.body) {
                domains.extend(guards.iter().map(|guard| guard::join(&domain, guard)));
            }
        }
        domains.sort();
        domains.dedup();
        domains.retain(|domain: &Guard| !system::is_empty(&[context.as_slice(), domain].concat()));
        Coverage { domains }
    }

    /// How many are evaluated nowhere at these sizes, one for each param.
    pub fn missing(&self, sizes: &[Int]) -> usize {
        let is_missing = |domain: &&Guard| {
            let rows: Guard = domain.iter().map(|row| at(row, sizes)).collect();
            system::is_empty(&rows)
        };
        self.domains.iter().filter(is_missing).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_under_conditions_are_evaluated_where_these_hold() {
        let text = "input x[N]; y[i in 0..N] = if i < 4 then x[i] else sum[j in 5..i, j < N - 6] x[j]";
        let program = crate::resolve(&crate::syntax::parse(text).unwrap(), &[]).unwrap().program;
        let coverage = Coverage::of(&program);
        let missing: Vec<usize> = [0, 3, 5, 12].map(|n| coverage.missing(&[Int::from(n)])).to_vec();
        assert_eq!(missing, [3, 2, 1, 0]);
    }
}
