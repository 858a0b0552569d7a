package configuration

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/extension"
)

// maxFile is more than any configuration needs.
const maxFile = 1 << 20

// Load reads a configuration file, and returns its content too; without a path the
// default holds.
func Load(path string) (c *Configuration, text []byte, err error) {
	if path == "" {
		return Default(), nil, nil
	}
	text, err = os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration: %w", err)
	}
	c, err = Parse(text)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	return c, text, nil
}

// Parse reads a configuration, lays it over the default and checks it.
func Parse(text []byte) (*Configuration, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("%d bytes, at most %d are read", len(text), maxFile)
	}
	c := Default()
	sources, roles := c.Sources, c.Roles
	c.APIVersion, c.Kind, c.Sources, c.Roles = "", "", nil, nil // the lists of a file replace the default ones
	if err := yaml.UnmarshalStrict(text, c); err != nil {
		return nil, err
	}
	if c.Sources == nil {
		c.Sources = sources
	}
	if c.Roles == nil {
		c.Roles = roles
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c, nil
}

// LoadExtensions reads a file with nothing but extensions, for those who run without a Configuration.
func LoadExtensions(path string) ([]extension.Options, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Extensions []extension.Options `json:"extensions"`
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are read", path, len(text), maxFile)
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := extension.Validate(file.Extensions, field.NewPath("extensions")).ToAggregate(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return file.Extensions, nil
}
