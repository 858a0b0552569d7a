# The image of Gatehouse, for those who build with Docker; `make image` makes the
# same one without. One image has both programs: a fleet's pod runs `gatehouse
# proxy`, which runs Envoy.
FROM golang:1.27 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /gatehouse ./cmd/gatehouse

# Envoy's own image: its binary, the glibc that it was made with, certificate
# authorities, and no shell. The release is the one that internal/proxy installs.
FROM envoyproxy/envoy:distroless-v1.40.0
COPY --from=build /gatehouse /usr/local/bin/gatehouse
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/gatehouse"]
CMD []
