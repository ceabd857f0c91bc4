package audit

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
)

// line appends an event as upstream's codec for audit.k8s.io/v1 encodes it, in a tenth of the
// time: with an audit log, every request has two events. It returns false for an event that has
// the objects of its request; upstream's codec is for those.
func line(b []byte, e *auditinternal.Event) ([]byte, bool) {
	if e.RequestObject != nil || e.ResponseObject != nil {
		return b, false
	}
	b = append(b, `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":`...)
	b = quoted(b, string(e.Level))
	b = field(b, `,"auditID":`, string(e.AuditID))
	b = field(b, `,"stage":`, string(e.Stage))
	b = field(b, `,"requestURI":`, e.RequestURI)
	b = field(b, `,"verb":`, e.Verb)
	b = lineUser(append(b, `,"user":`...), &e.User)
	if e.ImpersonatedUser != nil {
		b = lineUser(append(b, `,"impersonatedUser":`...), e.ImpersonatedUser)
	}
	if e.AuthenticationMetadata != nil {
		b = append(b, `,"authenticationMetadata":`...)
		begin := len(b)
		b = closed(optional(append(b, '{'), `,"impersonationConstraint":`, e.AuthenticationMetadata.ImpersonationConstraint), begin)
	}
	if len(e.SourceIPs) > 0 {
		b = quotedList(append(b, `,"sourceIPs":`...), e.SourceIPs)
	}
	b = optional(b, `,"userAgent":`, e.UserAgent)
	if e.ObjectRef != nil {
		b = lineObject(append(b, `,"objectRef":`...), e.ObjectRef)
	}
	if e.ResponseStatus != nil {
		b = lineStatus(append(b, `,"responseStatus":`...), e.ResponseStatus)
	}
	b = lineTime(append(b, `,"requestReceivedTimestamp":`...), e.RequestReceivedTimestamp)
	b = lineTime(append(b, `,"stageTimestamp":`...), e.StageTimestamp)
	if len(e.Annotations) > 0 {
		b = lineAnnotations(append(b, `,"annotations":`...), e.Annotations)
	}
	return append(b, "}\n"...), true
}

func lineUser(b []byte, u *authenticationv1.UserInfo) []byte {
	begin := len(b)
	b = append(b, '{')
	b = optional(b, `,"username":`, u.Username)
	b = optional(b, `,"uid":`, u.UID)
	if len(u.Groups) > 0 {
		b = quotedList(append(b, `,"groups":`...), u.Groups)
	}
	if len(u.Extra) > 0 {
		b = append(b, `,"extra":`...)
		first := len(b)
		for _, key := range slices.Sorted(maps.Keys(u.Extra)) {
			b = quoted(append(b, ','), key)
			b = quotedList(append(b, ':'), u.Extra[key])
		}
		b[first] = '{'
		b = append(b, '}')
	}
	return closed(b, begin)
}

func lineObject(b []byte, o *auditinternal.ObjectReference) []byte {
	begin := len(b)
	b = append(b, '{')
	b = optional(b, `,"resource":`, o.Resource)
	b = optional(b, `,"namespace":`, o.Namespace)
	b = optional(b, `,"name":`, o.Name)
	b = optional(b, `,"uid":`, string(o.UID))
	b = optional(b, `,"apiGroup":`, o.APIGroup)
	b = optional(b, `,"apiVersion":`, o.APIVersion)
	b = optional(b, `,"resourceVersion":`, o.ResourceVersion)
	b = optional(b, `,"subresource":`, o.Subresource)
	return closed(b, begin)
}

// closed ends an object of optional fields, each of which has begun with a comma.
func closed(b []byte, begin int) []byte {
	if len(b) > begin+1 {
		b = slices.Delete(b, begin+1, begin+2)
	}
	return append(b, '}')
}

// lineStatus is quick for the status of a request that has succeeded.
func lineStatus(b []byte, s *metav1.Status) []byte {
	if code := s.Code; code != 0 && *s == (metav1.Status{Code: code}) {
		b = append(b, `{"metadata":{},"code":`...)
		return append(strconv.AppendInt(b, int64(code), 10), '}')
	}
	return marshalled(b, s)
}

func lineTime(b []byte, t metav1.MicroTime) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, metav1.RFC3339Micro)
	return append(b, '"')
}

func lineAnnotations(b []byte, notes map[string]string) []byte {
	first := len(b)
	var room [8]string
	keys := slices.AppendSeq(room[:0], maps.Keys(notes))
	slices.Sort(keys)
	for _, key := range keys {
		b = quoted(append(b, ','), key)
		b = quoted(append(b, ':'), notes[key])
	}
	b[first] = '{'
	return append(b, '}')
}

func field(b []byte, name, text string) []byte { return quoted(append(b, name...), text) }

// optional leaves an empty field out.
func optional(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	return field(b, name, text)
}

func quotedList[T ~[]string](b []byte, list T) []byte {
	if list == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i, text := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = quoted(b, text)
	}
	return append(b, ']')
}

// quoted appends a string as encoding/json does. The reasons of decisions have quotes, and many
// paths an ampersand.
func quoted(b []byte, text string) []byte {
	begin, done := len(b), 0
	b = append(b, '"')
	for i := range len(text) {
		escaped := ""
		switch c := text[i]; {
		case c == '"':
			escaped = `\"`
		case c == '&':
			escaped = `\u0026`
		case c < ' ' || c >= 0x80 || c == '\\' || c == '<' || c == '>':
			return marshalled(b[:begin], text)
		default:
			continue
		}
		b = append(append(b, text[done:i]...), escaped...)
		done = i + 1
	}
	return append(append(b, text[done:]...), '"')
}

// marshalled appends what can be encoded without an error.
func marshalled(b []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return append(b, "null"...)
	}
	return append(b, text...)
}
