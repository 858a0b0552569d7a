module github.com/openshift/api

go 1.26.0
