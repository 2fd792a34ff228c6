//! Generates the records of tape files from their definition, without a separate protobuf compiler.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto/tape.proto");
    let definition = protox::compile(["tape.proto"], ["proto"])?;
    prost_build::Config::new().compile_fds(definition)?;
    Ok(())
}
