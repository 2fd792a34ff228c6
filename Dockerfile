# Signalbox in a container. docs/deployment.md says how to run it, and what listening on loopback means there.
#
#   docker build -t signalbox .
#   docker build -t signalbox --build-arg FEATURES=otel .

FROM rust:1-alpine AS build
# aws-lc-rs is C: a compiler and the headers of musl. The programs are static.
RUN apk add --no-cache build-base
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY crates ./crates
ARG FEATURES=""
RUN cargo build --profile dist --locked -p signalbox --features "$FEATURES" \
 && mkdir -p /out/data /out/work && cp target/dist/signalbox /out/signalbox

FROM scratch AS gateway
COPY --from=build /out/signalbox /usr/local/bin/signalbox
# The data folder belongs to the user that runs the program, with its own mode (0700).
COPY --from=build --chown=65532:65532 /out/data /var/lib/signalbox
COPY --from=build --chown=65532:65532 /out/work /srv/signalbox
USER 65532:65532
WORKDIR /srv/signalbox
ENV SIGNALBOX_DATA_DIR=/var/lib/signalbox HOME=/var/lib/signalbox
VOLUME /var/lib/signalbox
STOPSIGNAL SIGTERM
# Asks over the control socket in the data folder, so it needs no shell, no curl and no port.
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["/usr/local/bin/signalbox", "status", "--json"]
# Without /srv/signalbox/signalbox.toml the demo tools are served, which may read that empty folder.
ENTRYPOINT ["/usr/local/bin/signalbox"]
CMD ["serve"]
