class Bowline < Formula
  desc "Ties any MCP client to any MCP server"
  homepage "https://github.com/bowline-mcp/bowline"
  version "{{VERSION}}"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    # There is no program for Macs with Intel's processors.
    depends_on arch: :arm64
    url "{{DOWNLOADS}}/bowline-{{VERSION}}-aarch64-apple-darwin.tar.gz"
    sha256 "{{SHA256_MACOS_ARM64}}"
  end

  on_linux do
    on_intel do
      url "{{DOWNLOADS}}/bowline-{{VERSION}}-x86_64-unknown-linux-musl.tar.gz"
      sha256 "{{SHA256_LINUX_X64}}"
    end
    on_arm do
      url "{{DOWNLOADS}}/bowline-{{VERSION}}-aarch64-unknown-linux-musl.tar.gz"
      sha256 "{{SHA256_LINUX_ARM64}}"
    end
  end

  def install
    bin.install "bowline"
    generate_completions_from_executable(bin/"bowline", "completions")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/bowline --version")
  end
end
