module github.com/openshift/gssapi

go 1.26.0
