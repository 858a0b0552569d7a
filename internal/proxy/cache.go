package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// cache is the directory of one installed Envoy release: the binary, and a
// receipt that says what the binary was when it was installed.
type cache struct{ dir string }

// receipt stands beside the binary, so that a truncated or altered file is
// noticed. It is written before the binary moves into place: a binary without
// a fitting receipt was not finished by Install.
type receipt struct {
	Version string `json:"version"`
	Wheel   string `json:"wheel"`
	SHA256  string `json:"sha256"`
	Size    int64  `json:"size"`
}

// cacheRoot is the directory for everything that Gatehouse may download again:
// GATEHOUSE_CACHE, or gatehouse in the user's cache directory.
func cacheRoot(getenv func(string) string) (string, error) {
	if dir := getenv("GATEHOUSE_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory for the Envoy binary: %w: set GATEHOUSE_CACHE", err)
	}
	return filepath.Join(dir, "gatehouse"), nil
}

func cacheAt(root string) cache {
	return cache{dir: filepath.Join(root, "envoy", InstallVersion)}
}

func (c cache) binary() string      { return filepath.Join(c.dir, "envoy") }
func (c cache) receiptPath() string { return filepath.Join(c.dir, "envoy.json") }

// checkSize compares the binary with its receipt by size, which costs nothing
// and finds a file that was cut off. Nothing installed is fs.ErrNotExist.
func (c cache) checkSize() error {
	_, err := c.load()
	return err
}

// checkSum reads the whole binary (107 MB, some tenths of a second).
func (c cache) checkSum() error {
	r, err := c.load()
	if err != nil {
		return err
	}
	sum, err := fileSHA256(c.binary())
	if err != nil {
		return err
	}
	if sum != r.SHA256 {
		return fmt.Errorf("%s has SHA-256 %s, was installed with %s", c.binary(), sum, r.SHA256)
	}
	return nil
}

func (c cache) load() (receipt, error) {
	info, err := os.Stat(c.binary())
	if err != nil {
		return receipt{}, err
	}
	raw, err := os.ReadFile(c.receiptPath())
	if errors.Is(err, fs.ErrNotExist) {
		return receipt{}, fmt.Errorf("%s has no receipt beside it", c.binary())
	}
	if err != nil {
		return receipt{}, err
	}
	var r receipt
	if err := json.Unmarshal(raw, &r); err != nil {
		return receipt{}, fmt.Errorf("%s: %w", c.receiptPath(), err)
	}
	if info.Size() != r.Size {
		return receipt{}, fmt.Errorf("%s has %d bytes, was installed with %d", c.binary(), info.Size(), r.Size)
	}
	return r, nil
}

func fileSHA256(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
