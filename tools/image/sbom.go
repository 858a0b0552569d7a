package main

import (
	"cmp"
	"crypto/sha1" //nolint:gosec // SPDX 2.3 asks for it beside SHA-256
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// The part of SPDX 2.3 that is written.
type (
	document struct {
		Version       string         `json:"spdxVersion"`
		License       string         `json:"dataLicense"`
		ID            string         `json:"SPDXID"`
		Name          string         `json:"name"`
		Namespace     string         `json:"documentNamespace"`
		Creation      creation       `json:"creationInfo"`
		Packages      []component    `json:"packages"`
		Files         []packed       `json:"files"`
		Relationships []relationship `json:"relationships"`
	}
	creation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	component struct {
		ID            string      `json:"SPDXID"`
		Name          string      `json:"name"`
		Version       string      `json:"versionInfo,omitempty"`
		Location      string      `json:"downloadLocation"`
		FilesAnalyzed bool        `json:"filesAnalyzed"`
		Comment       string      `json:"comment,omitempty"`
		Refs          []reference `json:"externalRefs,omitempty"`
	}
	reference struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	packed struct {
		ID        string     `json:"SPDXID"`
		Name      string     `json:"fileName"`
		Checksums []checksum `json:"checksums"`
	}
	checksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	relationship struct {
		From string `json:"spdxElementId"`
		Type string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

// nothingSaid is SPDX's word for what is not known.
const nothingSaid = "NOASSERTION"

// bill lists what an image has in it. It follows from the image alone.
type bill struct {
	document
	image string // the ID of the image's package
}

// newBill returns the bill of an image with this digest.
func newBill(name, digest string) *bill {
	b := &bill{document: document{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: name,
		Namespace: "https://github.com/gatehouse-dev/gatehouse/sbom/" + strings.ReplaceAll(digest, ":", "/"),
		Creation:  creation{Created: time.Unix(0, 0).UTC().Format(time.RFC3339), Creators: []string{"Tool: gatehouse-image"}},
	}}
	b.image = b.add(b.ID, "DESCRIBES", component{Name: name, Version: digest})
	return b
}

// add adds a component, and how another one is related to it.
func (b *bill) add(of, how string, c component) (id string) {
	c.ID = fmt.Sprintf("SPDXRef-Package-%d", len(b.Packages)+1)
	c.Location = cmp.Or(c.Location, nothingSaid)
	b.Packages = append(b.Packages, c)
	b.Relationships = append(b.Relationships, relationship{of, how, c.ID})
	return c.ID
}

// contains adds a file of a component, as it is on this host or as its text is given.
func (b *bill) contains(of, name string, data []byte) {
	one, two := sha1.Sum(data), sha256.Sum256(data) //nolint:gosec // see above
	f := packed{
		ID: fmt.Sprintf("SPDXRef-File-%d", len(b.Files)+1), Name: name,
		Checksums: []checksum{{"SHA1", hex.EncodeToString(one[:])}, {"SHA256", hex.EncodeToString(two[:])}},
	}
	b.Files = append(b.Files, f)
	b.Relationships = append(b.Relationships, relationship{of, "CONTAINS", f.ID})
}

// binary adds a program: the modules that it is made of if Go made it, its name and
// version if not.
func (b *bill) binary(path, version string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	name := filepath.Base(path)
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		var refs []reference
		if name == "envoy" && version != "" {
			refs = []reference{
				{"SECURITY", "cpe23Type", "cpe:2.3:a:envoyproxy:envoy:" + version + ":*:*:*:*:*:*:*"},
				{"PACKAGE-MANAGER", "purl", "pkg:github/envoyproxy/envoy@v" + version},
			}
		}
		b.contains(b.add(b.image, "CONTAINS", component{Name: name, Version: version, Refs: refs}), bin+name, data)
		return nil
	}
	of := b.add(b.image, "CONTAINS", component{Name: info.Main.Path, Version: cmp.Or(version, info.Main.Version)})
	b.contains(of, bin+name, data)
	toolchain := strings.TrimPrefix(info.GoVersion, "go")
	b.add(of, "DEPENDS_ON", component{Name: "stdlib", Version: toolchain, Location: "https://go.dev/dl/", Refs: purl("stdlib", toolchain)})
	modules := slices.Clone(info.Deps)
	slices.SortFunc(modules, func(a, b *debug.Module) int { return strings.Compare(a.Path, b.Path) })
	for _, m := range modules {
		if m.Replace != nil {
			m = m.Replace
		}
		b.add(of, "DEPENDS_ON", component{Name: m.Path, Version: m.Version, Comment: m.Sum, Refs: purl(m.Path, m.Version)})
	}
	return nil
}

func purl(module, version string) []reference {
	return []reference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + module + "@" + version}}
}

// system adds a layer's other files, and the packages that they come from where this host
// has them from Debian's.
func (b *bill) system(files []file) error {
	known, err := debianPackages("/var/lib/dpkg")
	if err != nil {
		return err
	}
	ids := map[string]string{}
	for _, f := range files {
		if f.mode.IsDir() {
			continue
		}
		of, data := b.image, f.data
		if f.source != "" {
			if data, err = os.ReadFile(f.source); err != nil {
				return err
			}
			if p, ok := known[plain(f.source)]; ok {
				if ids[p.name] == "" {
					ids[p.name] = b.add(b.image, "CONTAINS", component{Name: p.name, Version: p.version, Refs: []reference{
						{"PACKAGE-MANAGER", "purl", "pkg:deb/debian/" + p.name + "@" + strings.ReplaceAll(p.version, "+", "%2B")},
					}})
				}
				of = ids[p.name]
			}
		}
		b.contains(of, f.path, data)
	}
	return nil
}

// debianPackage is one that is installed on this host.
type debianPackage struct{ name, version string }

// debianPackages returns the packages of libraries by their files; none on a host without
// dpkg.
func debianPackages(dir string) (map[string]debianPackage, error) {
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := map[string]debianPackage{}
	for entry := range strings.SplitSeq(string(status), "\n\n") {
		p, architecture := debianPackage{}, ""
		for line := range strings.SplitSeq(entry, "\n") {
			switch key, value, _ := strings.Cut(line, ": "); key {
			case "Package":
				p.name = value
			case "Version":
				p.version = value
			case "Architecture":
				architecture = value
			}
		}
		if !strings.HasPrefix(p.name, "lib") {
			continue
		}
		for _, name := range []string{p.name + ":" + architecture, p.name} {
			list, err := os.ReadFile(filepath.Join(dir, "info", name+".list"))
			if err != nil {
				continue
			}
			for path := range strings.SplitSeq(string(list), "\n") {
				out[plain(path)] = p
			}
			break
		}
	}
	return out, nil
}

// plain is a path without the directory under which newer systems have all libraries.
func plain(path string) string { return strings.TrimPrefix(path, "/usr") }

func (b *bill) write(path string) error {
	text, err := json.MarshalIndent(b.document, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644) //nolint:gosec // for everybody
}
