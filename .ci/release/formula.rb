# Made by make release. On Linux it installs the program of the release; on macOS it builds it.
class Plinth < Formula
  desc "{{.Short}}"
  homepage "{{.Homepage}}"
  version "{{.Version}}"
  license "{{.License}}"

  on_macos do
    url "{{.Homepage}}.git", tag: "{{.Tag}}", revision: "{{.Commit}}"
    depends_on "go" => :build
  end

  on_linux do
{{- range .Archives}}
    on_{{.Block}} do
      url "{{.URL}}"
      sha256 "{{.SHA256}}"
    end
{{- end}}
  end

  def install
    if OS.mac?
      about = "github.com/plinth-io/plinth/server"
      ldflags = "-s -w -X #{about}.buildVersion={{.Tag}} -X #{about}.buildCommit={{.Commit}}"
{{- range .Programs}}
      cd("{{.Dir}}") { system "go", "build", *std_go_args(output: bin/"{{.Name}}", ldflags: ldflags{{with .Tags}}, tags: "{{.}}"{{end}}), "{{.Package}}" }
      generate_completions_from_executable(bin/"{{.Name}}", "completion")
{{- end}}
    else
{{- range .Programs}}
      bin.install "{{.Name}}"
      bash_completion.install "completions/bash/{{.Name}}"
      zsh_completion.install "completions/zsh/_{{.Name}}"
      fish_completion.install "completions/fish/{{.Name}}.fish"
{{- end}}
      man1.install Dir["man/man1/*.1"]
    end
  end

  service do
    run [opt_bin/"plinth", "serve", "--data-dir", var/"plinth"]
    keep_alive true
    log_path var/"log/plinth.log"
    error_log_path var/"log/plinth.log"
  end

  test do
    assert_match "plinth v#{version}", shell_output("#{bin}/plinth version")
  end
end
