// Package fielderr has errors that name fields of a configuration.
//
// A program that has set a field by another name, such as that of a flag, asks for the text in its own
// names. The package knows neither fields nor flags.
package fielderr

import (
	"errors"
	"fmt"
	"strings"
)

// Name is the name of a field, such as Listen, or Tokens.Issuers for a field of a field.
type Name string

// Error says what is wrong with fields of a configuration.
type Error struct {
	format string
	args   []any
}

// Errorf returns an Error. Arguments of type Name are the fields that it names; %w wraps an error, as in
// fmt.Errorf.
func Errorf(format string, args ...any) *Error { return &Error{format, args} }

// Error calls a field Config.NAME.
func (e *Error) Error() string { return Text(e, inGo) }

func inGo(field Name) string { return "Config." + string(field) }

// Fields returns the fields that e names, in the order of its text.
func (e *Error) Fields() (names []Name) {
	for _, arg := range e.args {
		if name, ok := arg.(Name); ok {
			names = append(names, name)
		}
	}
	return names
}

// Unwrap returns the errors that e wraps.
func (e *Error) Unwrap() (wrapped []error) {
	for _, arg := range e.args {
		if err, ok := arg.(error); ok {
			wrapped = append(wrapped, err)
		}
	}
	return wrapped
}

func (e *Error) text(call func(Name) string) string {
	args := make([]any, len(e.args))
	for i, arg := range e.args {
		switch arg := arg.(type) {
		case Name:
			args[i] = call(arg)
		case error:
			args[i] = errors.New(Text(arg, call))
		default:
			args[i] = arg
		}
	}
	return fmt.Errorf(e.format, args...).Error()
}

// below is an error whose fields are those of a field.
type below struct {
	field Name
	err   error
}

// Below returns err, which may be nil, for the configuration in which the one that err is about is a field.
func Below(field Name, err error) error {
	if err == nil {
		return nil
	}
	return &below{field, err}
}

func (b *below) Error() string { return Text(b, inGo) }
func (b *below) Unwrap() error { return b.err }

// Text returns the text of err, in which call has named the fields.
func Text(err error, call func(Name) string) string {
	switch err := err.(type) {
	case *Error:
		return err.text(call)
	case *below:
		return Text(err.err, func(field Name) string { return call(err.field + "." + field) })
	}
	text := err.Error()
	for _, wrapped := range unwrap(err) {
		text = strings.Replace(text, wrapped.Error(), Text(wrapped, call), 1)
	}
	return text
}

// unwrap returns the errors that err wraps.
func unwrap(err error) []error {
	switch err := err.(type) {
	case interface{ Unwrap() []error }:
		return err.Unwrap()
	case interface{ Errors() []error }: // of upstream
		return err.Errors()
	}
	if wrapped := errors.Unwrap(err); wrapped != nil {
		return []error{wrapped}
	}
	return nil
}
