package main

// program is a program of this repository that a release carries.
type program struct {
	Name    string
	Dir     string // of its module, from the root of the repository
	Package string // below Dir
	Tags    string // of go build, besides those of every program; separated by commas
	Short   string // what it is, in the words of a package's first line
	// Image says that there is an image of it, which it starts in with these arguments and variables.
	Image    []string
	ImageEnv []string
}

// programs are in every archive and package. The first one gives them its name. Each has the commands version, docs and
// completion.
var programs = []program{
	{
		Name:    "plinth",
		Dir:     ".",
		Package: "./cmd/plinth",
		Tags:    "cluster",
		Short:   "Kubernetes API on SQLite, Postgres or MySQL",
		Image:   []string{"serve"},
		// Variables hold for the commands of kubectl exec, too, and for other arguments than these.
		ImageEnv: []string{"PLINTH_LISTEN=0.0.0.0:6443", "PLINTH_DATA_DIR=/data"},
	},
}

const (
	product  = "plinth" // the name of archives and packages
	homepage = "https://github.com/plinth-io/plinth"
	licence  = "Apache-2.0"
)

// platform is what a release is built for.
type platform struct {
	Arch     string   // as Go calls it
	Compiler string   // for C, that makes programs for it
	Needs    []string // Debian's packages with the compiler
	Debian   string   // name of the architecture in Debian's packages
	RPM      string   // and in RPM's
	Homebrew string   // and its block in a formula
}

var platforms = []platform{
	{Arch: "amd64", Compiler: "x86_64-linux-gnu-gcc", Needs: []string{"gcc", "libc6-dev"}, Debian: "amd64", RPM: "x86_64", Homebrew: "intel"},
	{Arch: "arm64", Compiler: "aarch64-linux-gnu-gcc", Needs: []string{"gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"}, Debian: "arm64", RPM: "aarch64", Homebrew: "arm"},
}
