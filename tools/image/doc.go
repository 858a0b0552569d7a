// Command image packs binaries as a container image, without a container
// engine: a docker archive that docker, podman and ctr load, or a push to a
// registry.
//
//	image --name gatehouse:dev --output image.tar bin/gatehouse /path/of/envoy
//
// The binaries come to /usr/local/bin, and the first is the entrypoint. With
// them comes what they need, from this host: the libraries that their ELF
// headers name, and those that glibc opens by itself to resolve names; the
// system's certificate authorities; a user without rights; an empty /tmp. There
// is no shell and no package manager.
//
// The same input gives the same bytes: files are sorted, owned by root, and of
// one date. Each binary has a layer of its own, so that a new Gatehouse does not
// move Envoy again. With --sbom, what is in the image is listed as SPDX: files with their
// checksums, the modules that our binary is made of, Envoy, and the packages that libraries
// come from.
package main
