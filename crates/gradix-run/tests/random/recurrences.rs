//! Random recurrences that are valid by construction: circles of one to three definitions, rising and falling, lags of one to
//! three, one or two ordered indices, reads at the same step, reductions and guards inside.

use crate::support::noise::Noise;

/// The program of a seed.
pub fn recurrences(seed: u64) -> String {
    let mut noise = Noise::new(seed ^ 0x4ec0_44e5);
    match noise.below(5) {
        0 => grid(&mut noise),
        1 => triangle(&mut noise),
        _ => circle(&mut noise),
    }
}

/// A member of a circle: its name, and the indices, of which one is time.
struct Member {
    name: &'static str,
    indices: Vec<&'static str>,
}

impl Member {
    /// An element, with time and the other indices as given.
    fn at(&self, time: &str, place: &dyn Fn(&str) -> String) -> String {
        let subscripts: Vec<String> =
            self.indices.iter().map(|&index| if index == "t" { time.to_string() } else { place(index) }).collect();
        format!("{}[{}]", self.name, subscripts.join(", "))
    }
}

/// Definitions that go through time together.
fn circle(noise: &mut Noise) -> String {
    let falling = noise.percent(40);
    let others = &["i", "j"][..*noise.pick(&[0, 1, 1, 2])];
    let count = 1 + noise.below(3);
    let members: Vec<Member> = ["h", "g", "c"][..count]
        .iter()
        .map(|name| {
            let mut indices = others.to_vec();
            indices.insert(noise.below(others.len() + 1), "t");
            Member { name, indices }
        })
        .collect();
    let more = *noise.pick(&["", "", " + 1"]);
    let extents = |index: &str| match index {
        "t" => format!("T{more}"),
        "i" => "N".to_string(),
        _ => "M".to_string(),
    };
    let mut text = "param T, N, M\ninput a[T], b[N], w[N, N], s\n".to_string();
    for number in 0..count {
        let member = &members[number];
        let binders: Vec<String> =
            member.indices.iter().map(|index| format!("{index} in 0..{}", extents(index))).collect();
        let mut terms = vec![source(noise, others)];
        // Every one reads the next at an earlier step, so that they form a circle, and maybe others.
        terms.push(earlier(noise, &members[(number + 1) % count], others, falling));
        if noise.percent(40) {
            let other = noise.below(count);
            terms.push(earlier(noise, &members[other], others, falling));
        }
        if number > 0 && noise.percent(60) {
            let now = members[noise.below(number)].at("t", &|index| index.to_string());
            terms.push(format!("0.3 * {now}"));
        }
        let body = terms.join(" + ");
        let body = match noise.below(6) {
            5 => format!("0.5 * ({body}) + 0.3 * stop({body})"),
            0 => format!("tanh({body})"),
            1 => format!("sin({body})"),
            2 => format!("max({body}, {})", source(noise, others)),
            _ => format!("0.5 * ({body})"),
        };
        text += &format!("{}[{}] = {body}\n", member.name, binders.join(", "));
    }
    if noise.percent(50) {
        let last = &members[count - 1];
        let sums: Vec<String> = last.indices.iter().map(|index| format!("{index} in 0..{}", extents(index))).collect();
        text += &format!("y = sum[{}] {}^2\n", sums.join(", "), last.at("t", &|index| index.to_string()));
        return text + "output y\n";
    }
    let names: Vec<&str> = members.iter().map(|member| member.name).collect();
    text + &format!("output {}\n", names[noise.below(count)..].join(", "))
}

/// Something that is no part of the circle.
fn source(noise: &mut Noise, others: &[&str]) -> String {
    let place = if others.contains(&"i") { "i" } else { "0" };
    match noise.below(5) {
        0 => "s".into(),
        1 => "pad(a[t], s)".into(),
        2 => format!("pad(b[{place}], 1)"),
        3 => format!("(if t % 2 == 0 then pad(a[t], 0) else pad(b[{place}], 0))"),
        _ => "0.2 * t".into(),
    }
}

/// A read at an earlier step.
fn earlier(noise: &mut Noise, member: &Member, others: &[&str], falling: bool) -> String {
    let lag = 1 + noise.below(3) as i64;
    let time = if falling { format!("t + {lag}") } else { format!("t - {lag}") };
    let moved = noise.below(6);
    let place = |index: &str| match moved {
        0 => format!("wrap({index} - 1)"),
        1 => format!("clamp({index} + 1)"),
        _ => index.to_string(),
    };
    if others.contains(&"i") && noise.percent(25) {
        let reduction = *noise.pick(&["sum", "max", "sum", "mean", "logsumexp"]);
        let summed = member.at(&time, &|index| if index == "i" { "k".into() } else { index.to_string() });
        return format!("0.4 * {reduction}[k in 0..N] (w[i, k] * pad({summed}, 0.5))");
    }
    if !falling && noise.percent(15) {
        let half = member.at("t // 2", &|index| index.to_string());
        return format!("(if t >= 1 then {half} else s)");
    }
    let read = member.at(&time, &place);
    match noise.below(3) {
        0 if !falling => format!("(if t >= {lag} then {read} * s else b_0)").replace("b_0", "0.1"),
        _ if moved <= 1 && !falling => format!("(if t >= {lag} then {read} else 0.2)"),
        _ => format!("0.7 * pad({}, s)", member.at(&time, &|index| index.to_string())),
    }
}

/// Neighbours in two directions, each rising or falling.
fn grid(noise: &mut Noise) -> String {
    let (down, right) = (noise.percent(50), noise.percent(50));
    let step = |name: &str, rising: bool| if rising { format!("{name} - 1") } else { format!("{name} + 1") };
    let (i, j) = (step("i", down), step("j", right));
    let smooth = *noise.pick(&["min(u, v)", "0.4 * (u + v)", "tanh(u * v)", "0.4 * (u + stop(v))"]);
    let body = smooth.replace('u', &format!("pad(d[{i}, j], x[0, 0])")).replace('v', &format!("pad(d[i, {j}], 0.5)"));
    let corner = if noise.percent(50) { format!(" + 0.3 * pad(d[{i}, {j}], 1)") } else { String::new() };
    let result = if noise.percent(50) { "y = sum[i, j] d[i, j] * x[i, j]\noutput y\n" } else { "output d\n" };
    format!("param N >= 1, M >= 1\ninput x[N, M]\nd[i in 0..N, j in 0..M] = x[i, j] + {body}{corner}\n{result}")
}

/// All earlier elements, or all later ones.
fn triangle(noise: &mut Noise) -> String {
    let (range, matrix) = match noise.below(3) {
        0 => ("0..i", "w[i, k]"),
        1 => ("i + 1..N", "w[k, i]"),
        _ => ("0..i", "w[i, k] * w[k, i]"),
    };
    let sum = format!("sum[k in {range}] {matrix} * y[k]");
    let body = match noise.below(3) {
        0 => format!("(x[i] - {sum}) / (2 + w[i, i]^2)"),
        1 => format!("x[i] + 0.3 * {sum}"),
        _ => format!("sin(x[i] + {sum})"),
    };
    format!("input x[N], w[N, N]\ny[i in 0..N] = {body}\noutput y\n")
}
