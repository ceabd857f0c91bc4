package etcdtest

import (
	"regexp"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Difference is a difference between the answers of two releases of etcd.
type Difference struct {
	Why      string
	Requests *regexp.Regexp // matches the requests whose answers differ, in the form of a Record
	Answers  *regexp.Regexp // matches what is different in these answers
	Alike    string         // replaces the difference, as regexp expands it
	Shown    []Step         // requests to an empty key space that show it: the last one is answered differently
}

// Older has all differences between the answers of etcd 3.6 and those of etcd 3.7, which plinth gives.
var Older = []Difference{{
	Why:      "RangeStream is new in 3.7",
	Requests: regexp.MustCompile(`^\*etcdserverpb\.RangeRequest `),
	Answers:  regexp.MustCompile(`; stream: .*$`),
	Shown:    []Step{{Request: &pb.RangeRequest{Key: []byte("a")}}},
}, {
	Why:      "each release tells its own version, and that of its storage",
	Requests: regexp.MustCompile(`^\*etcdserverpb\.StatusRequest `),
	Answers:  regexp.MustCompile(`ersion:"3\.[67]\.\d+"`),
	Alike:    `ersion:"3"`,
	Shown:    []Step{{Request: &pb.StatusRequest{}}},
}, {
	Why:      "3.6 writes an alarm as text with a space at its end",
	Requests: regexp.MustCompile(`^\*etcdserverpb\.StatusRequest `),
	Answers:  regexp.MustCompile(`(alarm:[A-Z]+) ?"`),
	Alike:    `$1"`,
	Shown: []Step{
		{Request: &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, Alarm: pb.AlarmType_NOSPACE}},
		{Request: &pb.StatusRequest{}},
	},
}, {
	Why:      "3.7 answers a range of keys only from its index, which knows no leases; 3.6 reads the keys from its file",
	Requests: regexp.MustCompile(`keys_only:true`),
	Answers:  regexp.MustCompile(` *lease:-?\d+`),
	Shown: []Step{
		{Request: &pb.LeaseGrantRequest{ID: 1, TTL: 1000}},
		{Request: &pb.PutRequest{Key: []byte("a"), Lease: 1}},
		{Request: &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte("a"), KeysOnly: true}}}}}},
	},
}, {
	Why:      "of a put in a transaction that keeps the value of a key that is not there, and has a lease that is not there, 3.6 misses the key first and 3.7 the lease",
	Requests: regexp.MustCompile(`^\*etcdserverpb\.TxnRequest .*ignore_value:true`),
	Answers:  regexp.MustCompile(`^error (InvalidArgument: etcdserver: key not found|NotFound: etcdserver: requested lease not found)$`),
	Alike:    "error: key or lease not found",
	Shown: []Step{
		{Request: &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("a"), Lease: 1, IgnoreValue: true}}}}}},
	},
}}

// Without returns the record without differences.
func (r *Record) Without(differences []Difference) *Record {
	out := *r
	out.Answers = append([]string(nil), r.Answers...)
	for i, sent := range r.Sent {
		for _, d := range differences {
			if d.Requests.MatchString(sent) {
				out.Answers[i] = d.Answers.ReplaceAllString(out.Answers[i], d.Alike)
			}
		}
	}
	return &out
}
