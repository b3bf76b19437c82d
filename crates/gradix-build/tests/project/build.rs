use gradix_build::{Error, Program};

fn main() -> Result<(), Error> {
    Program::new("src/words.gx").compile()?;
    Program::new("src/words.gx").name("words_gradient").gradient(true).compile()?;
    Program::new("src/shapes.gx").name("shapes").gradient(true).f32().compile()?;
    Program::new("src/paper.gx").wrt(&["a", "d"]).size("K", 5).compile()
}
