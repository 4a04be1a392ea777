//! The workspace keeps its own rules, so that `cargo test --workspace` is all there is to run.

#[test]
fn the_workspace_is_tidy() {
    let findings = xtask::tidy::check(&xtask::workspace_root());
    assert!(
        findings.is_empty(),
        "{} findings (`cargo xtask tidy` lists them):\n{}",
        findings.len(),
        findings.join("\n")
    );
}
