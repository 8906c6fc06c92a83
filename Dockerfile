# For whoever has Docker; `make docker-build` needs none. The same programs, and
# nothing else: no shell, not root.
#
#   docker build --build-arg VERSION=0.1.0 --build-arg COMMIT=$(git rev-parse HEAD) -t registry.example.com/you/fairlead:v0.1.0 .
ARG GO_VERSION=1.26
FROM --platform=$BUILDPLATFORM golang:${GO_VERSION} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY api api
COPY cmd cmd
COPY internal internal
COPY operators operators
ARG TARGETOS TARGETARCH VERSION=dev COMMIT=unknown
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X example.com/fairlead/internal/kit/run.Version=$VERSION -X example.com/fairlead/internal/kit/run.Commit=$COMMIT" \
    -o /programs/ ./cmd/fairlead ./cmd/fairlead-at-start ./cmd/fairlead-etcd-agent

FROM scratch
COPY --from=build /programs/ /
USER 65532:65532
ENTRYPOINT ["/fairlead"]
