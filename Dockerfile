# Postroom as an image with nothing in it but the program and the certificates of
# authorities. It runs as a user without a name, and writes into /data alone.
#
#   docker build -t postroom .
#   docker run -p 8080:8080 -p 25:2525 -v postroom:/data -e POSTROOM_MAIL_DOMAIN=agents.example.com postroom

FROM golang:1.26-alpine@sha256:7a3e50096189ad57c9f9f865e7e4aa8585ed1585248513dc5cda498e2f41812c AS build
RUN apk add --no-cache ca-certificates
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${VERSION}" -o /out/postroom ./cmd/postroom \
 && mkdir -p /out/data /out/tmp

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/postroom /postroom
# A new volume takes over the owner of the folder that it is mounted on.
COPY --from=build --chown=65532:65532 /out/data /data
COPY --from=build --chown=65532:65532 /out/tmp /tmp
# The MCP registry reads which server.json the image belongs to.
LABEL io.modelcontextprotocol.server.name="io.github.postroom/postroom"
USER 65532:65532
ENV POSTROOM_DATA=/data \
    POSTROOM_HTTP=:8080 \
    POSTROOM_SMTP=:2525 \
    POSTROOM_DEV_LISTEN=all
VOLUME /data
# `serve` uses 8080 and 2525; `dev` uses 8025, 1025 and 2525.
EXPOSE 8080 2525 8025 1025
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=10s --start-period=30s --start-interval=1s CMD ["/postroom", "health"]
ENTRYPOINT ["/postroom"]
CMD ["serve"]
