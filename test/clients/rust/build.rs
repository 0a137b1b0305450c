//! Generates the client from the contract; the compiler of protos is a crate too, so that nothing but cargo is needed.
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../proto");
    println!("cargo:rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root.join("grantty/v1"))? {
        files.push(entry?.path());
    }
    files.sort();
    let descriptors = protox::compile(files, [root])?;
    tonic_prost_build::configure()
        .build_server(false)
        .compile_fds(descriptors)?;
    Ok(())
}
