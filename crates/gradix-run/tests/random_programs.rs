//! x
mod support;
#[test]
fn t() {
    let plan = support::check::Plan { seed: 1, special: true, runs: 3, jacobian: true, second: true };
    println!("{:?}", support::check::check("input x[N]\ny[i] = sum[k in 0..=i] sin(x[k])*x[i]", plan));
    println!("{:?}", support::check::check("input x[N]\ny = prod[k] x[k]", plan));
}
