module github.com/openshift/client-go

go 1.26.0
