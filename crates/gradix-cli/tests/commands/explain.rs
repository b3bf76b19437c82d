//! `gradix explain`

use crate::{data, example, gradix, prints, refuses, scratch, text};

#[test]
fn the_first_lattice_of_the_paper_is_explained() {
    let text = "input x[N]; f[i in 0..7, j in 0..5] = if 0 <= i - 2*j < N then x[i - 2*j] else 0";
    let output = gradix(&["explain", "-e", text]);
    for expected in [
        "access 1: x[i - 2*j]\n",
        "  in f[i in 0..7, j in 0..5] = ",
        "  β = A α + c with β = (β), α = (i, j)\n    A = (1 -2)    c = (0)\n",
        "    U = (1)    V = ⎡1 2⎤    S = (1 0)\n                   ⎣0 1⎦\n",
        "    I = ⎡1⎤    K = ⎡2⎤    C = ()\n        ⎣0⎦        ⎣1⎦\n",
        "  C (β - c) = 0: always\n  divisibility: always\n",
        "    i = β + 2 * j\n",
        "    dx[i in 0..N] += ",
    ] {
        assert!(prints(&output).contains(expected), "{expected}\nin\n{}", prints(&output));
    }
}

#[test]
fn strides_and_diagonals_have_conditions() {
    let output = gradix(&["explain", "-e", "input x[N], y[M, M]; f[i in 0..N//2] = x[2*i]; g[i] = y[i, i]"]);
    for expected in
        ["    I = (1/2)    K = ()    C = ()\n", "  divisibility: β % 2 == 0\n", "  C (β - c) = 0: β1 == β2\n"]
    {
        assert!(prints(&output).contains(expected), "{expected}\nin\n{}", prints(&output));
    }
}

#[test]
fn floors_are_unknowns() {
    let output = gradix(&["explain", "-e", "input x[N]; f[i in 0..2*N] = x[i // 2]"]);
    let expected = "    A = (0 1)    c = (0)\n    where q1 = i // 2 is one more unknown with 0 <= i - 2 * q1 <= 1\n";
    assert!(prints(&output).contains(expected), "{}", prints(&output));
}

#[test]
fn scalars_need_no_matrices() {
    let output = gradix(&["explain", "-e", "input t, x[N]; f[i] = t * x[i]", "--wrt", "t"]);
    assert!(prints(&output).contains("a scalar: every point of the definition reads it"), "{}", prints(&output));
    assert!(prints(&output).contains("    dt += sum[i] df[i] * x[i]\n"), "{}", prints(&output));
}

#[test]
fn accesses_are_chosen_by_argument_and_number() {
    let titles = |arguments: &[&str]| -> Vec<String> {
        let output = gradix(&[&["explain", &example("paper")], arguments].concat());
        prints(&output).lines().filter(|line| line.starts_with("access")).map(str::to_string).collect()
    };
    let all = titles(&[]);
    assert_eq!(all.len(), 4);
    assert_eq!(titles(&["--access", "2,4"]), [all[1].clone(), all[3].clone()]);
    assert_eq!(titles(&["--wrt", "d"]).len(), 1);
    assert!(all.contains(&titles(&["--wrt", "d"])[0]));
    assert!(refuses(&gradix(&["explain", &example("paper"), "--access", "9"]), 1).contains("there is no access 9"));
}

#[test]
fn every_example_is_explained_and_drawn() {
    let folder = std::fs::read_dir(format!("{}/../../examples", env!("CARGO_MANIFEST_DIR"))).unwrap();
    for path in folder.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "gx")) {
        let output = gradix(&["explain", path.to_str().unwrap()]);
        assert!(
            prints(&output).contains("  contribution\n    ") && prints(&output).contains(" += "),
            "{}",
            path.display()
        );
        let drawn = gradix(&["explain", path.to_str().unwrap(), "--quiet", "--svg", &scratch("example.svg")]);
        if drawn.status.code() != Some(0) {
            assert_eq!(refuses(&drawn, 1), "error: there is no access with one, two or three indices to draw\n");
        }
    }
}

/// The drawing, checked to be well-formed: every tag that is opened is closed in order.
fn drawing(arguments: &[&str], name: &str) -> String {
    let path = scratch(name);
    let output = gradix(&[&["explain"], arguments, &["--svg", &path]].concat());
    data(&output);
    assert!(text(&output.stderr).ends_with(&format!("wrote {path}\n")), "{}", text(&output.stderr));
    let svg = std::fs::read_to_string(path).unwrap();
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1).map(|part| part.split_once('>').unwrap().0) {
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap());
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
    }
    assert!(open.is_empty() && svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{open:?}");
    svg
}

#[test]
fn the_first_lattice_figure_is_drawn() {
    let text = "input x[20]; f[i in 0..7, j in 0..5] = if 0 <= i - 2*j + 9 < 20 then x[i - 2*j + 9] else 0";
    let svg = drawing(&["-e", text, "--at", "8"], "first.svg");
    // Three solutions in the space of indices, and again in that of the kernel.
    assert_eq!(svg.matches("fill=\"black\"/>").count(), 6);
    assert!(svg.contains(">x[i - 2*j + 9] = x[8]<") && svg.contains(">kernel z: 3 points<"), "{svg}");
}

#[test]
fn the_second_lattice_figure_is_drawn() {
    let text = "input x[60]; f[i in 0..7, j in 0..5] = sum[k in -10..11] x[i - 2*j - 2*k + 30]";
    let svg = drawing(&["-e", text, "--at", "33"], "second.svg");
    assert!(svg.contains(">kernel (z₁, z₂): 15 points<") && svg.contains("k is perpendicular"), "{svg}");
    assert_eq!(svg.matches("fill=\"black\"/>").count(), 30);
}

#[test]
fn every_access_with_one_two_or_three_indices_is_drawn() {
    let svg = drawing(&[&example("matmul")], "matmul.svg");
    assert_eq!(svg.matches("font-size=\"16\"").count(), 2);
    drawing(&["-e", "input x[N, M]; y[i, j] = x[(i + j) // 3, j]"], "floor.svg");
    drawing(&["-e", "input x[N]; y[i in 0..N, j in 0..=N] = x[reflect(i + j - 1)]"], "reflect.svg");
    let svg = drawing(&["-e", "input x[N], y[M, M]; f[i in 0..N//2] = x[2*i]; g[i] = y[i, i]"], "one.svg");
    assert!(svg.contains("elements x[β] below: 6 of 12 are read"), "{svg}");
    assert!(svg.contains("elements y[β1, β2] with their i: 8 of 64 are read"), "{svg}");
}

#[test]
fn sizes_are_chosen_for_the_picture() {
    let text = "input x[N], w[K]; y[i] = sum[k] x[2*i + k] * w[k]";
    let told = |arguments: &[&str], name: &str| {
        let output = gradix(&[&["explain", "-e", text, "--svg", &scratch(name)], arguments].concat());
        data(&output);
        self::text(&output.stderr).lines().next().unwrap().to_string()
    };
    assert_eq!(told(&[], "sizes.svg"), "sizes: N = 16, K = 6");
    assert_eq!(told(&["--param", "K=3"], "sizes_with_one.svg"), "sizes: N = 14");
    assert_eq!(told(&["--access", "1", "--at", "20"], "sizes_at.svg"), "sizes: N = 21, K = 6");
}

#[test]
fn what_can_not_be_drawn_is_refused() {
    let path = scratch("refused.svg");
    for (arguments, code, expected) in [
        (&["-e", "input t; y = t"][..], 1, "one, two or three indices"),
        (&["-e", "input x[N, N, N, N]; y[i, j, k, l] = x[i, j, k, l]"], 1, "one, two or three indices"),
        (&["-e", "input x[N]; y[i, j in 0..2] = x[i]", "--param", "N=1000"], 1, "too large to draw"),
        (
            &["-e", "input x[N]; y[i, j in 0..2] = x[i]", "--param", "N=3", "--at", "7"],
            1,
            "7 is outside of 'x', whose extent 3 is 3",
        ),
        (&["-e", "input x[N]; y[i, j in 0..2] = x[i]", "--at", "1,2"], 1, "'x' has 1 dimension"),
        (&["-e", "input a[N], b[N]; y[i, j in 0..2] = a[i] + b[i]", "--at", "1"], 2, "--access"),
    ] {
        let output = gradix(&[&["explain", "--quiet"], arguments, &["--svg", &path]].concat());
        assert!(refuses(&output, code).contains(expected), "{arguments:?}: {}", refuses(&output, code));
    }
    let alone = gradix(&["explain", "-e", "y = 1", "--at", "1"]);
    assert!(refuses(&alone, 2).contains("--svg"));
}
