package ratelimit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// What a Redis is reached with is read from files for each new connection, so that a password or
// an authority that is replaced is taken without a restart.

// The files of a directory of credentials.
const (
	userFile     = "username" // where there is none, it is the server's default user
	passwordFile = "password"
)

// CredentialsIn returns what RedisOptions.Credentials reads from a directory. While a file can't
// be read, what was read last is used. The error is that of the first reading.
func CredentialsIn(dir string) (func() (user, password string), error) {
	user, password, err := readCredentials(dir)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	return func() (string, string) {
		mu.Lock()
		defer mu.Unlock()
		if u, p, err := readCredentials(dir); err == nil {
			user, password = u, p
		}
		return user, password
	}, nil
}

func readCredentials(dir string) (user, password string, err error) {
	read := func(name string) (string, error) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		return strings.TrimRight(string(text), "\r\n"), err
	}
	if user, err = read(userFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", err
	}
	if password, err = read(passwordFile); err != nil {
		return "", "", err
	}
	if password == "" {
		return "", "", fmt.Errorf("%s is empty", filepath.Join(dir, passwordFile))
	}
	return user, password, nil
}
