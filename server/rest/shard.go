package rest

import (
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/features"
	parser "k8s.io/apiserver/pkg/sharding"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// A shard is a part of the objects of a resource, which a client selects by ranges of hashes of their UIDs or of their
// namespaces, so that several clients share the objects among them (KEP-5866). Upstream's feature is alpha.

// selectShard adds the shard that a request asks for. Without the feature gate the parameter is ignored, as upstream does.
func (s *selection) selectShard(text string) error {
	if text == "" || !utilfeature.DefaultFeatureGate.Enabled(features.ShardedListAndWatch) {
		return nil
	}
	shard, err := parser.Parse(text)
	if err != nil {
		return apierrors.NewBadRequest("invalid shard selector: " + err.Error())
	}
	s.shard = shard
	return nil
}

// inShard tells whether an entry is in the shard.
func (s *selection) inShard(e *sqlstore.Entry) (bool, error) {
	var of metav1.PartialObjectMetadata
	of.Namespace, _ = s.kind.SplitKey(e.Key)
	uid, err := uidOf(e)
	if err != nil {
		return false, err
	}
	of.UID = uid
	return s.shard.Matches(&of)
}

var storedUID = object.TermOf(object.FieldOr("", "metadata", "uid"))

// uidOf reads an entry's UID.
func uidOf(e *sqlstore.Entry) (types.UID, error) {
	if term := storedUID(e.Key, e.Value); term.Is == sqlstore.Present {
		return types.UID(term.Text), nil
	}
	var meta struct {
		UID types.UID `json:"uid"`
	}
	if err := json.Unmarshal(response.MetadataJSON(e.Value), &meta); err != nil {
		return "", fmt.Errorf("uid of %s: %w", e.Key, err)
	}
	return meta.UID, nil
}

// shardInfo tells the client of a list which shard it is of.
func (s *selection) shardInfo() *metav1.ShardInfo {
	if s.shard == nil {
		return nil
	}
	return &metav1.ShardInfo{Selector: s.shard.String()}
}
