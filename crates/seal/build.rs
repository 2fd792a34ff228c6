//! Makes the messages from their definition. No compiler besides cargo's is needed.

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto/signalbox_v1.proto");
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).include_source_info(true).open_file("signalbox_v1.proto")?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo names no folder for what is made")?);
    std::fs::write(out.join("signalbox_v1.bin"), compiler.encode_file_descriptor_set())?;
    prost_build::Config::new().bytes(["."]).compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
