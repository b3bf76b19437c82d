//! `gradix derive`

use std::collections::HashSet;

use serde_json::Value;

use crate::{data, example, gradix, gradix_with_input, prints, refuses};

#[test]
fn the_derivative_is_a_program_of_the_same_language() {
    let output = gradix(&["derive", "-e", "input a[I, K], b[K, J]; c[i, j] = sum[k] a[i, k] * b[k, j]", "--wrt", "a"]);
    let expected = "param I, K, J\ninput b[K, J], dc[I, J]\nda[i, k] = sum[j] dc[i, j] * b[k, j]\n";
    assert_eq!(prints(&output), expected);
}

#[test]
fn every_mode_has_its_own_results() {
    let text = "input x[N]; f = sum[i] x[i]^3";
    for (mode, result) in
        [("reverse", "dx["), ("forward", "f_dot ="), ("jacobian", "jac_f_x["), ("hessian", "hess_f_x_x[")]
    {
        let output = gradix(&["derive", "-e", text, "--mode", mode]);
        assert!(prints(&output).contains(&format!("\n{result}")), "{mode}: {}", prints(&output));
    }
}

#[test]
fn a_verified_derivative_is_printed_as_any_other() {
    let text = "input x[N], w[K]; y[i] = sum[k] x[2*i + k] * w[k]; f = sum[i] y[i]^2";
    for mode in ["reverse", "forward", "jacobian", "hessian"] {
        let arguments = ["derive", "-e", text, "--mode", mode, "--of", "f", "--wrt", "x"];
        let plain = gradix(&arguments);
        let verified = gradix(&[&arguments[..], &["--verify"]].concat());
        assert_eq!(data(&verified), prints(&plain), "{mode}");
        let told = str::from_utf8(&verified.stderr).unwrap();
        assert!(told.starts_with("verified at N = 1, K = 1; ") && told.lines().count() == 1, "{told}");
        assert_eq!(prints(&gradix(&[&arguments[..], &["--verify", "--quiet"]].concat())), prints(&plain), "{mode}");
    }
}

#[test]
fn a_derivative_at_sizes_that_are_too_large_is_not_verified() {
    let text = "input x[N, N]; f = sum[i, j] x[i, j]^2";
    let output = gradix(&["derive", "-e", text, "--param", "N=1000000", "--verify", "--quiet"]);
    assert!(data(&output).contains("dx[i, j]"));
    assert_eq!(str::from_utf8(&output.stderr).unwrap(), "not verified: the sizes are too large\n");
}

#[test]
fn a_derivative_can_be_derived_again() {
    let once = gradix(&["derive", &example("rbf")]);
    let twice = gradix_with_input(&["derive", "-"], prints(&once).as_bytes());
    assert!(prints(&twice).contains("\nddy["), "{}", prints(&twice));
}

#[test]
fn inlined_derivatives_have_no_temporaries() {
    let names = |output: &str| output.lines().filter(|line| !line.starts_with("input")).count();
    let (plain, inline) = (gradix(&["derive", &example("rbf")]), gradix(&["derive", &example("rbf"), "--inline"]));
    assert!(names(prints(&plain)) > names(prints(&inline)));
    let definitions = |line: &&str| ["dx[", "dz[", "dw["].iter().any(|start| line.starts_with(start));
    assert_eq!(prints(&inline).lines().filter(definitions).count(), 3);
}

#[test]
fn formulas_are_for_latex() {
    let output = gradix(&["derive", "-e", "input x[N]; f = sum[i] x[i]^2", "--format", "latex"]);
    let text = prints(&output);
    assert!(text.starts_with("\\begin{") && text.ends_with("}\n") && text.contains("\\mathbb{R}^{N}"), "{text}");
}

#[test]
fn json_has_every_part_of_the_program() {
    let output = gradix(&["derive", "-e", "param N >= 2; input x[N]; y[i in 0..N//2] = x[2*i]^2", "--format", "json"]);
    let program: Value = serde_json::from_str(prints(&output)).unwrap();
    assert_eq!((program["format"].as_str(), program["version"].as_u64()), (Some("gradix-program"), Some(1)));
    assert_eq!(program["params"][0]["name"], "N");
    assert!(program["facts"].as_array().unwrap().iter().any(|fact| fact["text"] == "N >= 2"), "{}", program["facts"]);
    assert_eq!(program["inputs"][0]["name"], "x");
    assert_eq!(program["inputs"][0]["extents"][0]["terms"]["N"], 1);
    assert_eq!(program["outputs"][0], "dx");
    let definition = program["definitions"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&definition["name"], &definition["rank"], &definition["reduction"]),
        (&"dx".into(), &1.into(), &Value::Null)
    );
    assert_eq!(
        (&definition["indices"][0]["low"][0]["constant"], &definition["indices"][0]["high"][0]["text"]),
        (&0.into(), &"N - 1".into())
    );
    let nodes = definition["nodes"].as_array().unwrap();
    let root = &nodes[definition["body"].as_u64().unwrap() as usize];
    assert_eq!(root["op"], "if");
    assert!(root["condition"].to_string().contains("i % 2 == 0"), "{root}");
    let half = nodes.iter().find(|node| node["tensor"] == "dy").unwrap();
    let floor = &half["subscripts"][0]["floors"][0];
    assert_eq!((&floor["factor"], &floor["of"]["terms"]["i"], &floor["divisor"]), (&1.into(), &1.into(), &2.into()));
}

#[test]
fn json_operands_come_before_their_users() {
    let output = gradix(&["derive", &example("attention"), "--format", "json"]);
    let program: Value = serde_json::from_str(prints(&output)).unwrap();
    for definition in program["definitions"].as_array().unwrap() {
        for (place, node) in definition["nodes"].as_array().unwrap().iter().enumerate() {
            assert_eq!(node["id"], place);
            let operands = node["operands"].as_array().cloned().unwrap_or_default();
            assert!(operands.iter().all(|operand| operand.as_u64().unwrap() < place as u64), "{node}");
        }
    }
}

#[test]
fn infinities_have_names_in_json() {
    let output = gradix(&["derive", "-e", "input x[N]; y[i] = max(x[i], -inf) * x[i]", "--format", "json"]);
    assert!(prints(&output).contains("\"-inf\""), "{}", prints(&output));
}

#[test]
fn the_graph_has_the_function_in_blue_and_the_derivative_in_red() {
    let output = gradix(&["derive", "-e", "input x1, x2; f = sin(x1 * x2)", "--format", "dot"]);
    let dot = prints(&output);
    for (label, style) in [
        ("x1", "shape=box, color=blue"),
        ("sin", "shape=ellipse, color=blue"),
        ("f", "shape=box, style=filled, color=blue, fontcolor=white"),
        ("df", "shape=box, color=red"),
        ("cos", "shape=ellipse, color=red"),
        ("dx1", "shape=box, style=filled, color=red, fontcolor=white"),
    ] {
        assert!(dot.contains(&format!("[label=\"{label}\", {style}];")), "{label} in {dot}");
    }
}

#[test]
fn the_graph_is_drawn_without_graphviz() {
    let output = gradix(&["derive", "-e", "input x1, x2; f = sin(x1 * x2)", "--format", "svg"]);
    let svg = prints(&output);
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && svg.ends_with("</svg>\n"), "{svg}");
    for label in ["x1", "sin", "f", "df", "cos", "dx2"] {
        assert_eq!(svg.matches(&format!(">{label}</text>")).count(), 1, "{label} in {svg}");
    }
}

#[test]
fn every_edge_of_the_graph_joins_two_nodes() {
    let output = gradix(&["derive", &example("attention"), "--format", "dot"]);
    let dot = prints(&output);
    let nodes: HashSet<&str> =
        dot.lines().filter_map(|line| line.trim().split_once(" [label=")).map(|(id, _)| id).collect();
    let edges: Vec<(&str, &str)> = dot.lines().filter_map(|line| line.trim().split_once(" -> ")).collect();
    assert!(!edges.is_empty() && dot.starts_with("digraph program {\n") && dot.ends_with("}\n"));
    for (from, to) in edges {
        let to = to.split_once(' ').unwrap().0;
        assert!(nodes.contains(from) && nodes.contains(to), "{from} -> {to}");
    }
}

#[test]
fn sizes_can_be_fixed() {
    let text = "param M; input x[12]; y[i in 0..12//4, j in 0..M] = x[M*i + j]";
    let message = gradix(&["derive", "-e", text]);
    assert!(refuses(&message, 1).contains("--param"), "{}", refuses(&message, 1));
    let output = gradix(&["derive", "-e", text, "--param", "M=4"]);
    assert!(prints(&output).contains("dx["), "{}", prints(&output));
}

#[test]
fn what_the_program_does_not_have_is_refused() {
    let text = "input x[N]; y[i] = x[i]^2";
    for (option, value, found) in [("--wrt", "z", "'z'"), ("--of", "x", "'x'"), ("--param", "M=3", "'M'")] {
        let output = gradix(&["derive", "-e", text, option, value]);
        let message = refuses(&output, 1);
        assert!(message.starts_with("error[") && message.contains(found), "{message}");
        assert!(!message.lines().any(|line| line.trim() == "|"), "{message}");
    }
    assert!(refuses(&gradix(&["derive", "-e", text, "--mode", "hessian"]), 1).contains("scalar"));
    for format in ["json", "dot", "svg"] {
        assert!(refuses(&gradix(&["derive", "-e", text, "--inline", "--format", format]), 2).contains("--inline"));
    }
}

#[test]
fn what_a_program_requires_is_told_unless_quiet() {
    let text = "input x[N], y[M]; f = sum[i] x[i] * y[i]";
    let output = gradix(&["derive", "-e", text]);
    let told = crate::text(&output.stderr);
    assert!(told.starts_with("note[extents-differ]: this requires M = N\n --> command line:1:32\n"), "{told}");
    assert_eq!(prints(&gradix(&["derive", "--quiet", "-e", text])), data(&output));
}

#[test]
fn what_has_no_derivative_is_marked() {
    let output = gradix(&["derive", "-e", "input x; y = 2 * trigamma(x) + trigamma(3)"]);
    let message = refuses(&output, 1);
    assert!(message.contains("--> command line:1:18") && message.contains("^^^^^^^^^^^   -----------"), "{message}");
    let message = "error[no-derivative]: the program has no arguments, so there is nothing to differentiate by\n --> command line:1:1\n";
    assert!(refuses(&gradix(&["derive", "-e", "y = 3"]), 1).starts_with(message));
}
