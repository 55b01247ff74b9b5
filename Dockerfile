# The image of Sluice. docs/guides/docker.md describes how to build and run it.
#
#   docker build -t sluice .
#   docker build -t sluice:full --build-arg PROFILE=full .

# An image with Node 24 or newer, npm and a C library like Debian's.
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /src
COPY . .
# Installs the packages.
RUN node scripts/bootstrap.mjs exec node --version
# minimal, standard or full
ARG PROFILE=standard
# Flags of features to add, separated by commas. The profile minimal does not contain fsrestrict, which confines commands without any
# privilege of the container.
ARG FEATURES=sandbox-fsrestrict
RUN node scripts/bootstrap.mjs exec node scripts/build.mjs "${PROFILE}" --features "${FEATURES}" --name "${PROFILE}" --summary
RUN node scripts/bootstrap.mjs exec node scripts/release/image-files.mjs "dist/${PROFILE}" /image && chown -R 10001:10001 /image/data

FROM ${NODE_IMAGE}
COPY --from=build /image/ /
# The user of the daemon and of its commands. A volume over /data must be writable for it.
USER 10001:10001
ENV SVC_DATA_DIR=/data SVC_GATEWAY_HOST=0.0.0.0 HOME=/data XDG_CACHE_HOME=/tmp
WORKDIR /data
VOLUME /data
EXPOSE 42617
# Stop with `docker stop --time 30`, or `stop_grace_period: 30s`: the daemon drains for up to 10 s.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=15s --start-period=60s --retries=3 CMD ["sluice", "status"]
ENTRYPOINT ["sluice"]
CMD ["daemon"]
