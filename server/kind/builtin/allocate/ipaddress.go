package allocate

import (
	"context"
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	apirest "k8s.io/apiserver/pkg/registry/rest"
	networkinginformers "k8s.io/client-go/informers/networking/v1"
	networkingclient "k8s.io/client-go/kubernetes/typed/networking/v1"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/apis/networking"
)

// manager is the field manager of IPAddresses: the server, as when it is its own client.
const manager = "plinth"

// client and informer give upstream's allocator access to IPAddresses. They have the few methods
// of their interfaces that it calls.
type (
	client struct {
		networkingclient.NetworkingV1Interface
		networkingclient.IPAddressInterface
		*attempt
	}
	informer struct {
		networkinginformers.IPAddressInformer
		cache.SharedIndexInformer
		networkinglisters.IPAddressLister
		*attempt
	}
)

func (c client) IPAddresses() networkingclient.IPAddressInterface { return c }

// Create takes an address. An error of the store is remembered, because the allocator goes
// on to the next address with any error.
func (c client) Create(_ context.Context, obj *networkingv1.IPAddress, _ metav1.CreateOptions) (*networkingv1.IPAddress, error) {
	if c.failed != nil {
		return nil, c.failed
	}
	made, err := c.create(obj)
	if err == nil {
		c.taken[obj.Name] = made.(*networking.IPAddress).UID
	} else if !apierrors.IsAlreadyExists(err) {
		c.failed = err
	}
	return nil, err
}

// creates is the request for an address, by which it is validated; the context has that for the Service.
var creates = &apirequest.RequestInfo{
	IsResourceRequest: true, Verb: "create",
	APIGroup: networkingv1.GroupName, APIVersion: networkingv1.SchemeGroupVersion.Version, Resource: "ipaddresses",
}

func (a *attempt) create(obj *networkingv1.IPAddress) (runtime.Object, error) {
	hub, err := a.ip.Codec.Hub(obj)
	if err != nil {
		return nil, err
	}
	if fields := a.ip.Versions[0].Fields; fields != nil {
		hub = fields.Track(a.ip.Codec.New(), hub, manager)
	}
	return a.Services.addresses.Create(apirequest.WithRequestInfo(a.ctx, creates), hub, apirest.ValidateAllObjectFunc, &metav1.CreateOptions{})
}

// release gives an address back only once: the second time it may belong to another Service of
// the same name. An address that the attempt has not taken itself is given back if it belongs
// to the Service.
func (a *attempt) release(name string) error {
	uid, taken := a.taken[name]
	if taken && uid == "" {
		return nil
	}
	ctx, cancel := a.releasing()
	defer cancel()
	if !taken {
		var err error
		if uid, err = a.owned(ctx, name); err != nil || uid == "" {
			return gone(err)
		}
	}
	a.taken[name] = ""
	only := metav1.NewPreconditionDeleteOptions(string(uid))
	_, _, err := a.Services.addresses.Delete(ctx, name, apirest.ValidateAllObjectFunc, only)
	if apierrors.IsConflict(err) {
		return nil // it is another IPAddress by now
	}
	return gone(err)
}

// owned is the UID of an IPAddress, or empty if it does not belong to the Service.
func (a *attempt) owned(ctx context.Context, name string) (types.UID, error) {
	obj, err := a.Services.addresses.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	address := obj.(*networking.IPAddress)
	if ref := address.Spec.ParentRef; ref == nil || networkingv1.ParentReference(*ref) != a.owner() {
		return "", nil
	}
	return address.UID, nil
}

func gone(err error) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("give back an address: %w", err)
}

func (a *attempt) has(name string) bool { return a.store.Get(a.ip.Key("", name)) != nil }

func (i informer) Lister() networkinglisters.IPAddressLister { return i }

func (i informer) Informer() cache.SharedIndexInformer { return i }

// HasSynced is true: the store is never behind.
func (i informer) HasSynced() bool { return true }

// Get reports every address as taken if the store cannot be written.
func (i informer) Get(name string) (*networkingv1.IPAddress, error) {
	if i.failed == nil && !i.has(name) {
		return nil, apierrors.NewNotFound(i.ip.GroupResource(), name)
	}
	return taken, nil
}

// taken stands for every taken address: the allocator does not read it.
var taken = &networkingv1.IPAddress{}

// List is called for metrics only, which are disabled.
func (i informer) List(labels.Selector) ([]*networkingv1.IPAddress, error) { return nil, nil }
