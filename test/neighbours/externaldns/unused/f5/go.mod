module github.com/F5Networks/k8s-bigip-ctlr/v2

go 1.26.0
