package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/fielderr"
)

func TestNameFlags(t *testing.T) {
	o := newServeOptions()
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags := register(set, o.flags())
	must(t, set.Set("listen", "127.0.0.1:1"))
	must(t, set.SetAnnotation("listen", fromEnv, []string{"PLINTH_LISTEN"}))
	about := func(fields ...fielderr.Name) error {
		return fmt.Errorf("open: %w", fielderr.Errorf(strings.Repeat("%v ", len(fields)), asAny(fields)...))
	}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{about("Listen"), "open: PLINTH_LISTEN "},
		{about("DSN", "DataDir"), "open: --dsn --data-dir "},
		{about("Keep", "NoFairness", "RuntimeConfig"), "open: --keep --enable-priority-and-fairness --runtime-config "},
		{fielderr.Below("Serving", about("SNI", "CertFile")), "open: --tls-sni-cert-key --tls-cert-file "},
		{fielderr.Below("Tokens", about("Issuers", "ExtendExpiration")), "open: --service-account-issuer --service-account-extend-token-expiration "},
		{about("Untracked", "Nothing", "Nothing.Below"), "open: Config.Untracked Config.Nothing Config.Nothing.Below "},
		{errors.New("write --listen or --listen-on or --data-dir, --no"), "write PLINTH_LISTEN or --listen-on or --data-dir, --no"},
	} {
		if got := flags.nameFlags(&o.config, tt.err); got.Error() != tt.want || !errors.Is(got, tt.err) {
			t.Errorf("%v: got %q, want %q", tt.err, got, tt.want)
		}
	}
	if flags.nameFlags(&o.config, nil) != nil {
		t.Error("no error has become one")
	}
}

func asAny[T any](list []T) (out []any) {
	for _, item := range list {
		out = append(out, item)
	}
	return out
}

// TestDropInNames checks that errors name the flags of kube-apiserver, two of which stand for one field.
func TestDropInNames(t *testing.T) {
	o := &apiServerOptions{serveOptions: newServeOptions()}
	newAPIServerFor(o)
	err := fielderr.Errorf("%v; %v; %v; %v; %v", fielderr.Name("Listen"), fielderr.Name("DSN"), fielderr.Name("DatabaseTimeout"), fielderr.Name("History"), fielderr.Name("EventTTL"))
	want := "--bind-address and --secure-port; --etcd-servers; --storage-initialization-timeout; --etcd-compaction-interval; --event-ttl"
	if got := o.table.nameFlags(&o.config, err).Error(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestNewFlag gives a command a flag by one entry and a field. Everything else follows from these: help, the reference,
// completion, the variable, the check, the names in errors, /flagz and the drop-in.
func TestNewFlag(t *testing.T) {
	var config struct{ Colour string }
	theirs := "grey"
	flags := []Flag{{
		Name: "colour", Group: "Looks", Help: "`colour` of the door", Set: text(&config.Colour, "red"), Complete: values("red", "green"),
		Check: notBlank(&config.Colour, "a colour, such as red"), Secret: true, DropIn: dropIn{byDefault: &theirs},
	}}
	var table *flagTable
	run := func(args ...string) (root *cobra.Command, printed string) {
		root = &cobra.Command{Use: "house"}
		cmd := &cobra.Command{Use: "paint", Short: "Paint it", RunE: func(*cobra.Command, []string) error { return nil }}
		root.AddCommand(cmd)
		table = addFlags(cmd, flags...)
		withVariables(cmd)
		groupFlags(cmd)
		out := new(bytes.Buffer)
		root.SetOut(out)
		root.SetArgs(args)
		must(t, root.Execute())
		return root, out.String()
	}
	root, help := run("paint", "--help")
	if !strings.Contains(help, "Looks:\n      --colour colour   colour of the door [PLINTH_COLOUR] (default \"red\")\n") {
		t.Errorf("help: %s", help)
	}
	if reference := string(flagReference(root)); !strings.Contains(reference, "### Looks\n\n| flag | variable | default | meaning |\n|---|---|---|---|\n| `--colour` COLOUR | `PLINTH_COLOUR` | `red` | colour of the door |\n") {
		t.Errorf("reference: %s", reference)
	}
	if _, completed := run(cobra.ShellCompRequestCmd, "paint", "--colour", ""); !strings.HasPrefix(completed, "red\ngreen\n") {
		t.Errorf("completion: %s", completed)
	}
	t.Setenv("PLINTH_COLOUR", " ")
	run("paint")
	if err := table.check(); config.Colour != " " || err == nil || err.Error() != "PLINTH_COLOUR is empty; write a colour, such as red" {
		t.Errorf("the variable has set %q: %v", config.Colour, err)
	}
	if got := table.nameFlags(&config, fielderr.Errorf("%v is taken", fielderr.Name("Colour"))).Error(); got != "PLINTH_COLOUR is taken" {
		t.Error(got)
	}
	if secret := table.lookup(&config.Colour).Annotations["classified"]; len(secret) == 0 {
		t.Error("/flagz shows it")
	}
	if of := register(pflag.NewFlagSet("", pflag.ContinueOnError), inDropIn(flags)); config.Colour != theirs || of.lookup(&config.Colour).DefValue != theirs {
		t.Errorf("in the drop-in it is %q", config.Colour)
	}
}

// withoutFlag are the fields of server.Config that serve has no flag for, and why.
var withoutFlag = map[string]string{
	"Audit":                  "upstream's type, with upstream's flags",
	"Components":             "made of the flags of --cluster",
	"Authentication":         "upstream's type, with upstream's flags",
	"Authorization":          "upstream's type, with upstream's flags",
	"Tokens.CacheFor":        "for tests",
	"Dial":                   "for programs that reach nodes through a tunnel",
	"Debugging.SetVerbosity": "a function of the log",
	"Flags":                  "the flags themselves",
	"Linger":                 "for programs that stop servers often",
	"Log":                    "made of --v and --log-format",
	"Page":                   "made of --ui and the flags of OIDC",
	"Untracked":              "for measurements of plinth itself",
}

// TestConfigFields checks that each field of server.Config is set by exactly one flag of serve, or is in the list of
// those without one.
func TestConfigFields(t *testing.T) {
	o := newServeOptions()
	flags := register(pflag.NewFlagSet("", pflag.ContinueOnError), o.flags())
	seen := map[string]bool{}
	var look func(of reflect.Type, prefix string)
	look = func(of reflect.Type, prefix string) {
		for field := range of.Fields() {
			name := prefix + field.Name
			seen[name] = true
			if withoutFlag[name] != "" || !field.IsExported() {
				continue
			}
			if field.Type.Kind() == reflect.Struct {
				look(field.Type, name+".")
			} else if setters := flags.settersOf(addressOf(&o.config, fielderr.Name(name))); len(setters) != 1 {
				t.Errorf("server.Config.%s is set by %q: give it one flag, or a line in withoutFlag", name, setters)
			}
		}
	}
	look(reflect.TypeFor[server.Config](), "")
	for name := range withoutFlag {
		if !seen[name] {
			t.Errorf("server.Config has no field %s", name)
		}
	}
}

// giveFlags are packages that start plinth, etcd or kube-apiserver as programs, and one whose errors and log are in upstream's
// words, as its options are.
var giveFlags = []string{"bench/", "server/etcd/etcdtest/", "server/recordedtest/", "dialects/logtest/", "cmd/plinth/testdata/", "server/authn/"}

// TestFlagIsOneLiteral checks that the name of a flag of any command stands once in this package as a literal, and in no
// other package: all that is to be known of the flag stands there. What people read may name flags.
func TestFlagIsOneLiteral(t *testing.T) {
	names := map[string]int{}
	add := func(_ *cobra.Command, f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			names[f.Name] = 0
		}
	}
	for _, root := range []*cobra.Command{newRoot(), newPlugin(), newAPIServer()} {
		if completion, _, err := root.Find([]string{"completion"}); err == nil && completion != root {
			root.RemoveCommand(completion) // cobra's own
		}
		each(root, add)
		root.Flags().VisitAll(func(f *pflag.Flag) { add(root, f) })
	}
	eachLiteral(t, "../..", func(file, literal string, asName bool) {
		name, isFlag := strings.CutPrefix(literal, "--")
		name, _, _ = strings.Cut(name, "=")
		_, known := names[name]
		switch {
		case !known:
		case filepath.Dir(file) == "cmd/plinth":
			if asName {
				names[name]++
			}
		case isFlag && !slices.ContainsFunc(giveFlags, func(p string) bool { return strings.HasPrefix(file, p) }):
			t.Errorf("%s has the literal %q", file, literal)
		}
	})
	for name, n := range names {
		if n != 1 && !strings.HasPrefix(name, "audit-") { // which are made of the name of a backend and of what both have
			t.Errorf("the literal %q stands %d times in cmd/plinth", name, n)
		}
	}
}

// takesName are functions that take the name of a flag: pflag's, cobra's and those of the tables.
var takesName = regexp.MustCompile(`^(flag|choice|envName|Changed|Lookup|Flag|Set|SetAnnotation|Mark\w+|RegisterFlagCompletionFunc|Bool|Int|String|Duration|\w*VarP?F?)$`)

// eachLiteral calls f with each string in the Go files below root that are no tests, and whether it is used as the name of
// a flag.
func eachLiteral(t *testing.T, root string, f func(file, literal string, asName bool)) {
	t.Helper()
	must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		must(t, err)
		name, err := filepath.Rel(root, path)
		must(t, err)
		names := map[ast.Expr]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Name" {
					names[n.Value] = true
				}
			case *ast.ValueSpec:
				if n.Names[0].Name == "dataDirName" {
					names[n.Values[0]] = true
				}
			case *ast.CallExpr:
				if takesName.MatchString(called(n.Fun)) {
					for _, argument := range n.Args {
						names[argument] = true
					}
				}
			case *ast.BasicLit:
				if n.Kind == token.STRING {
					text, err := strconv.Unquote(n.Value)
					must(t, err)
					f(filepath.ToSlash(name), text, names[n])
				}
			}
			return true
		})
		return nil
	}))
}

// called returns the name of a function or method, without what it belongs to.
func called(function ast.Expr) string {
	switch function := function.(type) {
	case *ast.Ident:
		return function.Name
	case *ast.SelectorExpr:
		return function.Sel.Name
	}
	return ""
}

// TestUpstreamFlags checks that a table has all flags that upstream shows.
func TestUpstreamFlags(t *testing.T) {
	o := newServeOptions()
	flags := o.flags()
	newUpstreamSet(&o.config).set.VisitAll(func(f *pflag.Flag) {
		if !slices.ContainsFunc(flags, func(have Flag) bool { return have.Name == f.Name }) {
			t.Errorf("--%s is in no table", f.Name)
		}
	})
}
