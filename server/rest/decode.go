package rest

import (
	"encoding/hex"
	stderrors "errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plinth-io/plinth/server/kind"
)

// decode reads a body that is an object of the request's kind (or of its subresource's)
// into hub form, with defaults. fieldValidation is the option of that name.
// https://kubernetes.io/docs/reference/using-api/api-concepts/#validation-for-unrecognized-or-duplicate-fields
func (q *request) decode(media string, body []byte, fieldValidation string) (runtime.Object, error) {
	if err := q.checkBodyNesting(body); err != nil {
		return nil, err
	}
	want := q.gvk()
	if media == mediaYAML {
		if err := checkAliases(body, q.api.o.MaxBodyBytes); err != nil {
			return nil, err
		}
	}
	strict := fieldValidation != metav1.FieldValidationIgnore
	obj, got, err := q.codec().Decode(body, media, want, strict)
	if err != nil {
		if api := errors.APIStatus(nil); stderrors.As(err, &api) {
			return nil, err
		}
		unknown, isStrict := runtime.AsStrictDecodingError(err)
		if !isStrict || obj == nil || fieldValidation == metav1.FieldValidationStrict {
			return nil, decodeError(err, want, got, body)
		}
		q.warnStrict(unknown.Errors())
	}
	if !q.accepts(got.GroupVersion()) {
		return nil, errors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", got.GroupVersion(), want.GroupVersion()))
	}
	q.auditObject(obj, got.GroupVersion())
	return obj, nil
}

// codec of the body.
func (q *request) codec() kind.Codec {
	if q.sub != nil && q.sub.Codec != nil {
		return q.sub.Codec
	}
	return q.kind.Codec
}

func decodeError(err error, want, got schema.GroupVersionKind, body []byte) error {
	if got.Kind != "" {
		return errors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", got.Kind, got.Version, want.Kind, err))
	}
	return errors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)", want.Kind, err, summary(body, 30)))
}

// summary shows the beginning of a body that could not be made sense of.
func summary(data []byte, max int) string {
	if len(data) == 0 {
		return "<empty>"
	}
	show := func(b []byte) string { return hex.EncodeToString(b) }
	if data[0] == '{' {
		show = func(b []byte) string { return string(b) }
	}
	if len(data) > max {
		return show(data[:max]) + " ..."
	}
	return show(data)
}

// warnStrict turns each unknown or duplicate field into a warning. The YAML decoder has
// all of them in one error, a line each.
func (q *request) warnStrict(errs []error) {
	for _, e := range errs {
		for _, text := range yamlErrors(e.Error()) {
			q.warn.AddWarning("", text)
		}
	}
}

func yamlErrors(text string) []string {
	const short, long = "error unmarshaling JSON: while decoding JSON: ", "error converting YAML to JSON: yaml: unmarshal errors:\n"
	trimmed, ok := strings.CutPrefix(text, long)
	if !ok {
		if trimmed, ok = strings.CutPrefix(text, "yaml: unmarshal errors:\n"); !ok {
			return []string{strings.TrimPrefix(text, short)}
		}
	}
	var lines []string
	for _, line := range strings.Split(trimmed, "\n") {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// fieldValidation gives the directive its default.
func fieldValidation(directive string) string {
	if directive == "" {
		return metav1.FieldValidationWarn
	}
	return directive
}
