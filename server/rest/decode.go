package rest

import (
	"encoding/hex"
	"errors"
	"fmt"
	"mime"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plinth-io/plinth/server/response"
)

// decode reads a body that is an object of the request's kind (or of its subresource's)
// into hub form, with defaults. fieldValidation is the option of the same name.
// https://kubernetes.io/docs/reference/using-api/api-concepts/#setting-the-field-validation-level
func (q *request) decode(media string, body []byte, fieldValidation string) (runtime.Object, error) {
	if err := q.checkBody(media, body); err != nil {
		return nil, err
	}
	want := q.gvk()
	strict := fieldValidation != metav1.FieldValidationIgnore
	obj, got, err := q.codec().Decode(body, media, want, strict)
	if err != nil {
		if api := apierrors.APIStatus(nil); errors.As(err, &api) {
			return nil, err
		}
		unknown, isStrict := runtime.AsStrictDecodingError(err)
		if !isStrict || obj == nil || fieldValidation == metav1.FieldValidationStrict {
			return nil, decodeError(err, want, got, body)
		}
		q.warnStrict(unknown.Errors())
	}
	if !q.accepts(got.GroupVersion()) {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", got.GroupVersion(), want.GroupVersion()))
	}
	q.auditObject(obj, got.GroupVersion())
	return obj, nil
}

// checkBody refuses a body that would take too long to read, or would become too large.
func (q *request) checkBody(media string, body []byte) error {
	if media == response.MediaCBOR {
		return q.checkCBOR(body)
	}
	if err := q.checkBodyNesting(body); err != nil {
		return err
	}
	if media != response.MediaYAML {
		return nil
	}
	return response.CheckAliases(body, q.api.o.MaxBodyBytes)
}

// inputMedia is the media type of a body that is an object, by its Content-Type.
func (q *request) inputMedia(header string) (string, error) {
	if header == "" || header == response.MediaJSON {
		return response.MediaJSON, nil
	}
	supported := q.api.mediaTypes
	if m, _, err := mime.ParseMediaType(header); err == nil {
		for _, s := range supported {
			if m == s && (m != response.MediaProtobuf || q.kind.Protobuf || q.sub != nil && q.sub.Codec != nil) {
				return m, nil
			}
		}
	}
	return "", response.UnsupportedMediaType(supported)
}

func decodeError(err error, want, got schema.GroupVersionKind, body []byte) error {
	if got.Kind != "" {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", got.Kind, got.Version, want.Kind, err))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)", want.Kind, err, summary(body, 30)))
}

// summary shows the beginning of a body that could not be decoded.
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

// warnStrict turns each unknown or duplicate field into a warning. The YAML decoder returns all
// of them in one error, with a line for each.
func (c *call) warnStrict(errs []error) {
	for _, e := range errs {
		for _, text := range yamlErrors(e.Error()) {
			c.warn.AddWarning("", text)
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

// fieldValidation returns the directive, or its default if it is unset.
func fieldValidation(directive string) string {
	if directive == "" {
		return metav1.FieldValidationWarn
	}
	return directive
}
