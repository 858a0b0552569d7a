module github.com/emissary-ingress/emissary/v3

go 1.26.0
