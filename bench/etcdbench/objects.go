package etcdbench

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
)

// dialServer reads the kubeconfig of a kube-apiserver that runs on an endpoint, and asks for its version.
func dialServer(ctx context.Context, other measure.Other) (*endpoint, error) {
	config, err := clientcmd.BuildConfigFromFlags("", other.At)
	if err != nil {
		return nil, fmt.Errorf("%s: read kubeconfig: %w", other.Name, err)
	}
	config.QPS = -1
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf"
	e := &endpoint{}
	e.Name, e.Endpoint.Own = other.Name, !strings.HasPrefix(other.Name, "etcd") && !strings.HasPrefix(other.Name, "kine")
	for range measure.Connections {
		config.Dial = (&net.Dialer{Timeout: measure.DialTimeout}).DialContext // clients with one of their own share no connection
		c, err := corev1client.NewForConfig(config)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", other.Name, err)
		}
		e.servers = append(e.servers, c)
	}
	ctx, cancel := context.WithTimeout(ctx, measure.DialTimeout)
	defer cancel()
	if err := e.servers[0].RESTClient().Get().AbsPath("/version").SetHeader("Accept", "application/json").Do(ctx).Error(); err != nil {
		return nil, fmt.Errorf("%s: %s is not reached: %w", other.Name, config.Host, err)
	}
	return e, nil
}

// measureObjects measures what clients of kube-apiservers get that run on endpoints.
func (r *run) measureObjects(ctx context.Context) error {
	if len(r.Apart) == 0 {
		return nil
	}
	for _, e := range r.Apart {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace()}}
		if _, err := e.servers[0].Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("%s: make a namespace: %w", e.Name, err)
		}
		defer r.removeNamespace(ctx, e)
	}
	w := &objectWriter{r: r, part: r.scale.objects / r.scale.objectRounds, made: map[*endpoint][]*corev1.ConfigMap{}, updated: map[*endpoint]int{}}
	for _, m := range []struct {
		what string
		warm bool
		load measure.Round[*endpoint]
	}{
		{"create ConfigMaps, 64 at a time", false, w.create},
		{"update ConfigMaps, 64 at a time", false, w.update},
		{"list " + figures.Number(float64(r.scale.objects)) + " ConfigMaps in pages", true, r.listObjects},
	} {
		row := &figures.Row{What: "kube-apiserver: " + m.what, Unit: "/s", Targets: objectTargets}
		if err := r.CompareAt(ctx, r.Apart, r.scale.objectRounds, m.warm, m.load, row); err != nil {
			return err
		}
	}
	return nil
}

// objectWriter creates all objects in rounds of part, and then updates each once in as many rounds.
type objectWriter struct {
	r       *run
	part    int
	made    map[*endpoint][]*corev1.ConfigMap
	updated map[*endpoint]int
}

func (w *objectWriter) create(ctx context.Context, e *endpoint) ([]figures.Sample, error) {
	first := len(w.made[e])
	w.made[e] = append(w.made[e], make([]*corev1.ConfigMap, w.part)...)
	l, err := measure.Each(ctx, measure.Concurrent, w.part, func(ctx context.Context, i int) (err error) {
		w.made[e][first+i], err = e.configMaps(i, w.r).Create(ctx, configMap(first+i), metav1.CreateOptions{})
		return err
	})
	return []figures.Sample{measure.RateOf(l)}, err
}

func (w *objectWriter) update(ctx context.Context, e *endpoint) ([]figures.Sample, error) {
	first := w.updated[e]
	w.updated[e] += w.part
	l, err := measure.Each(ctx, measure.Concurrent, w.part, func(ctx context.Context, i int) error {
		object := w.made[e][first+i]
		object.Data["n"] = "updated"
		_, err := e.configMaps(i, w.r).Update(ctx, object, metav1.UpdateOptions{})
		return err
	})
	return []figures.Sample{measure.RateOf(l)}, err
}

// listObjects reads all objects in pages, of which the first is asked to be the most recent.
func (r *run) listObjects(ctx context.Context, e *endpoint) ([]figures.Sample, error) {
	begun, seen := time.Now(), 0
	for o := (metav1.ListOptions{Limit: r.scale.page}); ; {
		page, err := e.configMaps(0, r).List(ctx, o)
		if err != nil {
			return nil, err
		}
		seen += len(page.Items)
		if o.Continue = page.Continue; o.Continue == "" {
			break
		}
	}
	if seen < r.scale.objects { // a controller may add some
		return nil, fmt.Errorf("the list has %d objects instead of %d", seen, r.scale.objects)
	}
	return []figures.Sample{{Value: float64(seen) / time.Since(begun).Seconds()}}, nil
}

// configMaps returns a worker's client of the objects of a run.
func (e *endpoint) configMaps(worker int, r *run) corev1client.ConfigMapInterface {
	return e.servers[worker%len(e.servers)].ConfigMaps(r.namespace())
}

func (r *run) namespace() string {
	return strings.Trim(strings.TrimPrefix(r.prefix, "/registry/"), "/")
}

func configMap(n int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("object-%06d", n)},
		Data:       map[string]string{"n": fmt.Sprint(n), "pad": string(pad)},
	}
}

// removeNamespace deletes what was written. There may be no controller that would.
func (r *run) removeNamespace(ctx context.Context, e *endpoint) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	r.Line.Say("%s: delete what was written", e.Name)
	core := e.servers[0]
	_ = core.ConfigMaps(r.namespace()).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	_ = core.Namespaces().Delete(ctx, r.namespace(), metav1.DeleteOptions{})
	if left, err := core.Namespaces().Get(ctx, r.namespace(), metav1.GetOptions{}); err == nil {
		left.Spec.Finalizers = nil
		_ = core.RESTClient().Put().Resource("namespaces").Name(left.Name).SubResource("finalize").Body(left).Do(ctx).Error()
	}
}
