package main

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/plinth-io/plinth/server/fielderr"
)

// Flag is a flag of a command, and all that is known of it. Help, docs/flags.md, completion, variables, the names
// of fields in errors, and the drop-ins take it from here.
type Flag struct {
	Name  string
	Short string // one letter that stands for it
	Group string // what it stands below in the help; see grouped
	Help  string // what it does; the word in back quotes is the value
	Set   setting

	// Complete says how a shell completes the value. nil: files or directories if Help calls the value so, else
	// nothing.
	Complete cobra.CompletionFunc
	// Check returns what is wrong with the value, to be said after the flag's name; nothing if it is right.
	Check func() string
	// For is the address of the field of server.Config that the value ends up in, if Set has another.
	For any

	Old    string // another spelling, which help does not show
	Secret bool   // the value may have a password, which /flagz must not show
	Hidden bool   // help and docs/flags.md do not show the flag
	DropIn dropIn
}

// dropIn says how the program that plinth takes the place of has a flag: kube-apiserver for those of serve, etcd
// for those of etcd. The zero value is a flag that it has with the same default.
type dropIn struct {
	lacks     bool    // it has none, or one that means something else
	byDefault *string // nil: the same
	help      string  // empty: the same
}

// grouped puts flags below a heading of the help.
func grouped(heading string, flags ...[]Flag) (all []Flag) {
	for _, some := range flags {
		for _, f := range some {
			f.Group = heading
			all = append(all, f)
		}
	}
	return all
}

// inDropIn returns the flags that a drop-in has, as it has them.
func inDropIn(flags []Flag) (all []Flag) {
	for _, f := range flags {
		if f.DropIn.lacks {
			continue
		}
		if f.DropIn.help != "" {
			f.Help = f.DropIn.help
		}
		if f.DropIn.byDefault != nil {
			f.Set = f.Set.withDefault(*f.DropIn.byDefault)
		}
		all = append(all, f)
	}
	return all
}

// What is known of a flag and pflag has no place for is in annotations.
const (
	inGroup   = "plinth_group"
	otherName = "plinth_other_name" // of Flag.Old and the flag
	oursAlone = "plinth_ours_alone" // drop-ins lack it
)

// flagTable is the flags of one command.
type flagTable struct {
	flags []Flag
	set   *pflag.FlagSet
}

// addFlags gives a command flags, and completes their values.
func addFlags(cmd *cobra.Command, flags ...Flag) *flagTable {
	t := register(cmd.Flags(), flags)
	for _, f := range flags {
		f.complete(cmd)
	}
	return t
}

// addInOrder is addFlags for a command whose help shows the flags as they come, not by name.
func addInOrder(cmd *cobra.Command, flags ...Flag) *flagTable {
	cmd.Flags().SortFlags = false
	return addFlags(cmd, flags...)
}

// register adds flags to a set.
func register(set *pflag.FlagSet, flags []Flag) *flagTable {
	for _, f := range flags {
		f.Set.add(set, f.Name, f.Short, f.Help)
		added := set.Lookup(f.Name)
		added.Hidden = added.Hidden || f.Hidden
		if added.Value.Type() == "bool" {
			added.NoOptDefVal = "true"
		}
		f.annotate(added)
		if f.Old != "" {
			old := *added
			old.Name, old.Shorthand, old.Hidden = f.Old, "", true
			old.Annotations = map[string][]string{}
			f.annotate(&old)
			old.Annotations[otherName] = []string{f.Name}
			set.AddFlag(&old)
		}
	}
	return &flagTable{flags, set}
}

func (f *Flag) annotate(added *pflag.Flag) {
	if added.Annotations == nil {
		added.Annotations = map[string][]string{}
	}
	if f.Group != "" {
		added.Annotations[inGroup] = []string{f.Group}
	}
	if f.Old != "" {
		added.Annotations[otherName] = []string{f.Old}
	}
	if f.DropIn.lacks {
		added.Annotations[oursAlone] = []string{"true"}
	}
	if f.Secret {
		added.Annotations["classified"] = []string{"true"} // which flagz asks for
	}
}

// check returns the first mistake in the values.
func (t *flagTable) check() error {
	for _, f := range t.flags {
		if f.Check == nil {
			continue
		}
		if wrong := f.Check(); wrong != "" {
			return usagef("%s%s", source(t.set.Lookup(f.Name)), wrong)
		}
	}
	return nil
}

// notBlank is a Flag's Check.
func notBlank(s *string, write string) func() string {
	return func() string {
		if strings.TrimSpace(*s) == "" {
			return " is empty; write " + write
		}
		return ""
	}
}

// notNegative is a Flag's Check.
func notNegative(d *time.Duration) func() string {
	return func() string {
		if *d < 0 {
			return fmt.Sprintf(": %v is negative; write a duration such as 30s", *d)
		}
		return ""
	}
}

// nameFlags has err call the fields of config, a pointer to a struct, by what the user has written: the flags or
// the variables that have set them. So it does with flags in the text of err that variables have set.
func (t *flagTable) nameFlags(config any, err error) error {
	if err == nil {
		return nil
	}
	text := fielderr.Text(err, func(field fielderr.Name) string {
		if names := t.settersOf(addressOf(config, field)); len(names) > 0 {
			return strings.Join(names, " and ")
		}
		return "Config." + string(field)
	})
	t.set.VisitAll(func(f *pflag.Flag) {
		if name := "--" + f.Name; source(f) != name {
			text = replaceFlag(text, name, source(f))
		}
	})
	return &reworded{text, err}
}

// settersOf returns what the user has written to set a field, by its address.
func (t *flagTable) settersOf(field any) (names []string) {
	for _, f := range t.flags {
		if f.sets(field, t.set.Lookup(f.Name)) {
			names = append(names, source(t.set.Lookup(f.Name)))
		}
	}
	return names
}

// name returns what the user has written, or would write, to set a field, by its address.
func (t *flagTable) name(field any) string { return source(t.lookup(field)) }

// given tells whether the flag that sets a field is on the command line, or a variable has set it.
func (t *flagTable) given(field any) bool { return given(t.set, t.lookup(field)) }

// lookup returns the flag that sets a field, by its address.
func (t *flagTable) lookup(field any) *pflag.Flag {
	for _, f := range t.flags {
		if added := t.set.Lookup(f.Name); f.sets(field, added) || address(f.Set.field) == address(field) {
			return added
		}
	}
	panic("no flag sets this field")
}

// sets tells whether a flag sets the field with an address.
func (f *Flag) sets(field any, added *pflag.Flag) bool {
	if f.For != nil {
		return address(f.For) == address(field)
	}
	return field != nil && (address(f.Set.field) == address(field) || address(added.Value) == address(field))
}

func address(pointer any) uintptr {
	if v := reflect.ValueOf(pointer); v.Kind() == reflect.Pointer {
		return v.Pointer()
	}
	return 0
}

// addressOf returns the address of a field of the struct that config points to, nil if it has none.
func addressOf(config any, field fielderr.Name) any {
	v := reflect.ValueOf(config)
	for _, name := range strings.Split(string(field), ".") {
		if v = reflect.Indirect(v); v.Kind() == reflect.Struct {
			v = v.FieldByName(name)
		}
		if !v.IsValid() {
			return nil
		}
	}
	if !v.CanAddr() {
		return nil
	}
	return v.Addr().Interface()
}

// replaceFlag replaces a flag in a text, but not one whose name is longer.
func replaceFlag(text, flag, by string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, flag)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if after != "" && (after[0] == '-' || after[0] >= 'a' && after[0] <= 'z') {
			b.WriteString(flag)
		} else {
			b.WriteString(by)
		}
		text = after
	}
}

// reworded is an error with another text.
type reworded struct {
	text string
	err  error
}

func (r *reworded) Error() string { return r.text }
func (r *reworded) Unwrap() error { return r.err }
