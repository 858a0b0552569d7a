//go:build !linux

package cluster

import "errors"

func inNetwork(string, func() error) error { return errors.ErrUnsupported }

func locked(string) bool { return false }
