package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/terminal"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// asked answers about objects: what they become here, or what a running process has of them.
type asked interface {
	view() (view.View, error)
	inForce(of object.Key, section string) (view.InForce, error)
	// drawn draws a namespace, all if it is empty, or what is above and below an object.
	drawn(focus object.Key, namespace string) (view.Drawn, error)
}

// ask returns who answers: files, a cluster, or the process that runs.
func (f *evaluateFlags) ask(cmd *cobra.Command, paths []string, cluster *clusterFlags, stateDir string) (who asked, namespace string, err error) {
	if stateDir != "" && len(paths) > 0 {
		return nil, "", usageError{fmt.Errorf("either files are shown or what runs: leave out %s, or --state-dir", paths[0])}
	}
	if len(paths) == 0 && !cluster.asked(cmd) {
		socket, err := adminSocket(stateDir)
		if err == nil {
			return running{cmd.Context(), socket}, "", nil
		}
		if !errors.Is(err, terminal.ErrNotRunning) {
			return nil, "", err
		}
	}
	p, namespace, err := f.evaluated(cmd, paths, cluster, "show", "shown")
	if err != nil {
		return nil, "", err
	}
	return computed{p}, namespace, nil
}

// computed answers by what objects become here.
type computed struct{ p *pipeline.Pipeline }

func (a computed) view() (view.View, error) { return view.Of(a.p), nil }

func (a computed) inForce(of object.Key, section string) (view.InForce, error) {
	return view.InForceFor(a.p, of, section), nil
}

func (a computed) drawn(focus object.Key, namespace string) (view.Drawn, error) {
	return view.DrawnOf(a.p, focus, namespace), nil
}

// running asks a running process.
type running struct {
	ctx    context.Context
	socket string
}

func (a running) view() (view.View, error) { return fetchView(a.ctx, a.socket, patience) }

func (a running) inForce(of object.Key, section string) (view.InForce, error) {
	q := query(of)
	q.Set("section", section)
	return fetch[view.InForce](a.ctx, a.socket, "/policies?"+q.Encode(), patience)
}

func (a running) drawn(focus object.Key, namespace string) (view.Drawn, error) {
	q := url.Values{}
	if !focus.IsZero() {
		q = query(focus)
	} else if namespace != "" {
		q.Set("namespace", namespace)
	}
	return fetch[view.Drawn](a.ctx, a.socket, "/topology?"+q.Encode(), patience)
}

// query names an object, as the admin interface reads it.
func query(of object.Key) url.Values {
	return url.Values{"group": {of.Kind.Group()}, "kind": {of.Kind.Name()}, "namespace": {of.Namespace}, "name": {of.Name.Name}}
}

// adminSocket is the socket of the process with a state directory, or of the only one that runs.
func adminSocket(stateDir string) (string, error) {
	if stateDir == "" {
		dir, err := terminal.FindRunning()
		if err != nil {
			return "", err
		}
		stateDir = dir
	}
	if _, err := os.Stat(stateDir); err != nil {
		return "", fmt.Errorf("no gatehouse runs with the state directory %s: %w", stateDir, notThere(err))
	}
	return filepath.Join(stateDir, terminal.AdminSocket), nil
}

// defineStateDir defines the flag that chooses a running process.
func defineStateDir(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "state-dir", "", "state directory of the running process (default: the only one)")
	_ = cmd.MarkFlagDirname("state-dir")
}

// exceptCluster has a flag make no sense beside those that choose a cluster.
func exceptCluster(cmd *cobra.Command, flag string) {
	for _, other := range clusterFlagNames {
		cmd.MarkFlagsMutuallyExclusive(flag, other)
	}
}
