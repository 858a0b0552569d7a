package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/test/cluster"
)

// around is how long there is load before and after what happens.
const around = 5 * time.Second

// fleetResources are what a fleet may be made of.
var fleetResources = map[string]bool{
	"deployments": true, "daemonsets": true, "services": true, "configmaps": true, "serviceaccounts": true,
	"horizontalpodautoscalers": true, "poddisruptionbudgets": true,
}

// deathFigures are what is measured when controllers are killed.
type deathFigures struct{ failures, status, fleet, serves, writes string }

// killControllers kills the process of every controller at once. The kubelet starts
// their containers again.
func (b *bench) killControllers(ctx context.Context) error {
	ns, name, _ := strings.Cut(b.controller, "/")
	pods, err := b.controllers(ctx)
	if err != nil {
		return err
	}
	return b.death(ctx, "kill", deathFigures{killFailures, killStatus, killFleet, killServes, killWrites}, pods,
		func(ctx context.Context, killed time.Time) error {
			return cluster.Await(ctx, "controllers that are ready again", func() error {
				now, err := b.controllers(ctx)
				for _, pod := range now {
					for _, before := range pods {
						if pod.UID == before.UID && restarts(pod) == restarts(before) {
							err = errors.Join(err, fmt.Errorf("nobody has noticed that the process of pod %s is killed", pod.Name))
						}
					}
				}
				if err := errors.Join(err, b.rolledOut(ctx, ns, name)); err != nil {
					return err
				}
				b.took(killReady, time.Since(killed))
				return nil
			})
		})
}

// killLeader kills the process of the controller that leads, and removes its pod
// before the kubelet starts it again, as if its machine were gone: another one leads
// when the Lease has run out.
func (b *bench) killLeader(ctx context.Context) error {
	pod, err := b.leader(ctx)
	if err != nil {
		return err
	}
	err = b.death(ctx, "leader", deathFigures{leaderFailures, leaderStatus, leaderFleet, leaderServes, leaderWrites}, []corev1.Pod{pod},
		func(ctx context.Context, _ time.Time) error {
			return b.client.Delete(ctx, &pod, client.GracePeriodSeconds(0))
		})
	if err != nil {
		return err
	}
	now, err := b.leader(ctx)
	if err == nil && now.UID == pod.UID {
		err = fmt.Errorf("pod %s leads again", pod.Name)
	}
	return err
}

// death kills the processes of controllers with SIGKILL, under load and while routes
// change, and sees how soon others, or those that follow, do their work. What there
// is to do is made right after the kill: a route and a Gateway of a name.
func (b *bench) death(ctx context.Context, name string, f deathFigures, pods []corev1.Pod, after func(context.Context, time.Time) error) error {
	if err := b.audit.forget(); err != nil {
		return err
	}
	load := b.load(ctx, b.address, "one")
	err := func() error {
		if err := cluster.Sleep(ctx, around); err != nil {
			return err
		}
		killed := time.Now()
		for _, pod := range pods {
			if err := kill(pod); err != nil {
				return err
			}
		}
		for _, object := range []client.Object{b.route(name, "one"), b.gateway(name, nil)} {
			if err := b.client.Create(ctx, object); err != nil {
				return err
			}
		}
		serves := make(chan error, 1)
		go func() {
			err := cluster.Await(ctx, "the new route", func() error { return b.get(ctx, b.address, name) })
			if err == nil {
				b.took(f.serves, time.Since(killed))
			}
			serves <- err
		}()
		err := after(ctx, killed)
		if err := errors.Join(err, <-serves); err != nil {
			return err
		}
		ofStatus := func(w write) bool { return w.subresource == "status" }
		ofFleet := func(w write) bool { return fleetResources[w.resource] && w.of(name) }
		for figure, match := range map[string]func(write) bool{f.status: ofStatus, f.fleet: ofFleet} {
			if err := cluster.Await(ctx, figure, func() error {
				at, err := b.audit.first(killed, match)
				if err == nil {
					b.took(figure, at.Sub(killed))
				}
				return err
			}); err != nil {
				return err
			}
		}
		load.settle()
		return b.quiet(ctx)
	}()
	failures, changes := load.end()
	if err := errors.Join(err, changes); err != nil {
		return err
	}
	b.figures[f.failures] = failures
	all, err := b.audit.writes()
	if err != nil {
		return err
	}
	ofOthers := func(w write) bool { return fleetResources[w.resource] && !w.of(name) }
	b.figures[f.writes] = count(all, ofOthers)
	count(all, func(w write) bool { return !ofOthers(w) })
	return nil
}

// took keeps a figure that is a time.
func (b *bench) took(figure string, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.figures[figure] = d.Seconds()
	fmt.Printf("  %s: %v\n", figure, d.Round(time.Millisecond))
}

// leader is the pod of the controller that holds the Lease.
func (b *bench) leader(ctx context.Context) (corev1.Pod, error) {
	ns, _, _ := strings.Cut(b.controller, "/")
	var lease coordinationv1.Lease
	if err := b.client.Get(ctx, client.ObjectKey{Namespace: ns, Name: b.lease}, &lease); err != nil {
		return corev1.Pod{}, err
	}
	if lease.Spec.HolderIdentity == nil {
		return corev1.Pod{}, fmt.Errorf("nobody holds the Lease %s/%s", ns, b.lease)
	}
	pods, err := b.controllers(ctx)
	for _, pod := range pods {
		if strings.HasPrefix(*lease.Spec.HolderIdentity, pod.Name+"_") {
			return pod, nil
		}
	}
	return corev1.Pod{}, errors.Join(err, fmt.Errorf("%s, who leads, is no pod that runs", *lease.Spec.HolderIdentity))
}

func restarts(pod corev1.Pod) (n int32) {
	for _, c := range pod.Status.ContainerStatuses {
		n += c.RestartCount
	}
	return n
}

// kill ends the processes of a pod's containers without a warning. They are found on
// this machine by the control group that is named for their container: nobody inside
// can kill a container's first process.
func kill(pod corev1.Pod) error {
	if len(pod.Status.ContainerStatuses) == 0 {
		return fmt.Errorf("pod %s has no container", pod.Name)
	}
	for _, c := range pod.Status.ContainerStatuses {
		_, id, _ := strings.Cut(c.ContainerID, "://")
		pids, err := processes(id)
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			return fmt.Errorf("pod %s: no process of its container %q is on this machine", pod.Name, id)
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				return fmt.Errorf("kill process %d of pod %s: %w", pid, pod.Name, err)
			}
		}
	}
	return nil
}

// processes are those of a container.
func processes(container string) ([]int, error) {
	if container == "" {
		return nil, nil
	}
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, path := range groups {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		if bytes.Contains(text, []byte(container)) {
			pid, err := strconv.Atoi(strings.Split(path, "/")[2])
			if err != nil {
				return nil, err
			}
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
