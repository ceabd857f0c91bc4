package etcd
import (
 _ "go.etcd.io/etcd/client/v3"
 _ "k8s.io/apiserver/pkg/storage/etcd3"
 _ "k8s.io/apiserver/pkg/storage/testing"
)
