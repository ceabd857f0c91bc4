package main

import (
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// setting is the field that a flag sets, how its value is written, and its default.
type setting struct {
	field any // its address
	add   func(set *pflag.FlagSet, name, short, usage string)
}

// The settings of fields that pflag knows how to write. They get the field's address and its default.
var (
	text       = settingOf((*pflag.FlagSet).StringVarP)
	list       = settingOf((*pflag.FlagSet).StringSliceVarP) // separated by commas, or the flag is repeated
	repeated   = settingOf((*pflag.FlagSet).StringArrayVarP) // one for each time that the flag is there
	boolean    = settingOf((*pflag.FlagSet).BoolVarP)
	period     = settingOf((*pflag.FlagSet).DurationVarP)
	periods    = settingOf((*pflag.FlagSet).DurationSliceVarP)
	number     = settingOf((*pflag.FlagSet).IntVarP)
	numbers    = settingOf((*pflag.FlagSet).IntSliceVarP)
	numbers32  = settingOf((*pflag.FlagSet).Int32SliceVarP)
	unsigned   = settingOf((*pflag.FlagSet).UintVarP)
	unsigned32 = settingOf((*pflag.FlagSet).Uint32VarP)
	unsigned64 = settingOf((*pflag.FlagSet).Uint64VarP)
	fraction   = settingOf((*pflag.FlagSet).Float64VarP)
	ip         = settingOf((*pflag.FlagSet).IPVarP)
)

func settingOf[T any](add func(set *pflag.FlagSet, field *T, name, short string, byDefault T, usage string)) func(*T, T) setting {
	return func(field *T, byDefault T) setting {
		return setting{field, func(set *pflag.FlagSet, name, short, usage string) {
			add(set, field, name, short, byDefault, usage)
		}}
	}
}

// value is the setting of a field that knows how it is written. Its default is what it has.
func value(v pflag.Value) setting {
	return setting{v, func(set *pflag.FlagSet, name, short, usage string) { set.VarP(v, name, short, usage) }}
}

// upstreams is the setting of a flag that upstream's code has added to a set under the same name.
func upstreams(added *pflag.FlagSet) setting {
	return setting{nil, func(set *pflag.FlagSet, name, _, usage string) {
		own := *added.Lookup(name)
		own.Usage = usage
		set.AddFlag(&own)
	}}
}

// withDefault returns s with another default, as users write it.
func (s setting) withDefault(byDefault string) setting {
	return s.then(func(added *pflag.Flag) {
		var err error
		if many, ok := added.Value.(pflag.SliceValue); !ok {
			err = added.Value.Set(byDefault)
		} else if byDefault == "" {
			err = many.Replace(nil)
		} else {
			err = many.Replace(strings.Split(byDefault, ","))
		}
		if err != nil {
			panic(err) // in a table of flags
		}
		added.DefValue = byDefault
	})
}

// showing returns s with another text for its default.
func (s setting) showing(byDefault string) setting {
	return s.then(func(added *pflag.Flag) { added.DefValue = byDefault })
}

// orAlone returns s with the value of a flag that has none.
func (s setting) orAlone(value string) setting {
	return s.then(func(added *pflag.Flag) { added.NoOptDefVal = value })
}

func (s setting) then(change func(added *pflag.Flag)) setting {
	return setting{s.field, func(set *pflag.FlagSet, name, short, usage string) {
		s.add(set, name, short, usage)
		change(set.Lookup(name))
	}}
}

// not is a value whose field says the opposite.
type not bool

func (n *not) String() string { return strconv.FormatBool(!bool(*n)) }
func (n *not) Type() string   { return "bool" }

func (n *not) Set(text string) error {
	v, err := strconv.ParseBool(text)
	*n = not(!v)
	return err
}
