package simulation

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podv1 "k8s.io/kubernetes/pkg/api/v1/pod"
	utilpod "k8s.io/kubernetes/pkg/util/pod"
)

// stage is what becomes of a pod next.
type stage int

const (
	stay stage = iota
	start
	succeed
	remove
)

// stageOf returns what becomes of a pod next.
func stageOf(pod *corev1.Pod) stage {
	switch {
	case pod.DeletionTimestamp != nil:
		return remove
	case (pod.Status.Phase == corev1.PodPending || pod.Status.Phase == "") && !podv1.IsPodReady(pod):
		return start
	case pod.Status.Phase == corev1.PodRunning && ofJob(pod):
		return succeed
	}
	return stay
}

func ofJob(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Job" })
}

// advance writes what becomes of a pod next.
func (n *node) advance(ctx context.Context, pod *corev1.Pod) error {
	status := pod.Status.DeepCopy()
	switch stageOf(pod) {
	case remove:
		now := metav1.NewDeleteOptions(0)
		now.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
		return n.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *now)
	case start:
		address, err := n.addressOf(ctx, pod)
		if err != nil {
			return err
		}
		started(pod, status, n.ip, address)
	case succeed:
		succeeded(pod, status)
	default:
		return nil
	}
	status.ObservedGeneration = podv1.CalculatePodStatusObservedGeneration(pod)
	_, _, _, err := utilpod.PatchPodStatus(ctx, n.client, pod.Namespace, pod.Name, pod.UID, pod.Status, *status)
	return err
}

// started is the status of a pod all of whose containers run.
func started(pod *corev1.Pod, status *corev1.PodStatus, hostIP, address string) {
	now := metav1.Now()
	types := []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady}
	for _, gate := range pod.Spec.ReadinessGates {
		types = append(types, gate.ConditionType)
	}
	for _, t := range types {
		podv1.UpdatePodCondition(status, &corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	status.Phase, status.StartTime = corev1.PodRunning, &now
	status.HostIP, status.HostIPs = hostIP, []corev1.HostIP{{IP: hostIP}}
	status.PodIP, status.PodIPs = address, []corev1.PodIP{{IP: address}}
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	status.ContainerStatuses, status.InitContainerStatuses = nil, nil
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, containerStatus(c, runs, true))
	}
	for _, c := range pod.Spec.InitContainers {
		state, goesOn := completed(now), c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		if goesOn {
			state = runs
		}
		s := containerStatus(c, state, goesOn)
		s.Ready = true
		status.InitContainerStatuses = append(status.InitContainerStatuses, s)
	}
}

// succeeded is the status of a pod all of whose containers have ended.
func succeeded(pod *corev1.Pod, status *corev1.PodStatus) {
	now := metav1.Now()
	status.Phase = corev1.PodSucceeded
	for _, t := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		podv1.UpdatePodCondition(status, &corev1.PodCondition{Type: t, Status: corev1.ConditionFalse, Reason: "PodCompleted", LastTransitionTime: now})
	}
	status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, containerStatus(c, completed(now), false))
	}
}

func completed(at metav1.Time) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: at, FinishedAt: at}}
}

func containerStatus(c corev1.Container, state corev1.ContainerState, runs bool) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: c.Name, Image: c.Image, State: state, Ready: runs, Started: &runs}
}
